package fault_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// TestTheSameSeedBreaksTheSame compares which of 200 calls are hit with and without other traffic in between.
func TestTheSameSeedBreaksTheSame(t *testing.T) {
	run := func(seed uint64, disturbed bool) (hit []int) {
		control, err := fault.New(seed, fault.Rule{Fault: "hang-call", Chance: 0.3})
		if err != nil {
			t.Fatal(err)
		}
		flow := control.Flow()
		for i := range 200 {
			flow.ToServer("", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}`, i))
			if disturbed {
				flow.ToServer("", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"x%d","method":"tools/call","params":{"name":"other"}}`, i))
			}
			if f := flow.ToClient("", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, i)); f != nil {
				hit = append(hit, i)
			}
		}
		return hit
	}
	one := run(7, false)
	if !slices.Equal(one, run(7, false)) || !slices.Equal(one, run(7, true)) {
		t.Error("the same seed breaks different calls")
	}
	if slices.Equal(one, run(8, false)) {
		t.Error("another seed breaks the same calls")
	}
	if len(one) < 30 || len(one) > 90 {
		t.Errorf("%d of 200 were hit with a chance of 0.3", len(one))
	}
}

func TestHowOftenAndWhen(t *testing.T) {
	ask := func(flow *fault.Flow, n int) (hit []int) {
		for i := 1; i <= n; i++ {
			flow.ToServer("", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, i))
			if flow.ToClient("", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, i)) != nil {
				hit = append(hit, i)
			}
		}
		return hit
	}
	flow, _ := flowOf(t, "hang-call nth=3 times=2")
	if got := ask(flow, 20); !slices.Equal(got, []int{3, 6}) {
		t.Errorf("every third, at most twice: %v", got)
	}
	synctest.Test(t, func(t *testing.T) {
		flow, control := flowOf(t, "hang-call at=10s for=5s every=1m")
		for _, w := range []struct {
			sleep time.Duration
			hits  int
		}{{0, 0}, {9 * time.Second, 0}, {time.Second, 1}, {4 * time.Second, 1}, {time.Second, 0}, {55 * time.Second, 1}, {5 * time.Second, 0}} {
			time.Sleep(w.sleep)
			if got := len(ask(flow, 1)); got != w.hits {
				t.Errorf("after %v more: %d hits, want %d", w.sleep, got, w.hits)
			}
		}
		if s := control.List(); len(s) != 1 || s[0].Done != 3 || s[0].Active {
			t.Errorf("the list says %+v", s)
		}
	})
}

// TestRemovingHealsWhatWaits: the answer to a request that was hit passes if the rule was removed before it.
func TestRemovingHealsWhatWaits(t *testing.T) {
	flow, control := flowOf(t, "hang-call")
	flow.ToServer("", []byte(call))
	if err := control.Remove("r1"); err != nil {
		t.Fatal(err)
	}
	if got := tell(flow.ToClient("", []byte(called))); got != "passes" {
		t.Errorf("the answer: %s", got)
	}
}
