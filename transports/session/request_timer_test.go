package session

import (
	"context"
	"errors"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestAlarm compares the session's one timer with the deadlines of the single callers, for random deadlines.
func TestAlarm(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			s := &Session{pending: map[int64]*pendingRequest{}}
			begin := time.Now()
			type end struct {
				id         int64
				took, want time.Duration
			}
			ends := make(chan end)
			waiting := 0
			for range 40 {
				time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
				soft, most := time.Duration(1+rnd.IntN(300))*time.Millisecond, time.Duration(1+rnd.IntN(600))*time.Millisecond
				p := NewCallTimeout(t.Context(), soft, most)
				f, e := s.registerRequest(p, nil, false)
				if e != nil {
					t.Fatal(e)
				}
				want := time.Since(begin) + min(soft, most)
				switch rnd.IntN(4) {
				case 0: // it is answered in time
					if _, ours := s.takePending(f.id); !ours {
						t.Fatalf("request %d is not known", f.id)
					}
					s.recycleRequest(f)
					p.Stop()
					continue
				case 1: // its caller's clock stands still for a moment
					pause := time.Duration(1+rnd.IntN(200)) * time.Millisecond
					p.PauseIdle()
					time.AfterFunc(pause, func() { s.resumeTimeout(p) })
					want = time.Since(begin) + min(soft+pause, most)
				}
				waiting++
				go func() {
					if a := <-f.answer; a.Kind != outcome.AnswerTimedOut || !errors.Is(p.Err(), context.DeadlineExceeded) {
						t.Errorf("request %d ended with %v and %v", f.id, a.Kind, p.Err())
					}
					ends <- end{f.id, time.Since(begin), want}
				}()
			}
			for range waiting {
				if e := <-ends; e.took != e.want {
					t.Errorf("request %d ended after %v, want %v", e.id, e.took, e.want)
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.pending) != 0 {
				t.Errorf("%d requests are still waited for", len(s.pending))
			}
		})
	}
}

// A request whose idle timeout is paused has no deadline, and must not keep requestTimer from the other requests.
func TestAPausedClockKeepsTheAlarmFromNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Session{pending: map[int64]*pendingRequest{}}
		begin := time.Now()
		depart := func(timeout time.Duration) (*CallTimeout, *pendingRequest) {
			p := NewCallTimeout(t.Context(), timeout, 0)
			f, e := s.registerRequest(p, nil, false)
			if e != nil {
				t.Fatal(e)
			}
			return p, f
		}
		_, first := depart(10 * time.Millisecond)
		_, second := depart(20 * time.Millisecond)
		for range 20 {
			p, _ := depart(time.Millisecond)
			p.PauseIdle()
		}
		for i, f := range []*pendingRequest{first, second} {
			select {
			case <-f.answer:
				if took, want := time.Since(begin), time.Duration(i+1)*10*time.Millisecond; took != want {
					t.Errorf("request %d ended after %v, want %v", i, took, want)
				}
			case <-time.After(time.Minute):
				t.Errorf("request %d has not ended after a minute", i)
			}
		}
	})
}
