package session

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// acknowledged takes the server's agreement to a stream.
//
// 2026-07-28, Subscriptions: "The notifications field in the acknowledgment reflects the subset the server agreed to honor."
// "The client SHOULD check the acknowledged filter against what it requested and handle any unsupported types gracefully."
// An agreement that does not say to what belongs to the stream that waits for one, if that is the only one.
func (s *Session) acknowledged(params []byte) {
	agreed := rawjson.Member(params, "notifications")
	s.streams.mu.Lock()
	st := s.streams.byID[subscriptionOf(params)]
	if st == nil && rawjson.IsNull(rawjson.Member(rawjson.Member(params, "_meta"), metaSubscription)) {
		st = s.streams.onlyWaiting()
	}
	if st == nil || st.agreed {
		s.streams.mu.Unlock()
		s.counts.unmatched.Add(1)
		return
	}
	again := st.ever
	st.agreed, st.ever, s.streams.known = true, true, true
	st.agreeTo(agreed)
	nothing := st.nothing
	s.streams.mu.Unlock()
	s.missed(st, again)
	st.tellFirst(nil)
	if nothing {
		st.stop()
	}
}

// agreeTo notes what the server agreed to. One that does not say to what agreed to everything. The caller holds
// streams.mu.
func (st *stream) agreeTo(agreed []byte) {
	uris := st.uris
	if !rawjson.IsNull(agreed) {
		uris = textsOf(rawjson.Member(agreed, "resourceSubscriptions"), maxSubscriptions)
		st.nothing = len(uris) == 0 && !isTrue(rawjson.Member(agreed, "toolsListChanged")) &&
			!isTrue(rawjson.Member(agreed, "promptsListChanged")) && !isTrue(rawjson.Member(agreed, "resourcesListChanged"))
	}
	st.honoured = make(map[string]struct{}, len(uris))
	for _, uri := range uris {
		st.honoured[uri] = struct{}{}
	}
}

// onlyWaiting is the stream to which the server has not agreed yet, if there is exactly one. The caller holds mu.
func (ss *streams) onlyWaiting() (only *stream) {
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

// missed does what follows from the time before the server agreed: what was read then may have changed without a word.
// After a gap (again) the same goes for everything.
func (s *Session) missed(st *stream, again bool) {
	if st.tools && (again || s.listing.Load()) {
		s.toolsChanged()
	}
	resources, prompts := s.offers.Load().used()
	if st.prompts && (again || prompts) {
		s.promptsChanged()
	}
	if st.resources && (again || resources) {
		s.resourcesChanged()
	}
	if !again {
		return
	}
	for _, uri := range st.uris {
		if !s.streams.honours(st, uri) {
			s.subscriptions.forget(uri, st)
		}
		s.resourceUpdated(uri)
	}
}

func (ss *streams) honours(st *stream, uri string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	_, ok := st.honoured[uri]
	return ok
}

// isOurs reports whether a notification belongs to one of our streams, or may be heeded without.
//
// 2026-07-28, Subscriptions: "On stdio, where all messages share a single channel, clients MUST use this field to correlate
// notifications with their originating subscription." What names no subscription is heeded: that something changed is true
// whoever asked for it. What names one that has ended is not.
func (s *Session) isOurs(params []byte) bool {
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

// subscriptionOf is the subscription that a notification names, 0 for none of ours. The id is a number of ours; some
// servers write it as a string.
func subscriptionOf(params []byte) int64 {
	raw := rawjson.Member(rawjson.Member(params, "_meta"), metaSubscription)
	if text, ok := rawjson.Text(raw); ok {
		return idOf([]byte(strings.TrimSpace(text)))
	}
	return idOf(raw)
}

// tornDown takes the server's end of a stream.
//
// 2026-07-28, Cancellation: "A server MUST send notifications/cancelled referencing a subscriptions/listen request ID when
// it tears down that subscription stream …. Servers MUST NOT send notifications/cancelled for any other purpose."
func (s *Session) tornDown(requestID []byte) {
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
	if f, ok := s.take(id); ok {
		f.answer <- answer{kind: answerBroken, word: "is that it ended the subscription"}
	}
}
