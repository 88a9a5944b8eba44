package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatienceIsAContext: every listener of a CallTimeout, or of a context that was derived from it, learns of its
// end at once, with the right cause.
func TestPatienceIsAContext(t *testing.T) {
	type key struct{}
	cause := errors.New("because")
	for name, c := range map[string]struct {
		soft, most time.Duration
		act        func(p *CallTimeout, leave context.CancelCauseFunc)
		after      time.Duration
		err, cause error
	}{
		"the first clock":  {soft: time.Second, most: time.Minute, after: time.Second, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"the second clock": {soft: time.Minute, most: time.Second, after: time.Second, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"only the second":  {most: time.Second, after: time.Second, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"stopped":          {soft: time.Hour, act: func(p *CallTimeout, _ context.CancelCauseFunc) { p.Stop(); p.Stop() }, err: context.Canceled, cause: context.Canceled},
		"left":             {soft: time.Hour, act: func(_ *CallTimeout, leave context.CancelCauseFunc) { leave(cause) }, err: context.Canceled, cause: cause},
		"progress": {soft: time.Second, most: time.Minute, act: func(p *CallTimeout, _ context.CancelCauseFunc) {
			time.Sleep(900 * time.Millisecond)
			p.restartIdle()
		}, after: 1900 * time.Millisecond, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"a pause": {soft: time.Second, most: time.Minute, act: func(p *CallTimeout, _ context.CancelCauseFunc) {
			time.Sleep(900 * time.Millisecond)
			p.pauseIdle()
			time.Sleep(time.Second)
			p.resumeIdle()
		}, after: 2 * time.Second, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"a pause beyond the second clock": {soft: time.Second, most: 2 * time.Second, act: func(p *CallTimeout, _ context.CancelCauseFunc) {
			p.pauseIdle()
		}, after: 2 * time.Second, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, leave := context.WithCancelCause(context.WithValue(t.Context(), key{}, 7))
				defer leave(nil)
				p := NewCallTimeout(parent, c.soft, c.most)
				defer p.Stop()
				child, cancel := context.WithCancel(p)
				defer cancel()
				stopped, forget := context.WithCancel(p) // one that has left before
				forget()
				begin := time.Now()
				if p.Err() != nil || child.Err() != nil || stopped.Err() == nil || callTimeoutOf(child) != p || p.Value(key{}) != 7 {
					t.Errorf("at the beginning: %v, %v, %v", p.Err(), child.Err(), stopped.Err())
				}
				if c.act != nil {
					c.act(p, leave)
				}
				<-child.Done()
				<-p.Done()
				if took := time.Since(begin); took != c.after {
					t.Errorf("it ended after %v, want %v", took, c.after)
				}
				for what, ctx := range map[string]context.Context{"itself": p, "a child": child} {
					if !errors.Is(ctx.Err(), c.err) || !errors.Is(context.Cause(ctx), c.cause) || !errors.Is(causeOf(ctx), c.cause) {
						t.Errorf("%s: %v, caused by %v and %v", what, ctx.Err(), context.Cause(ctx), causeOf(ctx))
					}
				}
				late, cancel := context.WithCancel(p)
				defer cancel()
				if late.Err() == nil {
					t.Error("a context that was made from it afterwards has not ended")
				}
			})
		})
	}
}

// TestPatienceWithoutListeners: Err reports the end although Done was never called.
func TestPatienceWithoutListeners(t *testing.T) {
	parent, leave := context.WithCancel(t.Context())
	p := NewCallTimeout(parent, time.Hour, time.Hour)
	if p.Err() != nil {
		t.Error(p.Err())
	}
	if leave(); p.Err() == nil {
		t.Error("its parent has ended, and it has not")
	}
	select {
	case <-p.Done():
	default:
		t.Error("it has ended, and Done is not closed")
	}
	if n := testing.AllocsPerRun(100, func() { NewCallTimeout(parent, time.Hour, time.Hour).Stop() }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

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
					p.pauseIdle()
					time.AfterFunc(pause, func() { s.resumeTimeout(p) })
					want = time.Since(begin) + min(soft+pause, most)
				}
				waiting++
				go func() {
					if a := <-f.answer; a.kind != answerTimedOut || !errors.Is(p.Err(), context.DeadlineExceeded) {
						t.Errorf("request %d ended with %v and %v", f.id, a.kind, p.Err())
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

// BenchmarkPatience measures the cost of a CallTimeout for one call.
func BenchmarkPatience(b *testing.B) {
	ctx, leave := context.WithCancel(b.Context())
	defer leave()
	for name, ask := range map[string]func(context.Context){
		"nobody asks for Done": func(context.Context) {}, "somebody does": func(ctx context.Context) { ctx.Done() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := NewCallTimeout(ctx, time.Minute, time.Hour)
				ask(p)
				p.Stop()
			}
		})
	}
}
