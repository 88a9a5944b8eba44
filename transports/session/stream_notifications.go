package session

// handleAcknowledged acts on the server's agreement to a stream: it reports possible misses, and lets Subscribe return.
func (s *Session) handleAcknowledged(params []byte) {
	st, reopened := s.streams.acknowledge(params)
	if st == nil {
		s.counts.unmatched.Add(1)
		return
	}
	// The owner hears of possible changes before Subscribe returns.
	s.notifyMissed(&st.filter, reopened)
	if reopened {
		s.watches.removeLost(st)
		for _, uri := range st.filter.uris {
			s.notifyResourceUpdated(uri)
		}
	}
	st.confirm()
}

// notifyMissed treats the time before the server's agreement as one in which changes went unannounced: lists that
// were read then are reported as changed. After a gap (reopened) everything that the stream watches is.
func (s *Session) notifyMissed(watched *streamFilter, reopened bool) {
	if watched.tools && (reopened || s.toolsRequested.Load()) {
		s.notifyToolsChanged()
	}
	resources, prompts := s.listCaches.Load().usedLists()
	if watched.prompts && (reopened || prompts) {
		s.notifyPromptsChanged()
	}
	if watched.resources && (reopened || resources) {
		s.notifyResourcesChanged()
	}
}

// isOurNotification reports whether a notification belongs to one of our streams, or names none.
func (s *Session) isOurNotification(params []byte) bool {
	ours := s.modern.Load() == nil || s.streams.ownsNotification(params)
	if !ours {
		s.counts.unmatched.Add(1)
	}
	return ours
}

// handleStreamTornDown ends the request of a stream that the server tears down; run then opens it again after a
// pause.
//
// 2026-07-28, Cancellation: "A server MUST send notifications/cancelled referencing a subscriptions/listen request ID
// when it tears down that subscription stream …. Servers MUST NOT send notifications/cancelled for any other
// purpose."
func (s *Session) handleStreamTornDown(requestID []byte) {
	id, ours := s.streams.findRequest(requestID)
	if !ours {
		return
	}
	if f, ok := s.takePending(id); ok {
		f.answer <- answer{kind: answerUnusable, detail: "is that it ended the subscription"}
	}
}
