package hooks_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
)

// While a function works, 256 values wait for it, in their order; of those that come then the newest takes the place of the newest, so that
// the last value is never lost.
func TestTheLastValueOfAStreamIsNeverLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hooks.NewRunner(zap.NewNop())
		release := make(chan struct{})
		var got []int
		s := hooks.NewStream(t.Context(), r, hooks.Call{Function: "Options.Progress", Server: "s"}, func(int) int { return 8 }, func(n int) {
			<-release
			got = append(got, n)
		})
		s.Put(-1)
		synctest.Wait() // the function works
		for n := range 400 {
			s.Put(n)
		}
		close(release)
		s.Finish(context.Background(), nil, time.Minute)
		want := []int{-1}
		for n := range 255 {
			want = append(want, n)
		}
		if want = append(want, 399); !slices.Equal(got, want) {
			t.Errorf("the function got %d values, the last of them %v; want %d, the last of them 399", len(got), got[max(0, len(got)-3):], len(want))
		}
		r.Close()
	})
}

// A function that does not return holds an actor once: while it has not returned, the next one is not waited for at all.
func TestAFunctionThatDoesNotReturnHoldsATurnOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turn hooks.Turn
		stuck := make(chan struct{})
		began := time.Now()
		if _, ok := hooks.Get(&turn, func() int { <-stuck; return 1 }); ok || time.Since(began) != time.Second {
			t.Errorf("a function that does not return was waited for %v, %t", time.Since(began), ok)
		}
		began = time.Now()
		if _, ok := hooks.Get(&turn, func() int { return 2 }); ok || time.Since(began) > 0 {
			t.Errorf("the next one was waited for %v, %t", time.Since(began), ok)
		}
		close(stuck)
		synctest.Wait()
		if n, ok := hooks.Get(&turn, func() int { return 3 }); !ok || n != 3 {
			t.Errorf("after the return of the first: %d, %t", n, ok)
		}
	})
}
