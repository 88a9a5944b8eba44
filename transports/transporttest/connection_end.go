package transporttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// classOf returns the class of a transport's error, ClassNone for any other error.
func classOf(err error) messages.Class {
	var e *transports.Error
	if errors.As(err, &e) {
		return e.Class
	}
	return messages.ClassNone
}

// checkDownClass checks that the error of Down is canceled if Close has caused the end, and only then.
func (c *conn) checkDownClass(canceled bool) {
	c.s.t.Helper()
	// There may be none yet: DeathIsDown says which kinds call it by themselves.
	for _, err := range c.Downs() {
		if got := classOf(err); (got == messages.ClassCanceled) != canceled {
			c.s.t.Errorf("Down: class %q (%v); canceled is right only if Close caused it", got, err)
		}
	}
}

// awaitRelease fails the test unless Released is closed within the bound.
func (c *conn) awaitRelease(after string) {
	c.s.t.Helper()
	select {
	case <-c.Released():
	case <-time.After(c.s.Bound):
		c.s.t.Fatalf("Released is not closed %v after %s", c.s.Bound, after)
	}
}

// peerDiesMidCall checks the Send that the peer dies of, and the Sends after it. The request may have been carried out, so that
// it must not be reported as not written.
func peerDiesMidCall(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	c.checkAlive("Dial")
	m := s.newRequest("die", nil)
	// A kind that waits for answers must notice the death, and not wait for its context.
	s.runWithin("Send to a peer that dies", func() {
		d, err := c.Send(context.Background(), m)
		if d == transports.NotWritten {
			t.Errorf("Send: %v, %v, and the peer has died of it", d, err)
		}
		if err != nil {
			s.checkError("Send to a peer that dies", err)
		} else if s.Features.SendWaits {
			t.Error("Send of a request without an answer returned no error")
		}
	})
	if s.Features.DeathIsDown {
		c.Wait(t, s.Bound, "Down", func() bool { return len(c.Downs()) > 0 })
		c.awaitRelease("the peer's death")
		c.checkDownClass(false)
		d, err := c.Send(context.Background(), s.newRequest("echo", nil))
		// A connection that is down cannot have written anything.
		if d != transports.NotWritten {
			t.Errorf("Send after Down: %v; want not written", d)
		}
		s.checkError("Send after Down", err)
		if got := classOf(err); got == messages.ClassCanceled || got == messages.ClassTimeout {
			t.Errorf("Send after Down: class %q; nobody canceled it", got)
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Bound)
	defer cancel()
	// A kind without a stream learns of the death by the next exchange.
	if _, err := c.Send(ctx, s.newRequest("echo", nil)); err == nil {
		t.Error("Send to a dead peer returned no error")
	} else {
		s.checkError("Send to a dead peer", err)
	}
}

// lastMessages checks that every message which the peer wrote before its death reaches the sink before Down. Five rounds, because
// the reader and the notice of the death race. The last messages often say why a server ends. A transport that reports the death
// at once, without reading its pipe to the end, loses them.
func lastMessages(t *testing.T, h Harness) {
	for range 5 {
		// Enough to be in several buffers at the moment of the death.
		const n = 300
		s := h.startSuite(t, Options{})
		c := s.dialConn()
		// The peer writes and dies in one go, which is the hardest moment.
		m := s.newRequest("last-words", commandParams{N: n})
		if d, err := c.Send(context.Background(), m); d == transports.NotWritten {
			t.Fatalf("Send: %v, %v", d, err)
		}
		c.Wait(t, s.Bound, "Down", func() bool { return len(c.Downs()) > 0 })
		if got := len(c.Messages()); got != n+1 {
			t.Fatalf("the peer wrote %d messages and died; %d of them were delivered before Down", n+1, got)
		}
		c.checkNotes(n)
		c.awaitRelease("the peer's death")
	}
}

// sendsRaceTheDeath checks that Sends around the peer's death return, each with a valid error. A Send that has passed the check
// for the end, and then waits for a writer that is gone, hangs here.
func sendsRaceTheDeath(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	c.checkAlive("Dial")
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			// A goroutine stops at its first error; the others show whether one of them hangs.
			for range 50 {
				d, err := c.Send(context.Background(), s.newRequest("echo", nil))
				if err != nil {
					s.checkError("Send around the death", err)
					return
				}
				if d != transports.Written {
					t.Errorf("Send: %v without an error", d)
				}
			}
		}()
	}
	// The result depends on the moment, and every one is right.
	_, _ = c.Send(context.Background(), s.newRequest("die", nil))
	s.runWithin("every Send around the death", wg.Wait)
	if s.Features.DeathIsDown {
		c.Wait(t, s.Bound, "Down", func() bool { return len(c.Downs()) > 0 })
		c.awaitRelease("the peer's death")
	}
}

