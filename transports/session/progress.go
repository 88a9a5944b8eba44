package session

import (
	"bytes"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// handleProgress finds the request that a progress notification belongs to, restarts its idle timeout and queues the caller's
// callback. A notification for a request that has ended, or that asked for none, is ignored.
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
	timeout.restartIdle()
	params = bytes.Clone(params) // without the clone the whole body would stay in memory
	s.callbacks.put(len(params), false, func() { p.reportProgress(readProgress(params)) })
}
