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
	// reopenMost; half of it is random. A stream that lived for reopenCalm begins with the first pause again.
	reopenFirst = time.Second
	reopenMost  = 5 * time.Minute
	reopenCalm  = time.Minute
)

// subscriptionStreams are the standing requests subscriptions/listen of a session of the modern era: one for what is said about lists,
// and those for watched resources.
//
// They are no calls: no gate counts them, no patience waits for them, and the end of the session is their end.
type subscriptionStreams struct {
	mu   sync.Mutex
	byID map[int64]*subscriptionStream // those whose request is under way
	// methodUnknown says that the server does not know the method, known that it has agreed to a stream once.
	methodUnknown, agreedOnce bool
}

// subscriptionStream is what is listened to, by one request after the other until it is stopped.
type subscriptionStream struct {
	session *Session
	// tools, prompts and resources ask for what is said about lists; uris are watched resources.
	tools, prompts, resources bool
	uris                      []string
	// stop ends it; first takes what came of the first attempt, nil once the server has agreed.
	stop        context.CancelFunc
	firstResult chan *messages.Error

	// streams.mu guards these. agreed says that the server has agreed to the request that is under way, ever that it has
	// agreed once; honoured are the resources that it agreed to watch, last time; nothing, that it agreed to tell nothing
	// at all, which is the end of the stream.
	agreed, agreedOnce bool
	honouredURIs       map[string]struct{}
	agreedToNothing    bool
}

func (s *Session) newStream() *subscriptionStream {
	return &subscriptionStream{session: s, firstResult: make(chan *messages.Error, 1)}
}

// open begins to listen, until stop is called or the session has ended. again says that a first attempt that fails is
// not the last one.
func (st *subscriptionStream) open(retryFirst bool) bool {
	ctx, stop := context.WithCancel(st.session.lifetime)
	st.stop = stop
	if !st.session.spawn(func() { defer stop(); st.run(ctx, retryFirst) }) {
		stop()
		return false
	}
	return true
}

// run listens, and listens again.
//
// 2026-07-28, Subscriptions, Graceful Closure: "A client that receives this response knows the subscription closed cleanly;
// a transport that closes without it indicates an unexpected disconnect, which the client MAY treat as a trigger to
// reconnect." A server that ended one cleanly is asked again too: it may be one that starts anew behind the same address.
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

// reportFirst tells whoever opened the stream what came of it, once.
func (st *subscriptionStream) reportFirst(e *messages.Error) {
	select {
	case st.firstResult <- e:
	default:
	}
}

// noteEnded notes that a request has. It reports whether the server had agreed to it, and whether it does not know the method.
func (ss *subscriptionStreams) noteEnded(st *subscriptionStream, e *messages.Error) (agreed, refused bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	// Of a server that knows the method, what stands before it may have nothing at its address for a while.
	if e != nil && isUnknownMethod(e) && (e.Code == codeMethodNotFound || !ss.agreedOnce) {
		ss.methodUnknown = true
	}
	return st.agreed, ss.methodUnknown
}

// isUnknownMethod reports whether a server does not know the method, by its own words or by those of what stands before it.
func isUnknownMethod(e *messages.Error) bool {
	var te *transports.Error
	if e.Code == codeMethodNotFound {
		return true
	}
	return e.Code == 0 && errors.As(e.Err, &te) && (te.Status == http.StatusNotFound ||
		te.Status == http.StatusMethodNotAllowed || te.Status == http.StatusNotImplemented)
}

// listenOnce sends one request and waits for its end: nil if the server ended it by a response.
func (st *subscriptionStream) listenOnce(ctx context.Context) *messages.Error {
	s := st.session
	f, e := s.registerRequest(context.Background(), nil, false)
	if e != nil {
		return e
	}
	s.mu.Lock()
	f.longLived = true
	s.mu.Unlock()
	id := f.id
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

// filterParams says what is listened to.
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
