package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestGateUnderLoad opens and closes gates while calls come and go: a closed gate admits nothing, and is drained when
// the last call has left, not before.
func TestGateUnderLoad(t *testing.T) {
	w := &wire{}
	hello(w, func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, m.ID))
		return transports.Written, nil
	})
	s := connected(t, w, session.Config{})
	for range 50 {
		gate := s.OpenGate()
		var callers sync.WaitGroup
		var began, refused atomic.Int64
		for range 8 {
			callers.Go(func() {
				for {
					_, err := gate.Call(t.Context(), "t", nil)
					if errors.Is(err, messages.ErrNotSent) {
						refused.Add(1)
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					began.Add(1)
				}
			})
		}
		for began.Load() == 0 {
			time.Sleep(10 * time.Microsecond)
		}
		var shut <-chan struct{}
		callers.Go(func() { shut = gate.Shut() }) // while it is being closed
		callers.Go(gate.Close)
		gate.Close()
		<-gate.Shut()
		<-gate.Drained()
		if n := gate.InFlight(); n != 0 {
			t.Errorf("%d calls in a drained gate", n)
		}
		callers.Wait()
		<-shut
		if refused.Load() != 8 {
			t.Errorf("%d of 8 callers were refused", refused.Load())
		}
	}
}

// TestDeathClosesGates: the gates that the death of the session closes are drained, and stay closed.
func TestDeathClosesGates(t *testing.T) {
	w := &wire{}
	s := connected(t, w, session.Config{})
	before := s.OpenGate()
	select {
	case <-before.Shut():
		t.Error("an open gate says that it is shut")
	default:
	}
	w.end(&transports.Error{Class: messages.ClassExited, Text: "killed"})
	<-s.Dead()
	after := s.OpenGate()
	for _, gate := range []*session.Gate{before, after} {
		<-gate.Shut()
		<-gate.Drained()
		gate.Close()
		if _, err := gate.Call(t.Context(), "t", nil); !errors.Is(err, messages.ErrNotSent) {
			t.Errorf("a call after the death: %v", err)
		}
	}
}
