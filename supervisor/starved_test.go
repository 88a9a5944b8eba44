package supervisor_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports"
)

// dialled counts the dials of a transport by their time.
type dialled struct {
	transports.Transport
	mu    *sync.Mutex
	times *[]time.Time
}

func (d dialled) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	d.mu.Lock()
	*d.times = append(*d.times, time.Now())
	d.mu.Unlock()
	return d.Transport.Dial(ctx, sink)
}

// TestStarvedServersStartFewAtATime has forty servers that answer after 6 s: on a machine where they wait for a processor all
// that time, the first eight start at once and the others a few at a time, until they are not starved any more; where they do not
// wait, each is a slow server, and costs those behind it 2 s of a slot.
func TestStarvedServersStartFewAtATime(t *testing.T) {
	const servers, answers = 40, 6 * time.Second
	for name, c := range map[string]struct {
		waits float64
		most  []int // that start within 6 s, in each 6 s
	}{
		"starved": {0.95, []int{8, 4, 2, 2}},
		"slow":    {0.3, []int{24, 16}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var times []time.Time
				cfg := supervisor.Config{Gate: restart.DefaultLimits(2), Servers: map[string]supervisor.Spec{}}
				cfg.Transport = func(string, supervisor.Spec) (transports.Transport, error) {
					return dialled{&working{installs: answers, waits: c.waits, server: newFake("tool")}, &mu, &times}, nil
				}
				for i := range servers {
					cfg.Servers[fmt.Sprint("s", i)] = supervisor.Spec{Command: "node"}
				}
				begin := time.Now()
				m := start(t, cfg, nil)
				time.Sleep(4 * time.Minute)
				if n := len(m.ConnectedServers()); n != servers {
					t.Errorf("%d are connected", n)
				}
				slices.SortFunc(times, time.Time.Compare)
				counts := make([]int, len(c.most))
				for _, at := range times {
					if i := int(at.Sub(begin) / answers); i < len(counts) {
						counts[i]++
					}
				}
				if len(times) != servers || !slices.Equal(counts, c.most) {
					t.Errorf("%d dials, in each %v %v, want %v", len(times), answers, counts, c.most)
				}
			})
		})
	}
}
