package session

import (
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/subscriptions"
)

// handleAcknowledged acts on the server's agreement to a stream: it reports possible misses, and lets Subscribe return.
func (s *Session) handleAcknowledged(params []byte) {
	st, reopened := s.streams.Acknowledge(params)
	if st == nil {
		s.counts.unmatched.Add(1)
		return
	}
	// The owner hears of possible changes before Subscribe returns.
	s.notifyMissed(&st.Filter, reopened)
	if reopened {
		s.watches.RemoveLost(st)
		for _, uri := range st.Filter.URIs {
			s.notifyResourceUpdated(uri)
		}
	}
	st.Confirm()
}

// notifyMissed treats the time before the server's agreement as one in which changes went unannounced: lists that
// were read then are reported as changed. After a gap (reopened) everything that the stream watches is.
func (s *Session) notifyMissed(watched *subscriptions.Filter, reopened bool) {
	if watched.Tools && (reopened || s.toolsRequested.Load()) {
		s.notifyToolsChanged()
	}
	resources, prompts := s.listCaches.Load().usedLists()
	if watched.Prompts && (reopened || prompts) {
		s.notifyPromptsChanged()
	}
	if watched.Resources && (reopened || resources) {
		s.notifyResourcesChanged()
	}
}

// handleStreamTornDown ends the request of a stream that the server tears down; run then opens it again after a
// pause.
//
// 2026-07-28, Cancellation: "A server MUST send notifications/cancelled referencing a subscriptions/listen request ID
// when it tears down that subscription stream …. Servers MUST NOT send notifications/cancelled for any other
// purpose."
func (s *Session) handleStreamTornDown(requestID []byte) {
	id, ours := s.streams.FindRequest(requestID)
	if !ours {
		return
	}
	if f, ok := s.takePending(id); ok {
		f.answer <- outcome.Answer{Kind: outcome.AnswerUnusable, Detail: "is that it ended the subscription"}
	}
}
