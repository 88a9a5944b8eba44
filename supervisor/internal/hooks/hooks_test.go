package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
)

// TestFunctionsThatDoNotReturnAreBounded: of the runs of one function for one server 256 are left, which the log says once a minute; what
// comes then is refused as not sent. Another server, and another function, go on. The place is free again when they return.
func TestFunctionsThatDoNotReturnAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zapcore.WarnLevel)
		r := hooks.NewRunner(zap.New(core))
		over, stuck := make(chan struct{}), make(chan struct{})
		block := func(c hooks.Call) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, err := hooks.Do(ctx, r, over, c, func() bool { <-stuck; return true })
			return err
		}
		bad := hooks.Call{Function: "Config.Allow", Server: "bad", Tool: "x"}
		for i := range 256 {
			if err := block(bad); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("run %d: %v", i, err)
			}
		}
		var e *messages.Error
		if err := block(bad); !errors.As(err, &e) || e.Outcome != messages.OutcomeNotSent || e.Class != messages.ClassExhausted || e.Server != "bad" {
			t.Errorf("one more: %#v", err)
		}
		for _, c := range []hooks.Call{{Function: "Config.Allow", Server: "good"}, {Function: "Config.Sanitize", Server: "bad"}} {
			if err := block(c); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: %v", c, err)
			}
		}
		time.Sleep(2 * time.Second)
		var said []string
		for _, line := range lines.All() {
			m := line.ContextMap()
			said = append(said, fmt.Sprint(m["function"], " ", m["server"], " ", m["left"]))
		}
		if got := strings.Join(said, "; "); got != "Config.Allow bad 256; Config.Allow good 1; Config.Sanitize bad 1" {
			t.Errorf("the log: %s", got)
		}
		close(stuck)
		synctest.Wait()
		if r.HasLeft() {
			t.Error("runs are left that have returned")
		}
		if err := block(bad); err != nil {
			t.Errorf("in the end: %v", err)
		}
		r.Close()
	})
}

// TestBurstsOfFunctionsThatDoNotReturn: of 1,000 runs at once all are left, because each had begun when none was; no burst after them adds
// one, and when all but 255 have returned, the next burst adds as many as it has.
func TestBurstsOfFunctionsThatDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hooks.NewRunner(zap.NewNop())
		release := make(chan struct{})
		var inside atomic.Int64
		burst := func() (left int64) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var all sync.WaitGroup
			for range 1000 {
				all.Go(func() {
					_, _ = hooks.Do(ctx, r, nil, hooks.Call{Function: "F", Server: "s"}, func() int {
						defer inside.Add(-1)
						inside.Add(1)
						<-release
						return 0
					})
				})
			}
			all.Wait()
			return inside.Load()
		}
		for n, want := range []int64{1000, 1000, 1255} {
			if n == 2 {
				for range 1000 - 255 {
					release <- struct{}{}
				}
				synctest.Wait()
			}
			if got := burst(); got != want {
				t.Errorf("after burst %d: %d are left, want %d", n+1, got, want)
			}
		}
		close(release)
		synctest.Wait()
		r.Close()
	})
}

// TestAFunctionThatReturnsSoonAfterItsCallIsNotNamed: it was only slow.
func TestAFunctionThatReturnsSoonAfterItsCallIsNotNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zapcore.WarnLevel)
		r := hooks.NewRunner(zap.New(core))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := hooks.Do(ctx, r, nil, hooks.Call{}, func() bool { time.Sleep(500 * time.Millisecond); return true }); err == nil {
			t.Error("it returned in time")
		}
		time.Sleep(time.Minute)
		if lines.Len() > 0 {
			t.Error(lines.All())
		}
		r.Close()
	})
}

// TestEndsOfFunctions: Do tells how a function ended.
func TestEndsOfFunctions(t *testing.T) {
	r := hooks.NewRunner(zap.NewNop())
	over := make(chan struct{})
	close(over)
	for name, c := range map[string]struct {
		over <-chan struct{}
		f    func() int
		want string
	}{
		"returned":   {nil, func() int { return 7 }, "7 <nil>"},
		"panicked":   {nil, func() int { panic("ouch") }, "0 panicked: ouch"},
		"goexit":     {nil, func() int { runtime.Goexit(); return 7 }, "0 ended its goroutine (runtime.Goexit)"},
		"it is over": {over, func() int { select {} }, "0 the manager is closed"},
	} {
		v, err := hooks.Do(t.Context(), r, c.over, hooks.Call{Function: "F"}, c.f)
		if got := fmt.Sprint(v, " ", err); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	r.Close()
}

// TestCloseLeavesNoIdleGoroutine: a thousand functions at once, and none of their goroutines is there after Close, as the bubble of the test
// proves; what runs during Close ends with its function.
func TestCloseLeavesNoIdleGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hooks.NewRunner(zap.NewNop())
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				v, err := hooks.Do(t.Context(), r, nil, hooks.Call{}, func() int { time.Sleep(time.Duration(i%3) * time.Second); return i })
				if v != i || err != nil {
					t.Errorf("%d: %d, %v", i, v, err)
				}
			})
		}
		time.Sleep(1500 * time.Millisecond)
		r.Close()
		all.Wait()
		if v, err := hooks.Do(t.Context(), r, nil, hooks.Call{}, func() int { return 1 }); v != 1 || err != nil {
			t.Errorf("after Close: %d, %v", v, err)
		}
	})
}
