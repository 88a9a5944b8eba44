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

// Harness connects the suite with one kind of transport. The tests of each kind fill it in.
type Harness struct {
	// New starts a scripted peer and returns a transport that reaches it. It ends with t.Cleanup whatever it starts. Every call
	// gives a peer with a Script of its own, so that no test sees another one's messages.
	New func(t *testing.T, o Options) transports.Transport
	// Broken lists transports whose Dial must fail, by name, with the class that the error must have.
	Broken map[string]func(t *testing.T, o Options) (transports.Transport, messages.Class)
	// Features says which abilities this kind has.
	Features Features
	// Bound is the longest time that anything which must end may take: 0 means 1 min. It is a deadline, not a measurement.
	Bound time.Duration
}

// Options are the suite's wishes for a peer or its transport. New must respect both fields.
type Options struct {
	// MaxMessage is the limit of one incoming message; 0 leaves the transport's default.
	MaxMessage int64
	// Secret must be given to the transport in every place that holds credentials of this kind (an environment value, a header
	// value, a query value). The suite looks for it in every error and in Info, where it must not appear.
	Secret string
}

// Features are the abilities in which kinds of transport differ. The zero value is a plain HTTP exchange.
type Features struct {
	// OneStream means that all messages share one ordered stream (stdio, in-process): incoming order is kept, and a message that
	// waits behind a blocked one is NotWritten when its context ends.
	OneStream bool
	// SendWaits means that Send of a request returns only after the sink has its answer (streamable HTTP).
	SendWaits bool
	// DeathIsDown means that the peer's death ends the connection by itself, without another Send.
	DeathIsDown bool
	// Push means that the peer can send messages outside any answer.
	Push bool
	// Noise means that the peer can send lines that are no messages (stdio).
	Noise bool
	// Stall means that a peer which stops reading blocks writers after a finite number of bytes (at most 8 MiB).
	Stall bool
	// PID means that Info names the process of the peer.
	PID bool
	// CancelClosesStream means that in the modern era the end of a Send's context ends its exchange at the peer, and that
	// notifications/cancelled is not sent (streamable HTTP). The other kinds send it like any message.
	CancelClosesStream bool
}

// canarySecret is the secret that the suite plants. No encoding would change its characters, so that a plain search finds it.
const canarySecret = "canary7f3a9c51d2e8"

// suite is one test of the suite: a peer, its transport, and the bound. next numbers its requests. Its methods fail the test, so
// that the tests read as the sentences that they check.
type suite struct {
	Harness
	// t is the test or subtest; its cleanups end everything.
	t    *testing.T
	tr   transports.Transport
	next atomic.Int64
}

// conn is one connection under test, with the Recorder that is its sink.
type conn struct {
	transports.Conn
	*Recorder
	s *suite
}

// startSuite starts the peer of one test. The check for goroutines is registered first, so that it runs last.
func (h Harness) startSuite(t *testing.T, o Options) *suite {
	t.Helper()
	s := &suite{Harness: h, t: t}
	s.registerLeakCheck()
	if o.Secret == "" {
		// Every test plants it, because any of them may meet the error that shows it.
		o.Secret = canarySecret
	}
	// New may register cleanups of its own; they run before the check for goroutines.
	s.tr = h.New(t, o)
	return s
}

