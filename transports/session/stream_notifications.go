package session

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// streamSession is the session as its streams see it. It is a type of its own so that its methods are not part of the
// session's API.
type streamSession Session

var _ streamConversation = (*streamSession)(nil)

// Listen sends one request subscriptions/listen. It has no caller's context: the request must not end with the caller that
// opened the stream.
func (k *streamSession) Listen(ctx context.Context, filter *streamFilter, begin func(id int64)) *messages.Error {
	s := (*Session)(k)
	f, e := s.registerRequest(context.Background(), nil, false)
	if e != nil {
		return e
	}
	s.mu.Lock()
	f.longLived = true
	s.mu.Unlock()
	begin(f.id)
	// Streams exist in the modern era only, so m is not nil.
	m := s.modern.Load()
	r := request{method: "subscriptions/listen", fields: filter.appendParams(nil)}
	f.body = r.appendTo(f.body, f.id, m, nil)
	a, e := s.exchangeMessage(ctx, f, &transports.Message{ID: f.id, Method: r.method, Body: f.body, Version: m.version})
	if e == nil {
		e = a.asError(r.method)
	}
	return e
}

// Spawn runs f on a goroutine of the session.
func (k *streamSession) Spawn(f func()) bool { return (*Session)(k).spawn(f) }

// Lifetime returns the context that ends with the session.
func (k *streamSession) Lifetime() context.Context { return k.lifetime }

// EndedError returns the reason of the session's end.
func (k *streamSession) EndedError(op string) *messages.Error { return (*Session)(k).endedError(op) }

// Rand draws a number in [0,1).
func (k *streamSession) Rand() float64 { return k.cfg.Rand() }

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
