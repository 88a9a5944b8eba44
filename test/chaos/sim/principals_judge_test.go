package sim

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The release of a connection may be told after the dial of the next one in the same instant. A connection that is still there
// afterwards is a second one.
func TestAnInstanceHasOneConnection(t *testing.T) {
	for _, released := range []bool{true, false} {
		rec := history.NewRecorder(scenario.Plan{}, nil)
		w := &simulation{rec: rec, start: time.Now(), virtualNow: time.Second}
		p := &principals{world: w}
		h := &simServer{w: w, conns: map[int]*simConn{1: {}, 2: {}}}
		p.checkOnlyConn("mail@carl", h)
		if released {
			delete(h.conns, 1)
		}
		for do := w.timeline.takeDue(w.virtualNow + 1); do != nil; do = w.timeline.takeDue(w.virtualNow + 1) {
			do()
		}
		if n := rec.Len(); (n == 0) != released {
			t.Errorf("released %v: %d violations", released, n)
		}
	}
}
