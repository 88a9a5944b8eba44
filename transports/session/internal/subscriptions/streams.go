package subscriptions

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// metaSubscription is the key of _meta that names the subscription of a notification.
const metaSubscription = "io.modelcontextprotocol/subscriptionId"

// A Conversation is what streams need of the session.
type Conversation interface {
	// Listen sends one request subscriptions/listen and waits for its end: nil if the server ended it by a response. begin gets
	// the request's id before it is sent. The request ends with ctx, and has no other bound.
	Listen(ctx context.Context, filter *Filter, begin func(id int64)) *messages.Error
	// Spawn runs f on a goroutine of the session, and reports false if the session is over; Lifetime ends with the session.
	Spawn(f func()) bool
	Lifetime() context.Context
	// EndedError returns the reason of the session's end, nil while it lives.
	EndedError(op string) *messages.Error
	// Rand draws a number in [0,1).
	Rand() float64
}

// Streams are the standing requests subscriptions/listen of a session of the modern era: one for the
// changes of lists, and those for watched resources. Its owner sets Conversation before the first use.
//
// They are no calls: no gate counts them, no call timeout bounds them, and the end of the session is their end.
type Streams struct {
	Conversation Conversation

	// mu guards the fields below, and those of the streams that say so.
	mu   sync.Mutex
	byID map[int64]*Stream // the open ones, by the id of their request
	// methodUnknown is true once the server has shown that it does not know the method, agreedOnce once it has agreed
	// to any stream.
	methodUnknown, agreedOnce bool
}

// NewStream returns a stream that is not open.
func (ss *Streams) NewStream(filter Filter) *Stream {
	return &Stream{streams: ss, Filter: filter, firstResult: make(chan *messages.Error, 1)}
}

// openRequest registers the request of a stream. It runs before the request is sent, because the server's agreement may come
// before the sending has returned.
func (ss *Streams) openRequest(id int64, st *Stream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	st.agreed = false
	if ss.byID == nil {
		ss.byID = make(map[int64]*Stream)
	}
	ss.byID[id] = st
}

// closeRequest forgets a request that has ended; 0 is none.
func (ss *Streams) closeRequest(id int64) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.byID, id)
}

// Acknowledge records the server's agreement to a stream and returns the stream; nil if there is none that waits for it.
// reopened is true if the server had agreed to the stream before. After it has acted on possible misses the caller calls
// Confirm.
//
// 2026-07-28, Subscriptions: "The notifications field in the acknowledgment reflects the subset the server agreed to
// honor." "The client SHOULD check the acknowledged filter against what it requested and handle any unsupported types
// gracefully." An agreement that names no subscription belongs to the stream that waits for one, if there is only
// one.
func (ss *Streams) Acknowledge(params []byte) (st *Stream, reopened bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	st = ss.byID[subscriptionOf(params)]
	if st == nil && !namesSubscription(params) {
		st = ss.onlyUnacknowledged()
	}
	// An unknown stream, or a second agreement.
	if st == nil || st.agreed {
		return nil, false
	}
	reopened = st.agreedOnce
	st.agreed, st.agreedOnce, ss.agreedOnce = true, true, true
	st.noteAgreement(rawjson.Member(params, "notifications"))
	return st, reopened
}

// onlyUnacknowledged returns the stream to which the server has not agreed yet, if there is exactly one, else nil.
// The caller holds mu.
func (ss *Streams) onlyUnacknowledged() (only *Stream) {
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

// honoursURI reports whether the server agreed, the last time, to watch uri on st.
func (ss *Streams) honoursURI(st *Stream, uri string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	_, ok := st.honouredURIs[uri]
	return ok
}

// OwnsNotification reports whether a notification belongs to one of our streams, or names none.
//
// 2026-07-28, Subscriptions: "On stdio, where all messages share a single channel, clients MUST use this field to
// correlate notifications with their originating subscription." A notification that names no subscription is
// accepted: the change has happened, for whichever client the server sent it. One that names a subscription that has
// ended is not.
func (ss *Streams) OwnsNotification(params []byte) bool {
	return !namesSubscription(params) || ss.isOpen(subscriptionOf(params))
}

// isOpen reports whether a request is one of ours that has not ended.
func (ss *Streams) isOpen(id int64) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	_, ours := ss.byID[id]
	return ours
}

// FindRequest returns the open request that the server's notifications/cancelled names in requestID.
func (ss *Streams) FindRequest(requestID []byte) (id int64, ok bool) {
	id = jsonrpc.IDOf(requestID)
	if text, isText := rawjson.Text(requestID); isText {
		id = jsonrpc.IDOf([]byte(text))
	}
	return id, ss.isOpen(id)
}

// noteEnded evaluates the end of a request: it reports whether the server had agreed to it, and whether the server
// does not know the method at all.
func (ss *Streams) noteEnded(st *Stream, e *messages.Error) (agreed, refused bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	// A 404 from a server that has agreed before may come from a proxy in front of it, for a while; only its own
	// JSON-RPC error then counts.
	if e != nil && isUnknownMethod(e) && (e.Code == jsonrpc.CodeMethodNotFound || !ss.agreedOnce) {
		ss.methodUnknown = true
	}
	return st.agreed, ss.methodUnknown
}

// isUnknownMethod reports whether e says that the server does not know the method, in the words of the server or of a
// proxy in front of it.
func isUnknownMethod(e *messages.Error) bool {
	var te *transports.Error
	if e.Code == jsonrpc.CodeMethodNotFound {
		return true
	}
	return e.Code == 0 && errors.As(e.Err, &te) && (te.Status == http.StatusNotFound ||
		te.Status == http.StatusMethodNotAllowed || te.Status == http.StatusNotImplemented)
}

// namesSubscription reports whether a notification names a subscription.
func namesSubscription(params []byte) bool {
	return !rawjson.IsNull(rawjson.Member(rawjson.Member(params, "_meta"), metaSubscription))
}

// subscriptionOf returns the subscription that a notification names, 0 for none of ours. The id is one of our
// numbers; some servers write it as a string.
func subscriptionOf(params []byte) int64 {
	raw := rawjson.Member(rawjson.Member(params, "_meta"), metaSubscription)
	if text, ok := rawjson.Text(raw); ok {
		return jsonrpc.IDOf([]byte(strings.TrimSpace(text)))
	}
	return jsonrpc.IDOf(raw)
}
