package live

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// quiet swallows what net/http says of connections that we break on purpose.
var quiet = log.New(io.Discard, "", 0)

// exchange is one request over HTTP and what becomes of it. Its goroutine is that of the request; everybody else tells it
// what to do.
type exchange struct {
	rw   http.ResponseWriter
	req  *http.Request
	asks envelope

	mu    sync.Mutex
	sse   bool
	queue []directive
	wake  chan struct{} // holds one token while queue is not empty
	begun bool          // only run uses it: the head of the response has been written
}

// directive is one thing that an exchange shall do.
type directive struct {
	begin   bool   // write the head of a stream
	body    []byte // a message
	event   string // its event, "message" if empty
	session string // goes with the head
	kind    string // its content type, if not the usual one
	raw     []byte // bytes that are no message
	repeat  int
	chunk   int
	every   time.Duration
	cutAt   int  // so many bytes, and then the response breaks off
	last    bool // the answer: nothing follows

	code   int // refuse with this status
	header map[string]string

	end   bool // end the stream as it should end
	cut   bool // end it without an answer
	abort bool // close the connection
	reset bool // reset it
}

func status(code int) directive { return directive{code: code} }

// refusal is a status with what belongs to it; 0 resets the connection.
func refusal(code int, retryAfter time.Duration, header map[string]string, body []byte) directive {
	if code == 0 {
		return directive{reset: true}
	}
	d := directive{code: code, header: maps.Clone(header), body: body}
	if retryAfter > 0 {
		if d.header == nil {
			d.header = map[string]string{}
		}
		d.header["Retry-After"] = fmt.Sprint(int((retryAfter + time.Second - 1) / time.Second))
	}
	return d
}

func newExchange(rw http.ResponseWriter, req *http.Request, asks envelope) *exchange {
	return &exchange{rw: rw, req: req, asks: asks, wake: make(chan struct{}, 1)}
}

// tell adds a directive. It does not block.
func (x *exchange) tell(d directive) {
	x.mu.Lock()
	x.queue = append(x.queue, d)
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// streams makes the response an event stream, unless its head has been written. It never becomes JSON again.
func (x *exchange) streams(yes bool) {
	x.mu.Lock()
	x.sse = x.sse || yes
	x.mu.Unlock()
}

func (x *exchange) next() (d directive, sse, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.queue) == 0 {
		return d, x.sse, false
	}
	d = x.queue[0]
	x.queue = x.queue[1:]
	return d, x.sse, true
}

// run does what is told until the response is over or the client has gone away; left is called then.
func (x *exchange) run(left func()) {
	defer left()
	for {
		select {
		case <-x.wake:
		case <-x.req.Context().Done():
			return
		}
		for {
			d, sse, ok := x.next()
			if !ok {
				break
			}
			if !x.do(d, sse) {
				return
			}
		}
	}
}

// do does one thing. It reports false when nothing follows.
func (x *exchange) do(d directive, sse bool) bool {
	switch {
	case d.reset:
		x.hangUp()
		return false
	case d.abort, d.cut && !sse:
		panic(http.ErrAbortHandler) // net/http closes the connection; run's left has its turn
	case d.end, d.cut:
		return false
	case d.begin:
		x.head("text/event-stream", "")
		return true
	case d.code != 0:
		for name, value := range d.header {
			x.rw.Header().Set(name, value)
		}
		x.rw.WriteHeader(d.code)
		_, _ = x.rw.Write(d.body)
		return false
	case d.raw != nil:
		for range max(d.repeat, 1) {
			x.drip(d.raw, d.chunk, d.every)
		}
		return true
	}
	x.message(d, sse)
	return !d.last
}

// message writes one: the whole body of a response, or an event of a stream.
func (x *exchange) message(d directive, sse bool) {
	out := d.body
	if !sse {
		kind := d.kind
		if kind == "" {
			kind = "application/json"
		}
		x.rw.Header().Set("Content-Length", fmt.Sprint(len(d.body)))
		x.head(kind, d.session)
	} else {
		x.head("text/event-stream", d.session)
		event := d.event
		if event == "" {
			event = "message"
		}
		out = fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, d.body)
	}
	if d.cutAt > 0 {
		_, _ = x.rw.Write(out[:min(d.cutAt, len(out))])
		x.flush()
		panic(http.ErrAbortHandler)
	}
	x.drip(out, d.chunk, d.every)
}

// head writes the head of the response, once.
func (x *exchange) head(kind, session string) {
	if x.begun {
		return
	}
	x.begun = true
	x.rw.Header().Set("Content-Type", kind)
	if session != "" {
		x.rw.Header().Set("Mcp-Session-Id", session)
	}
	x.rw.WriteHeader(http.StatusOK)
	x.flush()
}

func (x *exchange) flush() { _ = http.NewResponseController(x.rw).Flush() }

// drip writes so many bytes every so often, or everything at once.
func (x *exchange) drip(p []byte, chunk int, every time.Duration) {
	for chunk > 0 && len(p) > chunk {
		_, _ = x.rw.Write(p[:chunk])
		x.flush()
		p = p[chunk:]
		if !pause(x.req.Context(), every) {
			return
		}
	}
	_, _ = x.rw.Write(p)
	x.flush()
}

// hangUp resets the connection.
func (x *exchange) hangUp() {
	if c, ok := x.req.Context().Value(socket{}).(net.Conn); ok {
		reset(c)
	}
	panic(http.ErrAbortHandler)
}

// pause reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
