package session

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// progressReporter is the way of one request's progress notifications to its caller.
type progressReporter struct {
	mu       sync.Mutex
	finished bool
	callback func(messages.Progress)
}

// finish makes sure that nothing is told any more. It waits for a call that is under way.
func (p *progressReporter) finish() {
	p.mu.Lock()
	p.finished = true
	p.mu.Unlock()
}

func (p *progressReporter) reportProgress(v messages.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.finished {
		p.callback(v)
	}
}

// handleProgress takes a progress notification. One for a request that has ended, or that asked for none, is ignored.
//
// 2025-11-25: "Progress notifications MUST only reference tokens that: Were provided in an active request".
func (s *Session) handleProgress(params []byte) {
	token := idOf(rawjson.Member(params, "progressToken"))
	s.mu.Lock()
	var p *progressReporter
	var timeout *CallTimeout
	if f := s.pending[token]; f != nil {
		p, timeout = f.progress, f.timeout
	} else {
		for f := range s.followedTasks {
			if token > 0 && f.token == token {
				p, timeout = f.progress, f.timeout
			}
		}
	}
	s.mu.Unlock()
	if p == nil {
		return
	}
	timeout.restartIdle()
	params = bytes.Clone(params) // without the rest of the body
	s.callbacks.put(len(params), false, func() { p.reportProgress(readProgress(params)) })
}

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
