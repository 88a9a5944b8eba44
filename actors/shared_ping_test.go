package actors

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Reads that break with one connection look together whether it still serves: 42 of them once sent 42 pings in one instant. Callers with
// credentials of their own have a ping of their own, and one who does not wait any more takes none away from the others.
func TestRequestsThatAreLostTogetherPingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		pings := map[string]int{}
		ask := func(p *sharedPings, ctx context.Context, caller string, answers bool) bool {
			return p.ask(ctx, caller, 10*time.Second, func(ctx context.Context) bool {
				mu.Lock()
				pings[caller]++
				mu.Unlock()
				select {
				case <-time.After(time.Second):
					return answers
				case <-ctx.Done():
					return false
				}
			})
		}
		var p sharedPings
		var all sync.WaitGroup
		first, leave := context.WithCancel(t.Context())
		all.Go(func() {
			if ask(&p, first, "anna", true) {
				t.Error("one who has gone has an answer")
			}
		})
		synctest.Wait()
		for i := range 42 {
			caller := "anna"
			if i%2 == 0 {
				caller = "bert"
			}
			all.Go(func() {
				if !ask(&p, t.Context(), caller, true) {
					t.Errorf("%s has no answer", caller)
				}
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		if pings["anna"] != 1 || pings["bert"] != 1 {
			t.Errorf("pings: %v", pings)
		}
		if ask(&p, t.Context(), "anna", false) || pings["anna"] != 2 {
			t.Errorf("a later one gets the answer of before, pings: %v", pings)
		}
		if began := time.Now(); p.ask(t.Context(), "anna", 10*time.Second, func(ctx context.Context) bool { <-ctx.Done(); return false }) ||
			time.Since(began) != 10*time.Second {
			t.Errorf("a silent server is waited for %v", time.Since(began))
		}
	})
}
