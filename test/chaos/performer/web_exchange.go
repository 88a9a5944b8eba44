package performer

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

// discardLogger drops what net/http logs about connections that the harness breaks on purpose.
var discardLogger = log.New(io.Discard, "", 0)

// httpExchange is one request over HTTP and its response. Only the goroutine of the request writes the response; other
// goroutines, which hold the server's lock and must not block, queue directives for it.
type httpExchange struct {
	rw  http.ResponseWriter
	req *http.Request
	// envelope is empty for GET and DELETE.
	envelope envelope

	// mu guards sse and queue. sse is set if the response is an event stream.
	mu    sync.Mutex
	sse   bool
	queue []directive
	// wake holds one token while queue is not empty.
	wake chan struct{}
	// headWritten is set when the head of the response is written; only runDirectives' goroutine uses it.
	headWritten bool
}

// directive is one thing that an exchange does. The zero value of a field means that it does not ask for that.
type directive struct {
	// Write the head of an event stream.
	begin bool
	// Send a message, with this event type ("message" if empty), and with this session and content type in the head.
	body    []byte
	event   string
	session string
	kind    string
	// Write bytes that are no message, repeat times; chunk and every slow them, or the message, down.
	raw    []byte
	repeat int
	chunk  int
	every  time.Duration
	// Break the response off after so many bytes of the message.
	cutAt int
	// The message is the answer, and nothing follows.
	last bool

	// Refuse the request with this HTTP status, these headers and body.
	code   int
	header map[string]string

	// End the stream properly, cut it without an answer, close the connection, or reset it.
	end   bool
	cut   bool
	abort bool
	reset bool
}

// statusDirective refuses a request with a bare status.
func statusDirective(code int) directive { return directive{code: code} }

// refusalDirective refuses a request with a status and what belongs to it; code 0 resets the connection.
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

// newHTTPExchange makes the exchange of a request; the goroutine of the request must call runDirectives.
func newHTTPExchange(rw http.ResponseWriter, req *http.Request, message envelope) *httpExchange {
	return &httpExchange{rw: rw, req: req, envelope: message, wake: make(chan struct{}, 1)}
}

// addDirective queues a directive. It does not block, and the queue has no bound: the machine writes no more than its faults
// ask for.
func (x *httpExchange) addDirective(d directive) {
	x.mu.Lock()
	x.queue = append(x.queue, d)
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// useEventStream makes the response an event stream, unless its head is written already. A stream never becomes JSON again,
// because earlier messages may have gone out as events.
func (x *httpExchange) useEventStream(enabled bool) {
	x.mu.Lock()
	x.sse = x.sse || enabled
	x.mu.Unlock()
}

// nextDirective removes and returns the first directive, false if there is none.
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

// runDirectives performs directives until the response is over or the client has gone away, and calls onEnd then, also if
// performDirective panics to break the connection.
func (x *httpExchange) runDirectives(onEnd func()) {
	defer onEnd()
	for {
		select {
		case <-x.wake:
		// The client has gone, or the endpoint closes; what is queued has no reader.
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

// performDirective performs one directive. It returns false when nothing follows, and panics to make net/http close the
// connection.
func (x *httpExchange) performDirective(d directive, sse bool) bool {
	switch {
	case d.reset:
		x.resetAndAbort()
		return false
	case d.abort, d.cut && !sse:
		// net/http recovers this panic and closes the connection; runDirectives' onEnd runs first.
		panic(http.ErrAbortHandler)
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

// writeMessage writes a message: as the whole body of a JSON response, or as an event of a stream.
func (x *httpExchange) writeMessage(d directive, sse bool) {
	out := d.body
	if !sse {
		kind := d.kind
		if kind == "" {
			kind = "application/json"
		}
		// The length is announced even if cutAt breaks the body off: that is how a client sees that bytes are missing.
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

// writeHead writes the head of the response, once; later calls do nothing.
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

// flushResponse sends what was written so far. An error means that the client has gone, which the request's context tells.
func (x *httpExchange) flushResponse() { _ = http.NewResponseController(x.rw).Flush() }

// writeSlowly writes chunk bytes each every, or everything at once if chunk is 0. It stops when the client goes away.
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

// resetAndAbort resets the TCP connection and ends the request.
func (x *httpExchange) resetAndAbort() {
	if c, ok := x.req.Context().Value(socketKey{}).(net.Conn); ok {
		resetSocket(c)
	}
	panic(http.ErrAbortHandler)
}

// sleepOrDone waits for d. It returns false if ctx ended first.
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
