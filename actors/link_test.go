package actors

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/internal/queue"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// errCached stands for an end without an error for which the server was not asked: that said nothing of it, and ended the row of a random day
// (seed 20902127: agents listed what the server does not have).
var errCached = errors.New("from a cache")

// The link tells the server's actor of calls whose ends throw doubt on the connection, so that the actor looks at it: refused
// credentials, a broken connection, and two timeouts in a row in which the server said nothing. It tells of no other end.
func TestTheEndOfACallTellsOfItsConnection(t *testing.T) {
	ends := func(class messages.Class) error { return &messages.Error{Class: class} }
	for _, c := range []struct {
		what     string
		ends     []error
		received int
	}{
		{"answers", []error{nil, nil, nil}, 0},
		{"two with an answer from a cache between them", []error{ends(messages.ClassTimeout), errCached, ends(messages.ClassTimeout)}, 1},
		{"what the server refuses", []error{ends(messages.ClassRejected), ends(messages.ClassRejected)}, 0},
		{"credentials that are refused", []error{ends(messages.ClassUnauthorized)}, 1},
		{"a broken connection", []error{ends(messages.ClassNetwork)}, 1},
		{"one timeout in silence", []error{ends(messages.ClassTimeout)}, 0},
		{"two in a row", []error{ends(messages.ClassTimeout), ends(messages.ClassTimeout)}, 1},
		{"three in a row", []error{ends(messages.ClassTimeout), ends(messages.ClassTimeout), ends(messages.ClassTimeout)}, 1},
		{"two with an answer between them", []error{ends(messages.ClassTimeout), nil, ends(messages.ClassTimeout)}, 0},
	} {
		received, heard := 0, time.Now()
		l := &Link{reportError: func(error) { received++ }, lastHeard: func() time.Time { return heard }}
		for _, err := range c.ends {
			before := heard
			switch {
			case err == nil:
				heard = heard.Add(time.Millisecond)
			case errors.Is(err, errCached):
				err = nil
			}
			l.noteResult(err, before)
		}
		if received != c.received {
			t.Errorf("%s: somebody is told %d times, not %d", c.what, received, c.received)
		}
		l.noteResult(ends(messages.ClassTimeout), heard.Add(-time.Second)) // it was heard since
		l.noteResult(ends(messages.ClassTimeout), heard)
		if received != c.received {
			t.Errorf("%s: a server that talks counts as silent", c.what)
		}
	}
}

// Who gives up in the moment in which it is its turn gives its place back.
func TestWhoGivesUpInItsTurnKeepsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := new(Cell).setCallLimits(queue.Limits{InFlight: 1, Waiting: 1})
		if in, err := turns.acquireSlot(t.Context(), nil); !in || err != nil {
			t.Fatal(in, err)
		}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		gate := openGate(t)
		go func() {
			_, err := turns.acquireSlot(ctx, gate)
			ended <- err
		}()
		synctest.Wait()
		turns.mu.Lock() // it gives up, and before it can say so it is told to go
		leave()
		next := turns.q.Leave()
		turns.mu.Unlock()
		if next == nil {
			t.Fatal("nobody waits")
		}
		next.Value <- true
		<-ended
		synctest.Wait()
		bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if in, err := turns.acquireSlot(bounded, gate); !in || err != nil {
			t.Errorf("a place is lost: %v, %v", in, err)
		}
	})
}

// lateContext is a context whose timer has not run yet in the instant of its deadline.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Calls that were made together have one deadline. The first frees its slot in the instant in which the next one, which waits for it,
// has to end as well: that one is not sent any more, whichever timer runs first.
func TestASlotOfTheLastInstantIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := new(Cell).setCallLimits(queue.Limits{InFlight: 1, Waiting: 1})
		gate := openGate(t)
		if in, err := turns.acquireSlot(t.Context(), gate); !in || err != nil {
			t.Fatal(in, err)
		}
		time.AfterFunc(time.Minute, turns.releaseSlot)
		in, err := turns.acquireSlot(lateContext{t.Context(), time.Now().Add(time.Minute)}, gate)
		if e := new(messages.Error); in || !errors.As(err, &e) || e.Class != messages.ClassTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it has its turn: %v, %v", in, err)
		}
		bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if in, err := turns.acquireSlot(bounded, gate); !in || err != nil {
			t.Errorf("its slot is lost: %v, %v", in, err)
		}
	})
}

// lateTimeout is a context below a CallTimeout whose timer has not run yet in the instant of its deadline.
type lateTimeout struct{ context.Context }

func (lateTimeout) Done() <-chan struct{} { return nil }

func (lateTimeout) Err() error { return nil }

// The same holds for the timeout of a call, which is no deadline of its context (seed 9000273: calls that had waited together for their
// server were sent in the instant of their timeout, or were not).
func TestASlotOfTheInstantOfTheTimeoutIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := new(Cell).setCallLimits(queue.Limits{InFlight: 1, Waiting: 1})
		gate := openGate(t)
		if in, err := turns.acquireSlot(t.Context(), gate); !in || err != nil {
			t.Fatal(in, err)
		}
		timeout := session.NewCallTimeout(t.Context(), time.Second, 0)
		defer timeout.Stop()
		time.AfterFunc(time.Second, turns.releaseSlot)
		in, err := turns.acquireSlot(lateTimeout{timeout}, gate)
		if e := new(messages.Error); in || !errors.As(err, &e) || e.Class != messages.ClassTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it has its turn: %v, %v", in, err)
		}
	})
}

// openGate is that of a session to which nothing is sent.
func openGate(t *testing.T) *session.Gate {
	t.Helper()
	return openGateTo(t, func(ctx context.Context, _ inprocess.Peer) error {
		<-ctx.Done()
		return nil
	})
}

// openGateTo returns the gate of a session with a server in this process.
func openGateTo(t *testing.T, serve func(context.Context, inprocess.Peer) error) *session.Gate {
	t.Helper()
	s, err := session.Dial(t.Context(), inprocess.New(serve), session.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		<-s.Released()
	})
	return s.OpenGate()
}
