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

// discardLogger swallows what net/http says of connections that we break on purpose.
var discardLogger = log.New(io.Discard, "", 0)

// httpExchange is one request over HTTP and what becomes of it. Its goroutine is that of the request; everybody else tells it
// what to do.
type httpExchange struct {
	rw       http.ResponseWriter
	req      *http.Request
	envelope envelope

	mu          sync.Mutex
	sse         bool
	queue       []directive
	wake        chan struct{} // holds one token while queue is not empty
	headWritten bool          // only run uses it: the head of the response has been written
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

func statusDirective(code int) directive { return directive{code: code} }

// refusalDirective is a status with what belongs to it; 0 resets the connection.
func refusalDirective(code int, retryAfter time.Duration, header map[string]string, body []byte) directive {
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

func newHTTPExchange(rw http.ResponseWriter, req *http.Request, message envelope) *httpExchange {
	return &httpExchange{rw: rw, req: req, envelope: message, wake: make(chan struct{}, 1)}
}

// addDirective adds a directive. It does not block.
func (x *httpExchange) addDirective(d directive) {
	x.mu.Lock()
	x.queue = append(x.queue, d)
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// useEventStream makes the response an event stream, unless its head has been written. It never becomes JSON again.
func (x *httpExchange) useEventStream(enabled bool) {
	x.mu.Lock()
	x.sse = x.sse || enabled
	x.mu.Unlock()
}

func (x *httpExchange) nextDirective() (d directive, sse, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.queue) == 0 {
		return d, x.sse, false
	}
	d = x.queue[0]
	x.queue = x.queue[1:]
	return d, x.sse, true
}

// runDirectives does what is told until the response is over or the client has gone away; left is called then.
func (x *httpExchange) runDirectives(onEnd func()) {
	defer onEnd()
	for {
		select {
		case <-x.wake:
		case <-x.req.Context().Done():
			return
		}
		for {
			d, sse, ok := x.nextDirective()
			if !ok {
				break
			}
			if !x.performDirective(d, sse) {
				return
			}
		}
	}
}

// performDirective does one thing. It reports false when nothing follows.
func (x *httpExchange) performDirective(d directive, sse bool) bool {
	switch {
	case d.reset:
		x.resetAndAbort()
		return false
	case d.abort, d.cut && !sse:
		panic(http.ErrAbortHandler) // net/http closes the connection; run's left has its turn
	case d.end, d.cut:
		return false
	case d.begin:
		x.writeHead("text/event-stream", "")
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
			x.writeSlowly(d.raw, d.chunk, d.every)
		}
		return true
	}
	x.writeMessage(d, sse)
	return !d.last
}

// writeMessage writes one: the whole body of a response, or an event of a stream.
func (x *httpExchange) writeMessage(d directive, sse bool) {
	out := d.body
	if !sse {
		kind := d.kind
		if kind == "" {
			kind = "application/json"
		}
		x.rw.Header().Set("Content-Length", fmt.Sprint(len(d.body)))
		x.writeHead(kind, d.session)
	} else {
		x.writeHead("text/event-stream", d.session)
		event := d.event
		if event == "" {
			event = "message"
		}
		out = fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, d.body)
	}
	if d.cutAt > 0 {
		_, _ = x.rw.Write(out[:min(d.cutAt, len(out))])
		x.flushResponse()
		panic(http.ErrAbortHandler)
	}
	x.writeSlowly(out, d.chunk, d.every)
}

// writeHead writes the head of the response, once.
func (x *httpExchange) writeHead(kind, session string) {
	if x.headWritten {
		return
	}
	x.headWritten = true
	x.rw.Header().Set("Content-Type", kind)
	if session != "" {
		x.rw.Header().Set("Mcp-Session-Id", session)
	}
	x.rw.WriteHeader(http.StatusOK)
	x.flushResponse()
}

func (x *httpExchange) flushResponse() { _ = http.NewResponseController(x.rw).Flush() }

// writeSlowly writes so many bytes every so often, or everything at once.
func (x *httpExchange) writeSlowly(p []byte, chunk int, every time.Duration) {
	for chunk > 0 && len(p) > chunk {
		_, _ = x.rw.Write(p[:chunk])
		x.flushResponse()
		p = p[chunk:]
		if !sleepOrDone(x.req.Context(), every) {
			return
		}
	}
	_, _ = x.rw.Write(p)
	x.flushResponse()
}

// resetAndAbort resets the connection.
func (x *httpExchange) resetAndAbort() {
	if c, ok := x.req.Context().Value(socketKey{}).(net.Conn); ok {
		resetSocket(c)
	}
	panic(http.ErrAbortHandler)
}

// sleepOrDone reports false if ctx ended first.
func sleepOrDone(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
