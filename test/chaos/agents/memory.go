package agents

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// MemoryTransport is an http.RoundTripper that gives requests to a handler without a socket: in virtual time a socket would wait for the
// operating system, and time with it. All of its fields must be set.
type MemoryTransport struct {
	Handler http.Handler
	// Running counts the exchanges whose handler has not returned.
	Running *sync.WaitGroup
	// Report takes what the handler has done and may not do.
	Report func(text string)
}

// RoundTrip implements http.RoundTripper. The body of a request that was taken back can be read on.
func (t *MemoryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, toAgent := io.Pipe()
	w := &memoryWriter{report: t.Report, header: http.Header{}, out: toAgent, began: make(chan struct{})}
	served := r.Clone(r.Context())
	if r.Body == nil {
		served.Body = http.NoBody
	}
	t.Running.Go(func() {
		t.Handler.ServeHTTP(w, served)
		w.ended.Store(true)
		w.WriteHeader(http.StatusOK)
		_ = toAgent.Close()
	})
	<-w.began
	return &http.Response{StatusCode: w.status, Header: w.sent, Body: body, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// memoryWriter is the http.ResponseWriter of one exchange.
type memoryWriter struct {
	report func(text string)
	header http.Header
	out    *io.PipeWriter
	// ended is true once the handler has returned: nothing may be written any more.
	ended atomic.Bool
	once  sync.Once
	// began is closed with the status and the headers.
	began  chan struct{}
	status int
	sent   http.Header
}

func (w *memoryWriter) Header() http.Header { return w.header }

func (w *memoryWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.began)
	})
}

func (w *memoryWriter) Write(b []byte) (int, error) {
	if w.ended.Load() {
		w.report("something was written to an agent after its exchange was over")
	}
	w.WriteHeader(http.StatusOK)
	return w.out.Write(bytes.Clone(b))
}

// FlushError lets an http.ResponseController flush.
func (w *memoryWriter) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return nil
}
