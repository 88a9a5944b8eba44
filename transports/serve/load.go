package serve

import "net/http"

// This file bounds what the agents of one principal make an endpoint over HTTP hold.

// load counts the exchanges of one principal at an endpoint, and the bytes that they hold. The lock of the handler guards it.
type load struct {
	// inFlight counts its exchanges, each as one of a kind.
	inFlight [requestKinds]int
	// held are the bytes of large messages and of standing ones, unread those of large answers that are not written.
	held, unread int64
}

// A requestKind has one bound.
type requestKind int

const (
	// readingKind are messages that are being read, and those that are no requests: an answer to a question of a server gets through although
	// all requests wait.
	readingKind requestKind = iota
	// passingKind are requests that end by themselves, standingKind those that stay.
	passingKind
	standingKind
	requestKinds
)

// freeBytes is the size up to which a message is not counted: as many as requests are bounded.
const freeBytes = 64 << 10

// maxIdleLoads is how many principals have a load when none of them has anything in flight: most endpoints have few, who come again.
const maxIdleLoads = 64

// mostOf returns the bound of a kind.
func (h *Handler) mostOf(p *Principal, kind requestKind) int {
	switch {
	case kind == standingKind && p.MaxSessions > 0:
		return p.MaxSessions
	case kind == standingKind:
		return h.o.MaxSessions
	case p.MaxRequests > 0:
		return p.MaxRequests
	default:
		return h.o.MaxRequests
	}
}

// enterLoad counts an exchange whose message is to be read, or refuses it.
func (h *Handler) enterLoad(x *exchange) *Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.loads[x.principal.Name]
	if l == nil {
		l = &load{}
		h.loads[x.principal.Name] = l
	}
	if l.inFlight[readingKind] >= h.mostOf(&x.principal, readingKind) {
		return tooManyError()
	}
	l.inFlight[readingKind]++
	x.load = l
	return nil
}

// beginRequest counts an exchange as a request from here on, or refuses it: the principal has too many, or the endpoint ends.
func (h *Handler) beginRequest(x *exchange, kind requestKind) *Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.drained != nil:
		return &Error{Code: CodeBusy, Message: "the endpoint is being closed", status: http.StatusServiceUnavailable}
	case x.load.inFlight[kind] >= h.mostOf(&x.principal, kind):
		return tooManyError()
	}
	x.load.inFlight[readingKind]--
	x.load.inFlight[kind]++
	x.kind = kind
	h.total++
	return nil
}

func tooManyError() *Error {
	return &Error{Code: CodeBusy, Message: "too many requests are being answered", status: http.StatusTooManyRequests}
}

func tooManyBytesError() *Error {
	return &Error{Code: CodeBusy, Message: "too many bytes of messages are held", status: http.StatusTooManyRequests}
}

// leaveLoad counts an exchange no more.
func (h *Handler) leaveLoad(x *exchange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x.load.held -= x.held
	x.load.inFlight[x.kind]--
	if x.load.inFlight == ([requestKinds]int{}) && len(h.loads) > maxIdleLoads {
		delete(h.loads, x.principal.Name)
	}
	if x.kind == readingKind {
		return
	}
	if h.total--; h.total == 0 && h.drained != nil {
		close(h.drained)
	}
}

// InFlight returns how many exchanges are counted against the bounds of the principals, and how many bytes they hold: nothing of either once the
// endpoint has been closed and its agents have gone.
func (h *Handler) InFlight() (exchanges int, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.loads {
		// A count below zero would hide another one.
		for _, n := range l.inFlight {
			exchanges += max(n, -n)
		}
		bytes += max(l.held, -l.held) + max(l.unread, -l.unread)
	}
	return exchanges, bytes
}

// holdBytes counts so many bytes of a message, or refuses them.
func (h *Handler) holdBytes(x *exchange, size int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.load.held+size-x.held > h.o.MaxBytes {
		return false
	}
	x.load.held += size - x.held
	x.held = size
	return true
}

// holdAnswer counts a large answer of a request until it is written, or refuses it.
func (h *Handler) holdAnswer(r *Request, n int64) *Error {
	if n <= freeBytes {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case exceedsUnread(r.Session.unread, n, h.o.MaxUnread):
		return unreadError(int(n), r.Session.unread)
	case exceedsUnread(r.load.unread, n, h.o.MaxBytes):
		return unreadError(int(n), r.load.unread)
	}
	r.load.unread += n
	r.Session.unread += n
	return nil
}

// releaseAnswer counts an answer no more that holdAnswer has let in.
func (h *Handler) releaseAnswer(r *Request, n int64) {
	if n <= freeBytes {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Session.unread -= n
	r.load.unread -= n
}
