package fault_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// clocks lists the events of each fault that acts by the clock, within one minute.
var clocks = []struct {
	rule string
	want string
}{
	{"crash at=5s code=4", "5s end {Code:4 Signal: Reset:false Session:false}"},
	{"crash at=5s every=20s", "5s end*25s end*45s end*"},
	{"crash-loop after=25s", "25s end*50s end*"},
	{"noise rate=0.05 line=hello when=before", "0s noise hello, 20s noise hello, 40s noise hello, 1m0s noise hello"},
	{"noise rate=1 at=10s for=2s line=x", "10s noise x, 11s noise x"},
	{"list-storm rate=0.1 for=15s", "0s deliver*list_changed*10s deliver*list_changed*"},
	{"list-changed at=10s for=10s", "10s deliver*list_changed*20s deliver*list_changed*"},
	{"stderr-flood bytes=10 every=40s", "0s stderr chaos: a l, 40s stderr chaos: a l"},
	{"noise when=during", ""},
	{"stop at=1s for=3s", "1s stop, 4s continue"},
	{"half-open at=7s", "7s half-open"},
	{"cut-stream every=25s", "25s cut, 50s cut"},
	{"rotate-token at=3s", "3s forget-token"},
	{"lose-session at=3s", "3s forget-session"},
	{"lose-session at=3s on=tools/call", ""},
	{"reset at=9s", "9s end {Code:0 Signal: Reset:true Session:false}"},
	{"endless-line bytes=1 every=100ms for=150ms", `0s raw {"jsonrpc"*100ms raw t, 150ms raw "}}*`},
}

// TestTheClock runs these faults through virtual hours.
func TestTheClock(t *testing.T) {
	for _, c := range clocks {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				flow, _ := flowOf(t, c.rule)
				begin := time.Now()
				var got []string
				for time.Since(begin) <= time.Minute {
					events, wake := flow.Tick()
					for _, e := range events {
						line := fmt.Sprintf("%v %s", time.Since(begin), e.Do)
						if e.Body != nil {
							line += " " + string(bytes.TrimSpace(e.Body))
						}
						if e.End != nil {
							line += fmt.Sprintf(" %+v", *e.End)
						}
						got = append(got, line)
					}
					if wake.IsZero() {
						break
					}
					time.Sleep(time.Until(wake))
				}
				if s := strings.Join(got, ", "); !matches(c.want, s) {
					t.Errorf("got %s\nwant %s", s, c.want)
				}
			})
		})
	}
}

// TestAnInstantHappensOnceToAServer: an instant does not happen again to the server's next connection.
func TestAnInstantHappensOnceToAServer(t *testing.T) {
	_, control := flowOf(t, "crash")
	count := func(c *fault.Control) int { events, _ := c.Flow().Tick(); return len(events) }
	if a, repeated, b := count(control.Named("a")), count(control.Named("a")), count(control.Named("b")); a != 1 || repeated != 0 || b != 1 {
		t.Errorf("a: %d, a again: %d, b: %d", a, repeated, b)
	}
}

func TestProgressWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flow, control := flowOf(t, "endless-progress every=1s")
		flow.ToServer("", []byte(call))
		if got := tell(flow.ToClient("", []byte(called))); got != "dropped" {
			t.Errorf("the answer: %s", got)
		}
		for i := 1; i <= 3; i++ {
			time.Sleep(time.Second)
			events, _ := flow.Tick()
			want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":%d}}`, i)
			if len(events) != 1 || string(events[0].Body) != want {
				t.Fatalf("after %d s: %+v", i, events)
			}
		}
		flow.ToServer("", []byte(cancel))
		time.Sleep(5 * time.Second)
		if events, _ := flow.Tick(); len(events) != 0 {
			t.Errorf("after the cancellation: %d reports", len(events))
		}
		flow.ToServer("", []byte(call))
		control.Clear()
		time.Sleep(time.Minute)
		if events, wake := flow.Tick(); len(events) != 0 || !wake.IsZero() {
			t.Errorf("without the rule: %d reports", len(events))
		}
	})
}
