package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// reportingFake returns a fake whose tool "work" reports progress n times, 1 to n, before it answers after a second; "quiet" reports none.
func reportingFake(n int) *fake {
	f := newFake("work", "quiet")
	f.onCall = func(ctx context.Context, tool string, _ json.RawMessage) (string, error) {
		for i := range n {
			if tool == "quiet" {
				break
			}
			for token := range 10 {
				f.say("notifications/progress", fmt.Sprintf(`{"progressToken":%d,"progress":%d}`, token, i+1))
			}
		}
		select {
		case <-time.After(time.Second):
			return "done", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return f
}

// TestAProgressFunctionThatDoesNotReturnHoldsNoOther: its call ends with its context and keeps its answer. Meanwhile another caller of the
// same server gets its own progress, a change of the tools is noticed, and the server connects again after a crash. The function is
// not called again.
func TestAProgressFunctionThatDoesNotReturnHoldsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := reportingFake(3)
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		stuck := make(chan struct{})
		calls := 0
		ended := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		began := time.Now()
		go func() {
			res, err := m.CallServerTool(ctx, "a", "work", nil, supervisor.WithProgress(func(supervisor.Progress) { calls++; <-stuck }))
			if err == nil && res.Text() != "done" {
				err = errors.New(res.Text())
			}
			ended <- err
		}()
		synctest.Wait()
		var seen []float64
		if _, err := m.CallTool(t.Context(), "mcp__a__work", nil, supervisor.WithProgress(func(p supervisor.Progress) { seen = append(seen, p.Progress) })); err != nil {
			t.Error(err)
		}
		if !slices.Equal(seen, []float64{1, 2, 3}) || time.Since(began) != time.Second {
			t.Errorf("the other caller saw %v, and got its answer after %v", seen, time.Since(began))
		}
		f.setTools("work", "more")
		time.Sleep(time.Second)
		if got := names(m); !slices.Contains(got, "mcp__a__more") {
			t.Errorf("the change of the tools was not noticed: %v", got)
		}
		f.kill()
		time.Sleep(10 * time.Second)
		if err := m.Ready(t.Context(), "a"); err != nil || time.Since(began) > 15*time.Second {
			t.Errorf("after a crash: %v after %v", err, time.Since(began))
		}
		if err := <-ended; err != nil || time.Since(began) != 20*time.Second+100*time.Millisecond {
			t.Errorf("the call with the function: %v after %v", err, time.Since(began))
		}
		close(stuck)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("the function was called %d times", calls)
		}
		closeAll(t, m)
	})
}

// TestCloseEndsACallWhoseProgressFunctionBlocks: a caller without a deadline waits for its function as long as for the server, at most, and
// not longer than the manager lives.
func TestCloseEndsACallWhoseProgressFunctionBlocks(t *testing.T) {
	for name, closes := range map[string]bool{"closed": true, "not closed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := start(t, supervisor.Config{}, map[string]*fake{"a": reportingFake(1)})
				settled(t, m)
				stuck, ended := make(chan struct{}), make(chan error, 1)
				began := time.Now()
				go func() {
					_, err := m.CallServerTool(context.Background(), "a", "work", nil, supervisor.WithProgress(func(supervisor.Progress) { <-stuck }))
					ended <- err
				}()
				time.Sleep(10 * time.Second)
				want := 61 * time.Second // the server's own time, beyond the answer
				if closes {
					closeAll(t, m)
					want = 10 * time.Second
				}
				if err := <-ended; err != nil || time.Since(began) < want || time.Since(began) > want+time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				close(stuck)
				closeAll(t, m)
			})
		})
	}
}

// TestAProgressFunctionThatIsSlow: what comes while it works waits, in order; of more than fits the last is not lost. One that panics, or
// ends its goroutine, gets the next all the same.
func TestAProgressFunctionThatIsSlow(t *testing.T) {
	for name, c := range map[string]struct {
		reports int
		f       func(supervisor.Progress)
		want    string
	}{
		"slow":           {100, func(supervisor.Progress) { time.Sleep(time.Second) }, "100 from 1 to 100"},
		"too slow":       {400, func(supervisor.Progress) { time.Sleep(time.Second) }, "257 from 1 to 400"},
		"panics":         {3, func(supervisor.Progress) { panic("ouch") }, "3 from 1 to 3"},
		"ends":           {3, func(supervisor.Progress) { runtime.Goexit() }, "3 from 1 to 3"},
		"calls the same": {3, nil, "3 from 1 to 3"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": {Type: "sdk", CallTimeout: supervisor.Duration(time.Hour)}}},
					map[string]*fake{"a": reportingFake(c.reports)})
				settled(t, m)
				if c.f == nil {
					c.f = func(supervisor.Progress) {
						if _, err := m.CallServerTool(t.Context(), "a", "quiet", nil); err != nil {
							t.Error(err)
						}
					}
				}
				var seen []float64
				if _, err := m.CallServerTool(t.Context(), "a", "work", nil, supervisor.WithProgress(func(p supervisor.Progress) {
					seen = append(seen, p.Progress)
					c.f(p)
				})); err != nil {
					t.Error(err)
				}
				// 256 wait behind the one that is worked on. One more may be on its way to them when the queue is full.
				n := len(seen)
				if n == 258 {
					n = 257
				}
				if got := fmt.Sprintf("%d from %v to %v", n, seen[0], seen[len(seen)-1]); got != c.want || !slices.IsSorted(seen) {
					t.Error(got)
				}
				closeAll(t, m)
			})
		})
	}
}