// closeConcurrently checks that each of several Close calls returns after the release, and that Down was called once by then. The
// actor, a supervisor that shuts down and a test may all close the same connection.
func closeConcurrently(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	c.checkAlive("Dial")
	select {
	case <-c.Released():
		t.Fatal("Released is closed before Close")
	default:
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			ctx, cancel := context.WithTimeout(context.Background(), s.Bound)
			defer cancel()
			if err := c.Close(ctx); err != nil {
				t.Errorf("Close: %v", err)
				return
			}
			select {
			case <-c.Released():
			default:
				t.Error("Close returned nil before everything was released")
			}
			if n := len(c.Downs()); n != 1 {
				t.Errorf("Close returned nil, and Down was called %d times", n)
			}
		}()
	}
	s.runWithin("every Close", wg.Wait)
	c.checkDownClass(true)
}

// closeEndsWaitingSends checks that Close ends Sends that wait for an answer. Without that, a manager that shuts down would wait
// for its slowest server.
func closeEndsWaitingSends(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	c.checkAlive("Dial")
	var wg sync.WaitGroup
	for range 10 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			d, err := c.Send(context.Background(), s.newRequest("silent", nil))
			if err != nil {
				s.checkError("Send ended by Close", err)
			} else if d != transports.Written || s.Features.SendWaits {
				t.Errorf("Send without an answer: %v and no error", d)
			}
		}()
	}
	time.Sleep(50 * time.Millisecond) // until they are written, in most runs
	c.closeAndCheck()
	s.runWithin("every waiting Send", wg.Wait)
	c.checkDownClass(true)
}

// closeWithEndedContext checks that Close begins the release even if it may not wait for it. A caller in a hurry gets an error at
// once, and the processes are released all the same.
func closeWithEndedContext(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.runWithin("Close with an ended context", func() {
		if err := c.Close(ctx); err != nil {
			s.checkError("Close with an ended context", err)
		}
	})
	c.awaitRelease("a Close whose context had ended")
	c.checkDownClass(true)
}

// closeRacesTheDeath checks that there is one Down when Close and the peer's death come at the same time. A second Down would
// count as a second death in the actor's restart policy.
func closeRacesTheDeath(t *testing.T, h Harness) {
	for range 10 {
		s := h.startSuite(t, Options{})
		c := s.dialConn()
		go func() { _, _ = c.Send(context.Background(), s.newRequest("die", nil)) }()
		// A random moment before, during or after the death.
		time.Sleep(rand.N(3 * time.Millisecond))
		c.closeAndCheck() // there must be one Down, whichever came first
	}
}

// closeRacesTraffic checks Close while many goroutines send and notifications arrive. The sink must not be called after Down,
// also by a reader that had a message in its hands.
func closeRacesTraffic(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				// Each request makes ten notifications, so that the sink is busy when Close comes.
				d, err := c.Send(context.Background(), s.newRequest("notify", commandParams{N: 10}))
				if err != nil {
					s.checkError("Send around Close", err)
					return
				}
				if d != transports.Written {
					t.Errorf("Send: %v without an error", d)
				}
			}
		}()
	}
	time.Sleep(50 * time.Millisecond)
	c.closeAndCheck()
	s.runWithin("every Send around Close", wg.Wait)
}

// dialWithEndedContext checks that Dial with an ended context opens nothing. For stdio that means that no process was started.
func dialWithEndedContext(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := &Recorder{}
	if c, err := s.tr.Dial(ctx, r); err == nil {
		t.Error("Dial with an ended context gave a connection")
		_ = c.Close(context.Background())
	} else {
		s.checkError("Dial", err)
		if got := classOf(err); got != messages.ClassCanceled {
			t.Errorf("Dial with a canceled context: class %q", got)
		}
		s.nothingAfterDial(r)
	}
}

