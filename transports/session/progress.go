package session

import (
	"bytes"
	"context"
	"strconv"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// handleProgress finds the request that a progress notification belongs to, restarts its idle timeout and queues the caller's
// callback. A notification for a request that has ended, or that asked for none, is ignored.
//
// 2025-11-25: "Progress notifications MUST only reference tokens that: Were provided in an active request".
func (s *Session) handleProgress(params []byte) {
	token := jsonrpc.IDOf(rawjson.Member(params, "progressToken"))
	s.mu.Lock()
	var p *progressReporter
	var timeout *CallTimeout
	if f := s.pending[token]; f != nil {
		p, timeout = f.progress, f.timeout
	} else {
		// The token of a request stays valid for the task that the request became.
		for f := range s.followedTasks {
			if token > 0 && f.token == token {
				p, timeout = f.progress, f.timeout
			}
		}
	}
	s.mu.Unlock()
	// The timeout restarts only for a request that asked for progress: only it gave the server a token.
	if p == nil {
		return
	}
	timeout.RestartIdle()
	p.addReport(bytes.Clone(params), s.callbacks.Put) // without the clone the whole body would stay in memory
}

// A progressReporter delivers the progress notifications of one request to its caller, in order.
type progressReporter struct {
	// waitingMu guards waiting, the reports that are in the queue of the callbacks, and overflow, the newest one that did not fit into
	// it. The reader of the connection takes it, and it is not held during a callback.
	waitingMu sync.Mutex
	waiting   [][]byte
	overflow  []byte
	// mu is held during the callback, so that finish can wait for it.
	mu       sync.Mutex
	finished bool
	callback func(params []byte)
}

// addReport queues a report by put. One that does not fit is kept until there is a newer one.
func (p *progressReporter) addReport(params []byte, put func(size int, mandatory bool, run func()) bool) {
	p.waitingMu.Lock()
	defer p.waitingMu.Unlock()
	if put(len(params), false, p.deliverReport) {
		p.waiting, p.overflow = append(p.waiting, params), nil
		return
	}
	p.overflow = params
}

// takeReport returns the oldest report that waits, nil if none does.
func (p *progressReporter) takeReport() (params []byte) {
	p.waitingMu.Lock()
	defer p.waitingMu.Unlock()
	if len(p.waiting) == 0 {
		params, p.overflow = p.overflow, nil
		return params
	}
	params, p.waiting = p.waiting[0], p.waiting[1:]
	return params
}

// finish delivers the reports that still wait, because a caller who got an answer wants to have seen what came before it; a caller
// whose ctx has ended gets no more. Then it makes sure that the callback does not run any more, and waits for one that is running.
// The callback must therefore not wait for its own request to return.
func (p *progressReporter) finish(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.finished && ctx.Err() == nil {
		params := p.takeReport()
		if params == nil {
			break
		}
		p.callback(params)
	}
	p.finished = true
}

// deliverReport calls the callback, unless the request has returned, which delivers what waits. It runs on the queue callbacks.
func (p *progressReporter) deliverReport() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return
	}
	if params := p.takeReport(); params != nil {
		p.callback(params)
	}
}

// newProgressReporter returns the reporter of a request, nil if its caller wants no progress.
func newProgressReporter(o *Options) *progressReporter {
	switch {
	case o == nil:
		return nil
	case o.ProgressParams != nil:
		return &progressReporter{callback: func(params []byte) { o.ProgressParams(params) }}
	case o.Progress != nil:
		return &progressReporter{callback: func(params []byte) { o.Progress(readProgress(params)) }}
	}
	return nil
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
