package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/actors/opening"
	"github.com/mcpvisor/mcpvisor/messages"
)

// No timer of a connection outlives it.
func TestNoTimerIsLeft(t *testing.T) {
	hour := func() *time.Timer { return time.AfterFunc(time.Hour, func() {}) }
	for what, end := range map[string]func(*Server){
		"the connection has ended": (*Server).stopTimers,
		"the actor has ended":      (*Server).releaseAll,
		"the attempt is shut": func(s *Server) {
			s.att = newAttempt("a", &messages.Spec{}, 1, opening.Limits{Silence: time.Hour}, func(any) {}, func(uint64) {})
			s.performEffect(lifecycle.Shut{Epoch: 1})
		},
	} {
		s := &Server{relist: hour(), idle: hour(), probe: hour(), cfg: ServerConfig{Holder: &Holder{}}}
		end(s)
		for name, timer := range map[string]*time.Timer{"re-list": s.relist, "idle": s.idle, "probe": s.probe} {
			if timer.Stop() {
				t.Errorf("%s, and the timer of %s still runs", what, name)
			}
		}
	}
}

// An attempt is looked at until it is settled: it ends when it has been silent for too long, however often it was looked at
// before, and one that is settled holds no timer.
func TestAnAttemptIsLookedAtUntilItIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := limitsFor(&messages.Spec{Command: "npx", Args: []string{"x"}, ConnectTimeout: messages.Duration(time.Minute)}, 0)
		a := newAttempt("a", &messages.Spec{Command: "npx"}, 1, limits, func(any) {}, func(uint64) {})
		time.Sleep(2 * opening.MaxAttempt)
		if a.boundContext().Err() == nil {
			t.Errorf("an attempt that has said nothing goes on after %v", 2*opening.MaxAttempt)
		}
		a.mu.Lock()
		last := a.checkTimer
		a.mu.Unlock()
		a.endBound()
		a.mu.Lock()
		defer a.mu.Unlock()
		if last.Stop() || a.checkTimer != nil {
			t.Error("an attempt that is settled holds a timer")
		}
	})
}

// What is no call is told at once to who waits for it, and what is one within a millisecond.
func TestAWatcherIsWokenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		w := h.Watch(0)
		defer w.Close()
		for _, c := range []struct {
			kind messages.EventKind
			most time.Duration
		}{{messages.EventPhase, 0}, {messages.EventCallStarted, callLag}, {messages.EventTools, 0}, {messages.EventCallEnded, callLag}} {
			bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
			received := make(chan messages.Event, 1)
			go func() {
				e, err := w.Next(bounded)
				if err != nil {
					t.Errorf("%s is not told: %v", c.kind, err)
				}
				received <- e
			}()
			synctest.Wait() // it waits
			began := time.Now()
			h.Publish(messages.Event{Kind: c.kind})
			if e := <-received; e.Kind != c.kind || time.Since(began) > c.most {
				t.Errorf("%s was told as %s after %v", c.kind, e.Kind, time.Since(began))
			}
			cancel()
		}
	})
}

// A look at an attempt that ends while its processes are observed arms no timer: nothing would stop it.
func TestALookAfterTheEndArmsNoTimer(t *testing.T) {
	a := newAttempt("a", &messages.Spec{}, 1, opening.Limits{Silence: time.Hour}, func(any) {}, func(uint64) {})
	a.endBound()
	a.checkProgress()
	if a.checkTimer != nil {
		a.checkTimer.Stop()
		t.Error("the attempt has ended, and is looked at again")
	}
}