// nothingAfterDial checks that a failed Dial does not call Down, because there was no connection.
func (s *suite) nothingAfterDial(r *Recorder) {
	s.t.Helper()
	time.Sleep(10 * time.Millisecond)
	if d := r.Downs(); len(d) > 0 {
		s.t.Errorf("Dial failed and called Down as well: %v", d)
	}
}

// dialCanceled cancels Dial at 20 moments between 0 and 3 ms, to meet each step of the opening in some run. The check for
// goroutines then finds what a canceled opening has left behind.
func dialCanceled(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	for i := range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		// A Dial that was faster than its cancellation gives a connection, which is as right.
		timer := time.AfterFunc(time.Duration(i)*150*time.Microsecond, cancel)
		r := &Recorder{}
		c, err := s.tr.Dial(ctx, r)
		if err != nil {
			s.checkError("Dial", err)
			if got := classOf(err); got != messages.ClassCanceled {
				t.Errorf("Dial canceled on its way: class %q (%v)", got, err)
			}
			s.nothingAfterDial(r)
		} else {
			cn := &conn{Conn: c, Recorder: r, s: s}
			cn.closeAndCheck()
		}
		timer.Stop()
		cancel()
	}
}

// dialContextEndsLater checks that the end of Dial's context does not end the connection. Callers bound the opening alone with
// that context, and cancel it as soon as Dial has returned.
func dialContextEndsLater(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{}
	c, err := s.tr.Dial(ctx, r)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	cancel()
	cn := &conn{Conn: c, Recorder: r, s: s}
	cn.checkAlive("the end of the context of Dial")
	if s.Features.Push {
		cn.callPeer("push", commandParams{N: 3})
		cn.checkNotes(3)
	}
	cn.closeAndCheck()
}

// dialAgain checks that a transport can be dialled again after Close. A restart of a server is nothing else: state of the old
// connection must not reach the new one.
func dialAgain(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	for i := range 3 {
		c := s.dialConn()
		c.checkAlive(fmt.Sprintf("Dial number %d", i+1))
		c.closeAndCheck()
	}
}

// infoNeverBlocks calls Info in a loop through traffic and the end. A status is read while a server hangs, which is when it
// matters most.
func infoNeverBlocks(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			_ = c.Info()
			select {
			case <-stop:
				return
			// A pause, so that Info does not starve what it looks at.
			case <-time.After(time.Millisecond):
			}
		}
	}()
	// Info must answer while the reader is busy with these.
	c.callPeer("notify", commandParams{N: 200})
	c.closeAndCheck()
	close(stop)
	s.runWithin("Info around the end", func() { <-done })
}

// childPID checks that Info names the process while it lives, and how it ended afterwards.
func childPID(t *testing.T, h Harness) {
	c := h.startSuite(t, Options{}).dialConn()
	// The number is shown while the process lives, and not afterwards, when it may be another process's.
	if got := c.Info(); got.PID <= 0 || got.Exit != "" {
		t.Errorf("Info of a live child: PID %d, Exit %q", got.PID, got.Exit)
	}
	c.closeAndCheck()
	if got := c.Info(); got.Exit == "" {
		t.Error("Info of an ended child does not say how it ended")
	}
}

// brokenDial checks that transports which cannot connect say so with the right class, and leave nothing behind. The class decides
// whether the actor tries again, so that a missing program must not look like a broken network.
func brokenDial(t *testing.T, h Harness) {
	for name, start := range h.Broken {
		t.Run(name, func(t *testing.T) {
			s := &suite{Harness: h, t: t}
			s.registerLeakCheck()
			// The error of a broken configuration is where secrets leak most easily.
			tr, want := start(t, Options{Secret: canarySecret})
			ctx, cancel := context.WithTimeout(context.Background(), s.Bound)
			defer cancel()
			r := &Recorder{}
			c, err := tr.Dial(ctx, r)
			if err == nil {
				_ = c.Close(ctx)
				t.Fatal("Dial gave a connection")
			}
			s.checkError("Dial", err)
			if got := classOf(err); got != want {
				t.Errorf("class %q, want %q (%v)", got, want, err)
			}
			s.nothingAfterDial(r)
		})
	}
}
