package session

import (
	"strconv"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// A progressReporter delivers the progress notifications of one request to its caller. Its mutex is held during the callback,
// so that finish can wait for it.
type progressReporter struct {
	mu       sync.Mutex
	finished bool
	callback func(messages.Progress)
}

// finish makes sure that the callback does not run any more; it waits for one that is running. The callback must therefore
// not wait for its own request to return.
func (p *progressReporter) finish() {
	p.mu.Lock()
	p.finished = true
	p.mu.Unlock()
}

// reportProgress calls the callback, unless the request has returned. It runs on the queue callbacks.
func (p *progressReporter) reportProgress(v messages.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.finished {
		p.callback(v)
	}
}

// readProgress decodes the params of a progress notification; members of a wrong type stay zero.
func readProgress(params []byte) (v messages.Progress) {
	m := rawjson.ObjectAt(params, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "progress":
			v.Progress, _ = strconv.ParseFloat(string(value), 64)
		case "total":
			v.Total, _ = strconv.ParseFloat(string(value), 64)
		case "message":
			v.Message, _ = rawjson.Text(value)
		}
	}
	return v
}
