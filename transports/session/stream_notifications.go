package session

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// handleAcknowledged acts on the server's agreement to a stream: it records the agreement, reports possible misses,
// and lets Subscribe return.
//
// 2026-07-28, Subscriptions: "The notifications field in the acknowledgment reflects the subset the server agreed to
// honor." "The client SHOULD check the acknowledged filter against what it requested and handle any unsupported types
// gracefully." An agreement that names no subscription belongs to the stream that waits for one, if there is only
// one.
func (s *Session) handleAcknowledged(params []byte) {
	agreed := rawjson.Member(params, "notifications")
	s.streams.mu.Lock()
	st := s.streams.byID[subscriptionOf(params)]
	if st == nil && rawjson.IsNull(rawjson.Member(rawjson.Member(params, "_meta"), metaSubscription)) {
		st = s.streams.onlyUnacknowledged()
	}
	// An unknown stream, or a second agreement.
	if st == nil || st.agreed {
		s.streams.mu.Unlock()
		s.counts.unmatched.Add(1)
		return
	}
	reopened := st.agreedOnce
	st.agreed, st.agreedOnce, s.streams.agreedOnce = true, true, true
	st.noteAgreement(agreed)
	nothing := st.agreedToNothing
	s.streams.mu.Unlock()
	// The owner hears of possible changes before Subscribe returns.
	s.notifyMissed(st, reopened)
	st.reportFirst(nil)
	// A stream on which nothing will ever be sent costs a connection over HTTP and brings nothing.
	if nothing {
		st.stop()
	}
}

// noteAgreement records the notifications that the server agreed to. An agreement without a list is taken for one to
// everything. The caller holds streams.mu.
func (st *subscriptionStream) noteAgreement(agreed []byte) {
	uris := st.uris
	if !rawjson.IsNull(agreed) {
		uris = textsOf(rawjson.Member(agreed, "resourceSubscriptions"), maxSubscriptions)
		st.agreedToNothing = len(uris) == 0 && !isTrue(rawjson.Member(agreed, "toolsListChanged")) &&
			!isTrue(rawjson.Member(agreed, "promptsListChanged")) && !isTrue(rawjson.Member(agreed, "resourcesListChanged"))
	}
	st.honouredURIs = make(map[string]struct{}, len(uris))
	for _, uri := range uris {
		st.honouredURIs[uri] = struct{}{}
	}
}

// onlyUnacknowledged returns the stream to which the server has not agreed yet, if there is exactly one, else nil.
// The caller holds mu.
func (ss *subscriptionStreams) onlyUnacknowledged() (only *subscriptionStream) {
	for _, st := range ss.byID {
		if st.agreed {
			continue
		}
		if only != nil {
			return nil
		}
		only = st
	}
	return only
}

// notifyMissed treats the time before the server's agreement as one in which changes went unannounced: lists that
// were read then are reported as changed. After a gap (reopened) everything that the stream watches is.
func (s *Session) notifyMissed(st *subscriptionStream, reopened bool) {
	if st.tools && (reopened || s.toolsRequested.Load()) {
		s.notifyToolsChanged()
	}
	resources, prompts := s.listCaches.Load().usedLists()
	if st.prompts && (reopened || prompts) {
		s.notifyPromptsChanged()
	}
	if st.resources && (reopened || resources) {
		s.notifyResourcesChanged()
	}
	if !reopened {
		return
	}
	for _, uri := range st.uris {
		// The server does not watch the resource any more.
		if !s.streams.honoursURI(st, uri) {
			s.subscriptions.removeWatch(uri, st)
		}
		s.notifyResourceUpdated(uri)
	}
}

// honoursURI reports whether the server agreed, the last time, to watch uri on st.
func (ss *subscriptionStreams) honoursURI(st *subscriptionStream, uri string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	_, ok := st.honouredURIs[uri]
	return ok
}

// isOurNotification reports whether a notification belongs to one of our streams, or names none.
//
// 2026-07-28, Subscriptions: "On stdio, where all messages share a single channel, clients MUST use this field to
// correlate notifications with their originating subscription." A notification that names no subscription is
// accepted: the change has happened, for whichever client the server sent it. One that names a subscription that has
// ended is not.
func (s *Session) isOurNotification(params []byte) bool {
	if s.modern.Load() == nil || rawjson.IsNull(rawjson.Member(rawjson.Member(params, "_meta"), metaSubscription)) {
		return true
	}
	s.streams.mu.Lock()
	_, ours := s.streams.byID[subscriptionOf(params)]
	s.streams.mu.Unlock()
	if !ours {
		s.counts.unmatched.Add(1)
	}
	return ours
}

// subscriptionOf returns the subscription that a notification names, 0 for none of ours. The id is one of our
// numbers; some servers write it as a string.
func subscriptionOf(params []byte) int64 {
	raw := rawjson.Member(rawjson.Member(params, "_meta"), metaSubscription)
	if text, ok := rawjson.Text(raw); ok {
		return idOf([]byte(strings.TrimSpace(text)))
	}
	return idOf(raw)
}

// handleStreamTornDown ends the request of a stream that the server tears down; run then opens it again after a
// pause.
//
// 2026-07-28, Cancellation: "A server MUST send notifications/cancelled referencing a subscriptions/listen request ID
// when it tears down that subscription stream …. Servers MUST NOT send notifications/cancelled for any other
// purpose."
func (s *Session) handleStreamTornDown(requestID []byte) {
	id := idOf(requestID)
	if text, ok := rawjson.Text(requestID); ok {
		id = idOf([]byte(text))
	}
	s.streams.mu.Lock()
	_, ours := s.streams.byID[id]
	s.streams.mu.Unlock()
	if !ours {
		return
	}
	if f, ok := s.takePending(id); ok {
		f.answer <- answer{kind: answerUnusable, detail: "is that it ended the subscription"}
	}
}
