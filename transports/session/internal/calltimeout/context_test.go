package calltimeout

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/session/internal/monotime"
)

// TestPatienceIsAContext: every listener of a Context, or of a context that was derived from it, learns of its
// end at once, with the right cause.
func TestPatienceIsAContext(t *testing.T) {
	type key struct{}
	cause := errors.New("because")
	for name, c := range map[string]struct {
		soft, most time.Duration
		act        func(p *Context, leave context.CancelCauseFunc)
		after      time.Duration
		err, cause error
	}{
		"the first clock":  {soft: time.Second, most: time.Minute, after: time.Second, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"the second clock": {soft: time.Minute, most: time.Second, after: time.Second, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"only the second":  {most: time.Second, after: time.Second, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"stopped":          {soft: time.Hour, act: func(p *Context, _ context.CancelCauseFunc) { p.Stop(); p.Stop() }, err: context.Canceled, cause: context.Canceled},
		"left":             {soft: time.Hour, act: func(_ *Context, leave context.CancelCauseFunc) { leave(cause) }, err: context.Canceled, cause: cause},
		"progress": {soft: time.Second, most: time.Minute, act: func(p *Context, _ context.CancelCauseFunc) {
			time.Sleep(900 * time.Millisecond)
			p.RestartIdle()
		}, after: 1900 * time.Millisecond, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"a pause": {soft: time.Second, most: time.Minute, act: func(p *Context, _ context.CancelCauseFunc) {
			time.Sleep(900 * time.Millisecond)
			p.PauseIdle()
			time.Sleep(time.Second)
			p.ResumeIdle()
		}, after: 2 * time.Second, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"progress in a pause": {soft: time.Second, most: time.Minute, act: func(p *Context, _ context.CancelCauseFunc) {
			time.Sleep(900 * time.Millisecond)
			p.PauseIdle()
			time.Sleep(time.Second)
			p.RestartIdle()
			time.Sleep(time.Second)
			p.ResumeIdle()
		}, after: 3900 * time.Millisecond, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"a pause beyond the second clock": {soft: time.Second, most: 2 * time.Second, act: func(p *Context, _ context.CancelCauseFunc) {
			p.PauseIdle()
		}, after: 2 * time.Second, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, leave := context.WithCancelCause(context.WithValue(t.Context(), key{}, 7))
				defer leave(nil)
				p := New(parent, c.soft, c.most)
				defer p.Stop()
				child, cancel := context.WithCancel(p)
				defer cancel()
				stopped, forget := context.WithCancel(p) // one that has left before
				forget()
				begin := time.Now()
				if p.Err() != nil || child.Err() != nil || stopped.Err() == nil || Of(child) != p || p.Value(key{}) != 7 {
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
					if !errors.Is(ctx.Err(), c.err) || !errors.Is(context.Cause(ctx), c.cause) || !errors.Is(CauseOf(ctx), c.cause) {
						t.Errorf("%s: %v, caused by %v and %v", what, ctx.Err(), context.Cause(ctx), CauseOf(ctx))
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
	p := New(parent, time.Hour, time.Hour)
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
	if n := testing.AllocsPerRun(100, func() { New(parent, time.Hour, time.Hour).Stop() }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestTheCauseOfAnEndIsKnownBeforeAnyListensForIt: CauseOf finds the cause of the parent's end itself, and none before the end.
func TestTheCauseOfAnEndIsKnownBeforeAnyListensForIt(t *testing.T) {
	parent, leave := context.WithCancelCause(t.Context())
	p := New(parent, time.Hour, time.Hour)
	defer p.Stop()
	if err := CauseOf(p); err != nil {
		t.Errorf("before the end: %v", err)
	}
	cause := errors.New("because")
	if leave(cause); !errors.Is(CauseOf(p), cause) {
		t.Errorf("after the end: %v", CauseOf(p))
	}
}

// BenchmarkPatience measures the cost of a Context for one call.
func BenchmarkPatience(b *testing.B) {
	ctx, leave := context.WithCancel(b.Context())
	defer leave()
	for name, ask := range map[string]func(context.Context){
		"nobody asks for Done": func(context.Context) {}, "somebody does": func(ctx context.Context) { ctx.Done() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := New(ctx, time.Minute, time.Hour)
				ask(p)
				p.Stop()
			}
		})
	}
}

// A function of AfterFunc that was stopped does not run at the end of the Context, in any order of stops, and
// stop reports true only once.
func TestWhoHasLeftAPatienceIsNotTold(t *testing.T) {
	for leaves := range 3 {
		p := New(t.Context(), time.Hour, 0)
		notified := make([]int, 3)
		stops := make([]func() bool, 3)
		for i := range notified {
			stops[i] = p.AfterFunc(func() { notified[i]++ })
		}
		if !stops[leaves]() || stops[leaves]() {
			t.Errorf("listener %d did not leave once", leaves)
		}
		p.Stop()
		for i, n := range notified {
			if (i == leaves) != (n == 0) || n > 1 {
				t.Errorf("with listener %d gone, listener %d was told %d times", leaves, i, n)
			}
		}
	}
}

// Two questions at the same time pause a call's idle timeout until both are answered; the time that was left before
// is left afterwards.
func TestTwoQuestionsStopTheClockOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context(), 10*time.Second, 0)
		defer p.Stop()
		time.Sleep(4 * time.Second)
		p.PauseIdle()
		time.Sleep(time.Minute)
		p.PauseIdle()
		time.Sleep(time.Minute)
		p.ResumeIdle()
		time.Sleep(time.Minute)
		if p.CheckExpired(monotime.Now()) {
			t.Error("the clock goes on while a question is open")
		}
		p.ResumeIdle()
		time.Sleep(6*time.Second - time.Nanosecond)
		if p.CheckExpired(monotime.Now()) {
			t.Error("the call has ended before its time")
		}
		time.Sleep(time.Nanosecond)
		if !p.CheckExpired(monotime.Now()) {
			t.Error("the call goes on beyond its time")
		}
	})
}

// TestContextIsOneSmallAllocation holds the size class of a Context, of which each waiting call has one.
func TestContextIsOneSmallAllocation(t *testing.T) {
	if size := reflect.TypeFor[Context]().Size(); size > 64 {
		t.Errorf("a Context takes %d bytes, at most 64 are wanted", size)
	}
}
