package session

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

const (
	// reopenFirst is the longest pause before a stream that has ended is opened again. It doubles each time, up to
	// reopenMost; half of it is random, so that the clients of a restarted server do not come back at one moment.
	// After a stream that lived for reopenCalm the first pause applies again.
	reopenFirst = time.Second
	reopenMost  = 5 * time.Minute
	reopenCalm  = time.Minute
)

// subscriptionStreams are the standing requests subscriptions/listen of a session of the modern era: one for the
// changes of lists, and those for watched resources.
//
// They are no calls: no gate counts them, no CallTimeout bounds them, and the end of the session is their end.
type subscriptionStreams struct {
	mu   sync.Mutex
	byID map[int64]*subscriptionStream // the open ones, by the id of their request
	// methodUnknown is true once the server has shown that it does not know the method, agreedOnce once it has agreed
	// to any stream.
	methodUnknown, agreedOnce bool
}

// A subscriptionStream listens to one set of notifications, by one request after the other until it is stopped. Its
// goroutine is run.
type subscriptionStream struct {
	session *Session
	// tools, prompts and resources ask for the changes of these lists; uris are watched resources. They do not change
	// after open.
	tools, prompts, resources bool
	uris                      []string
	// stop ends the stream; it is set by open. firstResult receives the result of the first attempt, nil once the
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

// newStream returns a stream that is not open; its creator sets the wishes before open.
func (s *Session) newStream() *subscriptionStream {
	return &subscriptionStream{session: s, firstResult: make(chan *messages.Error, 1)}
}

// open begins to listen on a goroutine of the session, until stop is called or the session has ended. With retryFirst
// a first attempt that fails is repeated. It reports false if the session is over.
func (st *subscriptionStream) open(retryFirst bool) bool {
	ctx, stop := context.WithCancel(st.session.lifetime)
	st.stop = stop
	if !st.session.spawn(func() { defer stop(); st.run(ctx, retryFirst) }) {
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
func (st *subscriptionStream) run(ctx context.Context, retryFirst bool) {
	s := st.session
	for pause := reopenFirst; ; pause = min(2*pause, reopenMost) {
		began := time.Now()
		e := st.listenOnce(ctx)
		agreed, refused := s.streams.noteEnded(st, e)
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
		if refused || !agreed && !retryFirst || ctx.Err() != nil || s.endedError("") != nil {
			return
		}
		retryFirst = true
		if agreed && time.Since(began) >= reopenCalm {
			pause = reopenFirst
		}
		timer := time.NewTimer(pause/2 + time.Duration(s.cfg.Rand()*float64(pause/2)))
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
func (st *subscriptionStream) reportFirst(e *messages.Error) {
	select {
	case st.firstResult <- e:
	default:
	}
}

// noteEnded evaluates the end of a request: it reports whether the server had agreed to it, and whether the server
// does not know the method at all.
func (ss *subscriptionStreams) noteEnded(st *subscriptionStream, e *messages.Error) (agreed, refused bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	// A 404 from a server that has agreed before may come from a proxy in front of it, for a while; only its own
	// JSON-RPC error then counts.
	if e != nil && isUnknownMethod(e) && (e.Code == codeMethodNotFound || !ss.agreedOnce) {
		ss.methodUnknown = true
	}
	return st.agreed, ss.methodUnknown
}

// isUnknownMethod reports whether e says that the server does not know the method, in the words of the server or of a
// proxy in front of it.
func isUnknownMethod(e *messages.Error) bool {
	var te *transports.Error
	if e.Code == codeMethodNotFound {
		return true
	}
	return e.Code == 0 && errors.As(e.Err, &te) && (te.Status == http.StatusNotFound ||
		te.Status == http.StatusMethodNotAllowed || te.Status == http.StatusNotImplemented)
}

// listenOnce sends one request and waits for its end: nil if the server ended it by a response. The request has no
// caller's context and no timeout: ctx ends with the stream.
func (st *subscriptionStream) listenOnce(ctx context.Context) *messages.Error {
	s := st.session
	// No caller's context: the request must not end with the caller that opened the stream.
	f, e := s.registerRequest(context.Background(), nil, false)
	if e != nil {
		return e
	}
	s.mu.Lock()
	f.longLived = true
	s.mu.Unlock()
	id := f.id
	// The stream is registered before its request is sent, because the server's agreement may come before Send
	// returns.
	s.streams.mu.Lock()
	st.agreed = false
	if s.streams.byID == nil {
		s.streams.byID = make(map[int64]*subscriptionStream)
	}
	s.streams.byID[id] = st
	s.streams.mu.Unlock()
	defer func() {
		s.streams.mu.Lock()
		delete(s.streams.byID, id)
		s.streams.mu.Unlock()
	}()
	// Streams exist in the modern era only, so m is not nil.
	m := s.modern.Load()
	r := request{method: "subscriptions/listen", fields: st.filterParams()}
	f.body = r.appendTo(f.body, id, m, nil)
	a, e := s.exchangeMessage(ctx, f, &transports.Message{ID: id, Method: r.method, Body: f.body, Version: m.version})
	if e == nil {
		e = a.asError(r.method)
	}
	if e != nil {
		e.Op = "read"
	}
	return e
}

// filterParams returns the params of the request: the notifications that the stream wants.
//
// 2026-07-28, Subscriptions: "All fields are optional. Omitting a field is equivalent to not subscribing to that
// notification type."
func (st *subscriptionStream) filterParams() []byte {
	b := append([]byte(nil), `"notifications":{`...)
	empty := len(b)
	for _, f := range []struct {
		wanted bool
		name   string
	}{{st.tools, "toolsListChanged"}, {st.prompts, "promptsListChanged"}, {st.resources, "resourcesListChanged"}} {
		if f.wanted {
			b = append(appendString(appendComma(b, empty), f.name), `:true`...)
		}
	}
	if len(st.uris) > 0 {
		b = append(appendComma(b, empty), `"resourceSubscriptions":[`...)
		list := len(b)
		for _, uri := range st.uris {
			b = appendString(appendComma(b, list), uri)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}
