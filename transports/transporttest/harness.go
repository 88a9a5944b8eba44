package transporttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Harness connects the suite with one kind of transport.
type Harness struct {
	// New starts a scripted peer and returns a transport that reaches it. What it starts, it ends with t.Cleanup.
	// Every call gives a peer with a Script of its own.
	New func(t *testing.T, o Options) transports.Transport
	// Broken lists transports whose Dial must fail, by name, with the class that the error must have.
	Broken map[string]func(t *testing.T, o Options) (transports.Transport, messages.Class)
	// Features says what this kind can do.
	Features Features
	// Bound is how long anything that must end may take: 0 means 15 s. It is a deadline, not a measurement.
	Bound time.Duration
}

// Options is what the suite asks of a peer or its transport.
type Options struct {
	// MaxMessage is the limit of one incoming message; 0 leaves the transport's default.
	MaxMessage int64
	// Secret must be given to the transport in every place that holds credentials of this kind (an environment value,
	// a header value, a query value). The suite looks for it in every error and in Info.
	Secret string
}

// Features is what a kind of transport can do. The zero value is a plain HTTP exchange.
type Features struct {
	// OneStream: all messages share one ordered stream (stdio, in-process), so incoming order is kept, and a message
	// queued behind a blocked one is NotWritten when its context ends.
	OneStream bool
	// SendWaits: Send of a request returns only after its answer has reached the sink (streamable HTTP).
	SendWaits bool
	// DeathIsDown: the peer's death ends the connection by itself.
	DeathIsDown bool
	// Push: the peer can send outside any answer.
	Push bool
	// Noise: there is such a thing as a line that is no message (stdio).
	Noise bool
	// Stall: a peer that stops reading holds up writing after a finite number of bytes (at most 8 MiB).
	Stall bool
	// PID: Info names the process of the peer.
	PID bool
	// CancelClosesStream: in the modern era, the end of a Send's context ends its exchange at the peer, and
	// notifications/cancelled is not sent (streamable HTTP). Elsewhere it is sent like everything.
	CancelClosesStream bool
}

// canarySecret is the canary of the suite. It has no character that an encoding would change.
const canarySecret = "canary7f3a9c51d2e8"

// suite is one test of the suite: a peer, its transport, and the bound.
type suite struct {
	Harness
	t    *testing.T
	tr   transports.Transport
	next atomic.Int64
}

// conn is one connection under test, with its recorder.
type conn struct {
	transports.Conn
	*Recorder
	s *suite
}

func (h Harness) startSuite(t *testing.T, o Options) *suite {
	t.Helper()
	s := &suite{Harness: h, t: t}
	s.registerLeakCheck()
	if o.Secret == "" {
		o.Secret = canarySecret
	}
	s.tr = h.New(t, o)
	return s
}

// registerLeakCheck registers the comparison of goroutines. It is registered first and therefore runs last, after the peer is gone.
func (s *suite) registerLeakCheck() {
	before := goleak.IgnoreCurrent()
	s.t.Cleanup(func() {
		if s.t.Failed() {
			return // what a failed test leaves behind is not news
		}
		deadline := time.Now().Add(s.Bound)
		for {
			err := goleak.Find(before)
			if err == nil {
				return
			}
			if time.Now().After(deadline) {
				s.t.Errorf("goroutines are left: %v", err)
				return
			}
		}
	})
}

// dialConn opens a connection that is closed, and judged, at the end of the test.
func (s *suite) dialConn() *conn {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.Bound)
	defer cancel()
	r := &Recorder{}
	c, err := s.tr.Dial(ctx, r)
	if err != nil {
		s.t.Fatalf("Dial: %v", err)
	}
	cn := &conn{Conn: c, Recorder: r, s: s}
	s.t.Cleanup(cn.closeAndCheck)
	return cn
}