// registerLeakCheck compares the goroutines at the end of the test with those of now. Cleanups run in reverse order, so that the
// peer has ended by then. Goroutines that are about to end get Bound to do so.
func (s *suite) registerLeakCheck() {
	// Goroutines of earlier tests may still be ending; they do not count.
	before := goleak.IgnoreCurrent()
	s.t.Cleanup(func() {
		if s.t.Failed() {
			return // the goroutines of a failed test explain nothing
		}
		deadline := time.Now().Add(s.Bound)
		for {
			// Find itself waits a little between its looks, so that this loop does not spin.
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

// dialConn opens a connection that is closed, and checked, at the end of the test.
func (s *suite) dialConn() *conn {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.Bound)
	defer cancel()
	r := &Recorder{}
	c, err := s.tr.Dial(ctx, r)
	if err != nil {
		s.t.Fatalf("Dial: %v", err)
	}
	// Closing is registered after the peer's own cleanup, and so runs before it: the peer is there until Close has returned.
	cn := &conn{Conn: c, Recorder: r, s: s}
	s.t.Cleanup(cn.closeAndCheck)
	return cn
}

// closeAndCheck closes the connection and checks the sentences that hold for every connection after its end. A second call checks
// that Close is idempotent.
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
	// Close returns after Down, so that its call must be there by now.
	if n := len(c.Downs()); n != 1 {
		t.Errorf("Sink.Down was called %d times, not once: %v", n, c.Downs())
	}
	for _, err := range c.Downs() {
		c.s.checkError("Down", err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	// A status prints Info; only its session id may be a credential.
	c.s.checkSecret("Info", fmt.Sprintf("%+v", c.Info()))
	// A closed connection must refuse messages with an error of its own, and must not panic.
	if d, err := c.Send(context.Background(), c.s.newRequest("echo", nil)); err == nil || d != transports.NotWritten {
		t.Errorf("Send after the end: %v, %v; want not written and an error", d, err)
	} else {
		c.s.checkError("Send after the end", err)
	}
}

// checkError checks the sentences that hold for every error of this boundary: its type, its class, its text, and no secret in any
// error of its chain.
func (s *suite) checkError(what string, err error) {
	s.t.Helper()
	var e *transports.Error
	switch {
	case err == nil:
		s.t.Errorf("%s: the error is nil", what)
		return
	// Package transports promises its own type for every error, so that callers never see one of net or os.
	case !errors.As(err, &e):
		s.t.Errorf("%s: the error is a %T, not a *transports.Error: %v", what, err, err)
		return
	// Without a class the actor could not choose its next step.
	case e.Class == messages.ClassNone:
		s.t.Errorf("%s: the error has no class: %v", what, err)
	// Error.Error continues the text with its advice, which a full stop would cut off.
	case e.Text == "" || strings.HasSuffix(e.Text, "."):
		s.t.Errorf("%s: the text is not one sentence without a final full stop: %q", what, e.Text)
	}
	// A log may print the cause alone, or with its fields.
	for ; err != nil; err = errors.Unwrap(err) {
		s.checkSecret(what, fmt.Sprintf("%v %+v", err, err))
	}
	s.checkSecret(what, string(e.Body))
}

// checkSecret fails the test if text holds the planted secret.
func (s *suite) checkSecret(what, text string) {
	s.t.Helper()
	if strings.Contains(text, canarySecret) {
		s.t.Errorf("%s holds the secret: %s", what, text)
	}
}

// newRequest makes a request with a new id. params is marshalled, unless it is raw JSON in a string or a slice.
func (s *suite) newRequest(method string, params any) transports.Message {
	id := s.next.Add(1)
	// The body is written by hand, so that params stay byte for byte as the test wrote them.
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, rawParams(params))
	return transports.Message{ID: id, Method: method, Body: body}
}

// rawParams returns params as JSON; nil becomes an empty object.
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

// sendWritten sends one message and fails the test unless it is written.
func (c *conn) sendWritten(m transports.Message) {
	c.s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), c.s.Bound)
	defer cancel()
	// A nil error means Written, and Written means a nil error here.
	if d, err := c.Send(ctx, m); err != nil || d != transports.Written {
		c.s.t.Fatalf("Send %s: %v, %v; want written and no error", m.Method, d, err)
	}
}

// callPeer sends a request and returns its result.
func (c *conn) callPeer(method string, params any) json.RawMessage {
	c.s.t.Helper()
	m := c.s.newRequest(method, params)
	c.sendWritten(m)
	return c.Answer(c.s.t, c.s.Bound, m.ID)
}

// checkAlive checks by an echo that the connection still works, and that Down was not called. Most tests end with it: whatever
// they have done to the connection must not have harmed it.
func (c *conn) checkAlive(after string) {
	c.s.t.Helper()
	// The echo takes the whole way there and back.
	const probe = `{"still":"alive"}`
	if got := c.callPeer("echo", probe); string(got) != probe {
		c.s.t.Errorf("after %s, echo gave %s", after, got)
	}
	// An echo may have come just before the end.
	if d := c.Downs(); len(d) > 0 {
		c.s.t.Errorf("after %s, the connection is down: %v", after, d)
	}
}

// seenByPeer asks the peer for the messages that have arrived, and counts them by their text in Script.Seen.
func (c *conn) seenByPeer() map[string]int {
	c.s.t.Helper()
	var list []string
	if err := json.Unmarshal(c.callPeer("seen", nil), &list); err != nil {
		c.s.t.Fatalf("seen: %v", err)
	}
	// The order is not promised, only the number of each.
	out := map[string]int{}
	// A count above one is a message that was sent twice.
	for _, w := range list {
		out[w]++
	}
	return out
}

// runWithin runs f and fails the test if f does not return within the bound. The goroutine of f is left behind then. A test that
// hung would only show as the timeout of the whole run.
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
