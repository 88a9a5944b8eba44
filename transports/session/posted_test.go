package session_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// postWire is a connection on which posted requests wait to be written.
type postWire struct {
	*wire
	posted     chan transports.Message // a call was posted
	failed     chan struct{}
	d          transports.Delivery // what Leave says
	err        error
	leaveCalls int
}

func (w *postWire) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	_, err := w.wire.Dial(ctx, sink)
	return w, err
}

func (w *postWire) Post(m transports.Message) (transports.PendingPost, transports.Delivery, error) {
	if m.Method != "tools/call" {
		d, err := w.Send(context.Background(), m)
		return nil, d, err
	}
	w.posted <- m
	return w, transports.MaybeWritten, nil
}

func (w *postWire) Failed() <-chan struct{} { return w.failed }

func (w *postWire) Leave() (transports.Delivery, error) {
	w.leaveCalls++
	return w.d, w.err
}

// TestACallThatIsPosted: a posted request may have got any distance when its wait ends; its call has one outcome, and
// Leave is called once.
func TestACallThatIsPosted(t *testing.T) {
	answer := func(w *postWire, id int64) {
		w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, id))
	}
	fail := func(w *postWire, _ int64) {
		w.err = &transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"}
		w.failed <- struct{}{}
	}
	die := func(w *postWire, _ int64) {
		w.err = &transports.Error{Class: messages.ClassExited, Text: "the process ended"}
		w.end(w.err)
	}
	dieSilently := func(w *postWire, _ int64) {
		w.end(&transports.Error{Class: messages.ClassExited, Text: "the process ended"})
	}
	const written, maybe, not = transports.Written, transports.MaybeWritten, transports.NotWritten
	for name, c := range map[string]struct {
		d         transports.Delivery
		act       func(w *postWire, id int64)
		leave     bool // the caller does
		want      messages.Outcome
		class     messages.Class
		cancelled bool // the server gets a cancellation
	}{
		"answered":                 {d: written, act: answer, want: messages.OutcomeResult},
		"answered unread":          {d: not, act: answer, want: messages.OutcomeResult},
		"late, in the queue":       {d: not, want: messages.OutcomeNotSent, class: messages.ClassTimeout},
		"late, half written":       {d: maybe, want: messages.OutcomeUnknown, class: messages.ClassTimeout, cancelled: true},
		"late, written":            {d: written, want: messages.OutcomeUnknown, class: messages.ClassTimeout, cancelled: true},
		"left in the queue":        {d: not, leave: true, want: messages.OutcomeNotSent, class: messages.ClassCanceled},
		"left half written":        {d: maybe, leave: true, want: messages.OutcomeUnknown, class: messages.ClassCanceled, cancelled: true},
		"failed in the queue":      {d: not, act: fail, want: messages.OutcomeNotSent, class: messages.ClassCanceled},
		"failed half written":      {d: maybe, act: fail, want: messages.OutcomeUnknown, class: messages.ClassCanceled},
		"dead, in the queue":       {d: not, act: die, want: messages.OutcomeNotSent, class: messages.ClassExited},
		"dead, half written":       {d: maybe, act: die, want: messages.OutcomeUnknown, class: messages.ClassExited},
		"dead, still in the queue": {d: not, act: dieSilently, want: messages.OutcomeNotSent, class: messages.ClassExited},
		"dead, written":            {d: written, act: dieSilently, want: messages.OutcomeUnknown, class: messages.ClassExited},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &postWire{wire: &wire{}, posted: make(chan transports.Message, 1), failed: make(chan struct{}, 1), d: c.d}
				hello(w.wire, nil)
				s, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraLegacy})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.Close(t.Context()) }()
				if _, err := s.Handshake(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.takeSent()
				parent, leave := context.WithCancel(t.Context())
				defer leave()
				ctx := session.NewCallTimeout(parent, time.Second, 0)
				defer ctx.Stop()
				go func() {
					m := <-w.posted
					time.Sleep(time.Millisecond)
					if c.act != nil {
						c.act(w, m.ID)
					}
					if c.leave {
						leave()
					}
				}()
				_, err = s.OpenGate().Call(ctx, "tool", nil)
				got := messages.OutcomeOf(err)
				if err == nil {
					got = messages.OutcomeResult
				}
				if got != c.want || err != nil && messages.ClassOf(err) != c.class || w.leaveCalls != 1 {
					t.Errorf("%s, %v, left %d times; want %s of class %s", got, err, w.leaveCalls, c.want, c.class)
				}
				synctest.Wait()
				if sent := w.takeSent(); (len(sent) == 1 && sent[0].Method == "notifications/cancelled") != c.cancelled {
					t.Errorf("the server is told %v", sent)
				}
			})
		})
	}
}
