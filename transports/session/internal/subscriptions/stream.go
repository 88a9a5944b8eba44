package subscriptions

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

const (
	// reopenFirst is the longest pause before a stream that has ended is opened again. It doubles each time, up to
	// reopenMost; half of it is random, so that the clients of a restarted server do not come back at one moment.
	// After a stream that lived for reopenCalm the first pause applies again.
	reopenFirst = time.Second
	reopenMost  = 5 * time.Minute
	reopenCalm  = time.Minute
	// agreementTimeout bounds the wait for the server's agreement to a stream.
	agreementTimeout = 30 * time.Second
)

// A Stream listens to one set of notifications, by one request after the other until it is stopped. Its
// goroutine is run.
type Stream struct {
	streams *Streams
	// Filter names the lists and resources whose changes the stream asks for.
	Filter Filter
	// stop ends the stream; it is set by Open. firstResult receives the result of the first attempt, nil once the
	// server has agreed; it has room for one value.
	stop        context.CancelFunc
	firstResult chan *messages.Error

	// streams.mu guards the fields below. agreed is true while the server has agreed to the present request,
	// agreedOnce after it has agreed to any; honouredURIs are the resources that it agreed to watch, the last time;
	// agreedToNothing is true if it agreed to send nothing at all, which ends the stream.
	agreed, agreedOnce bool
	honouredURIs       map[string]struct{}
	agreedToNothing    bool
}

// Open begins to listen on a goroutine of the session, until stop is called or the session has ended. With retryFirst
// a first attempt that fails is repeated. It reports false if the session is over.
func (st *Stream) Open(retryFirst bool) bool {
	ctx, stop := context.WithCancel(st.streams.Conversation.Lifetime())
	st.stop = stop
	if !st.streams.Conversation.Spawn(func() { defer stop(); st.run(ctx, retryFirst) }) {
		stop()
		return false
	}
	return true
}

// run listens, and listens again after a pause, until the stream is stopped, the session ends, or the server does not
// know the method.
//
// 2026-07-28, Subscriptions, Graceful Closure: "A client that receives this response knows the subscription closed
// cleanly; a transport that closes without it indicates an unexpected disconnect, which the client MAY treat as a
// trigger to reconnect." After a clean end the stream is opened again too: the server may be restarting behind the
// same address.
func (st *Stream) run(ctx context.Context, retryFirst bool) {
	conversation := st.streams.Conversation
	for pause := reopenFirst; ; pause = min(2*pause, reopenMost) {
		began := time.Now()
		e := st.listenOnce(ctx)
		agreed, refused := st.streams.noteEnded(st, e)
		if e == nil && !agreed {
			e = &messages.Error{
				Op: "read", Outcome: messages.OutcomeRejected, Class: messages.ClassProtocol,
				Text: "the server ended the subscription before it had agreed to it",
			}
		}
		if !agreed {
			st.reportFirst(e)
		}
		// A caller of Subscribe gets the failure of the first attempt and decides itself; later attempts repeat for
		// as long as the session lives.
		if refused || !agreed && !retryFirst || ctx.Err() != nil || conversation.EndedError("") != nil {
			return
		}
		retryFirst = true
		if agreed && time.Since(began) >= reopenCalm {
			pause = reopenFirst
		}
		timer := time.NewTimer(pause/2 + time.Duration(conversation.Rand()*float64(pause/2)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// reportFirst gives the opener of the stream the result of the first attempt. Later results find the channel full, or
// without a reader, and are dropped.
func (st *Stream) reportFirst(e *messages.Error) {
	select {
	case st.firstResult <- e:
	default:
	}
}

// listenOnce sends one request and waits for its end: nil if the server ended it by a response. The request has no
// caller's context and no timeout: ctx ends with the stream.
func (st *Stream) listenOnce(ctx context.Context) *messages.Error {
	var id int64
	defer func() { st.streams.closeRequest(id) }()
	e := st.streams.Conversation.Listen(ctx, &st.Filter, func(request int64) {
		id = request
		st.streams.openRequest(id, st)
	})
	if e != nil {
		e.Op = "read"
	}
	return e
}

// noteAgreement records the notifications that the server agreed to. An agreement without a list is taken for one to
// everything. The caller holds streams.mu.
func (st *Stream) noteAgreement(agreed []byte) {
	uris := st.Filter.URIs
	if !rawjson.IsNull(agreed) {
		uris = jsonrpc.TextsOf(rawjson.Member(agreed, "resourceSubscriptions"), MaxSubscriptions)
		st.agreedToNothing = len(uris) == 0 && !jsonrpc.IsTrue(rawjson.Member(agreed, "toolsListChanged")) &&
			!jsonrpc.IsTrue(rawjson.Member(agreed, "promptsListChanged")) && !jsonrpc.IsTrue(rawjson.Member(agreed, "resourcesListChanged"))
	}
	st.honouredURIs = make(map[string]struct{}, len(uris))
	for _, uri := range uris {
		st.honouredURIs[uri] = struct{}{}
	}
}

// Confirm reports the server's agreement to the opener of the stream. A stream on which nothing will ever be sent costs a
// connection over HTTP and brings nothing: it ends.
func (st *Stream) Confirm() {
	st.reportFirst(nil)
	st.streams.mu.Lock()
	nothing := st.agreedToNothing
	st.streams.mu.Unlock()
	if nothing {
		st.stop()
	}
}

// OpenAgreed opens a stream and waits until the server has agreed to it, at most for agreementTimeout. If want is
// set, the server must have agreed to uri. After an error the stream is stopped.
func (st *Stream) OpenAgreed(ctx context.Context, uri string, want bool) *messages.Error {
	st.streams.mu.Lock()
	refused := st.streams.methodUnknown
	st.streams.mu.Unlock()
	// A server that refused the method once is not asked again.
	if refused {
		return &messages.Error{
			Op: "read", Outcome: messages.OutcomeRejected, Class: messages.ClassRejected, Code: jsonrpc.CodeMethodNotFound,
			Text: "the server does not know subscriptions/listen",
		}
	}
	// A stream that no caller waits for must not be opened.
	if e := outcome.CallerLeftError(ctx); e != nil {
		e.Op = "read"
		return e
	}
	if !st.Open(false) {
		return outcome.MarkNotSent(st.streams.Conversation.EndedError("read"))
	}
	// The stream itself has no end, so the wait for the agreement needs a bound of its own.
	ctx, stop := context.WithTimeout(ctx, agreementTimeout)
	defer stop()
	var e *messages.Error
	select {
	case e = <-st.firstResult:
	case <-ctx.Done():
		e = outcome.ContextError(ctx, "before the server had agreed to watch the resource")
		e.Op, e.Outcome = "read", messages.OutcomeUnknown
	}
	if e == nil && want && !st.streams.honoursURI(st, uri) {
		e = &messages.Error{
			Op: "read", Outcome: messages.OutcomeRejected, Class: messages.ClassRejected,
			Text: "the server does not agree to watch the resource",
		}
	}
	if e != nil {
		st.stop()
	}
	return e
}