// closeAndCheck closes the connection and checks what must hold for every connection after its end.
func (c *conn) closeAndCheck() {
	t := c.s.t
	ctx, cancel := context.WithTimeout(context.Background(), c.s.Bound)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	select {
	case <-c.Released():
	case <-ctx.Done():
		t.Errorf("Released is not closed %v after Close", c.s.Bound)
	}
	if n := len(c.Downs()); n != 1 {
		t.Errorf("Sink.Down was called %d times, not once: %v", n, c.Downs())
	}
	for _, err := range c.Downs() {
		c.s.checkError("Down", err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	c.s.checkSecret("Info", fmt.Sprintf("%+v", c.Info()))
	if d, err := c.Send(context.Background(), c.s.newRequest("echo", nil)); err == nil || d != transports.NotWritten {
		t.Errorf("Send after the end: %v, %v; want not written and an error", d, err)
	} else {
		c.s.checkError("Send after the end", err)
	}
}

// checkError checks what holds for every error of this boundary.
func (s *suite) checkError(what string, err error) {
	s.t.Helper()
	var e *transports.Error
	switch {
	case err == nil:
		s.t.Errorf("%s: the error is nil", what)
		return
	case !errors.As(err, &e):
		s.t.Errorf("%s: the error is a %T, not a *transports.Error: %v", what, err, err)
		return
	case e.Class == messages.ClassNone:
		s.t.Errorf("%s: the error has no class: %v", what, err)
	case e.Text == "" || strings.HasSuffix(e.Text, "."):
		s.t.Errorf("%s: the text is not one sentence without a final full stop: %q", what, e.Text)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		s.checkSecret(what, fmt.Sprintf("%v %+v", err, err))
	}
	s.checkSecret(what, string(e.Body))
}

func (s *suite) checkSecret(what, text string) {
	s.t.Helper()
	if strings.Contains(text, canarySecret) {
		s.t.Errorf("%s holds the secret: %s", what, text)
	}
}

// newRequest makes a request with a new id. params is marshalled, or taken as it is if it is raw JSON.
func (s *suite) newRequest(method string, params any) transports.Message {
	id := s.next.Add(1)
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, rawParams(params))
	return transports.Message{ID: id, Method: method, Body: body}
}

func rawParams(v any) []byte {
	switch v := v.(type) {
	case nil:
		return []byte(`{}`)
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	b, err := json.Marshal(v)
	if err != nil { // the suite writes its own params
		panic(err)
	}
	return b
}

// sendWritten sends one message that must be written.
func (c *conn) sendWritten(m transports.Message) {
	c.s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), c.s.Bound)
	defer cancel()
	if d, err := c.Send(ctx, m); err != nil || d != transports.Written {
		c.s.t.Fatalf("Send %s: %v, %v; want written and no error", m.Method, d, err)
	}
}

// callPeer sends a request and returns the result.
func (c *conn) callPeer(method string, params any) json.RawMessage {
	c.s.t.Helper()
	m := c.s.newRequest(method, params)
	c.sendWritten(m)
	return c.Answer(c.s.t, c.s.Bound, m.ID)
}

// checkAlive checks that the connection still works.
func (c *conn) checkAlive(after string) {
	c.s.t.Helper()
	const probe = `{"still":"alive"}`
	if got := c.callPeer("echo", probe); string(got) != probe {
		c.s.t.Errorf("after %s, echo gave %s", after, got)
	}
	if d := c.Downs(); len(d) > 0 {
		c.s.t.Errorf("after %s, the connection is down: %v", after, d)
	}
}

// seenByPeer asks the peer what has arrived.
func (c *conn) seenByPeer() map[string]int {
	c.s.t.Helper()
	var list []string
	if err := json.Unmarshal(c.callPeer("seen", nil), &list); err != nil {
		c.s.t.Fatalf("seen: %v", err)
	}
	out := map[string]int{}
	for _, w := range list {
		out[w]++
	}
	return out
}

// runWithin runs f and fails the test if it does not return within the bound.
func (s *suite) runWithin(what string, f func()) {
	s.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(s.Bound):
		s.t.Fatalf("%s has not returned after %v", what, s.Bound)
	}
}
