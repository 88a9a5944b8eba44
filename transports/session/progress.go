package session

import (
	"bytes"
	"context"
	"strconv"
	"sync"
	"sync/atomic"

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
	report := &progressReport{bytes.Clone(params)} // without the clone the whole body would stay in memory
	p.last.Store(report)
	s.callbacks.Put(len(params), false, func() { p.deliverReport(report) })
}

// A progressReport holds the params of one notification until it is delivered.
type progressReport struct{ params []byte }

// A progressReporter delivers the progress notifications of one request to its caller. Its mutex is held during the callback,
// so that finish can wait for it.
type progressReporter struct {
	// last is the newest report as long as it is not delivered. The reader of the connection stores it.
	last     atomic.Pointer[progressReport]
	mu       sync.Mutex
	finished bool
	callback func(params []byte)
}

// finish delivers the newest report if it still waits in the queue, because a caller who got an answer wants to have seen that all
// is done; a caller whose ctx has ended gets no more. Then it makes sure that the callback does not run any more, and waits for one
// that is running. The callback must therefore not wait for its own request to return.
func (p *progressReporter) finish(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if report := p.last.Swap(nil); report != nil && !p.finished && ctx.Err() == nil {
		p.callback(report.params)
	}
	p.finished = true
}

// deliverReport calls the callback, unless the request has returned. It runs on the queue callbacks.
func (p *progressReporter) deliverReport(report *progressReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.finished {
		p.last.CompareAndSwap(report, nil)
		p.callback(report.params)
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
