package supervision_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers/built"
	"github.com/mcpvisor/mcpvisor/transports"
)

// callerKeys authorizes requests with the key of their caller.
type callerKeys struct{}

func (callerKeys) Authorize(ctx context.Context, h http.Header) error {
	h.Set("Authorization", "Bearer "+messages.CallerOf(ctx))
	return nil
}

func (callerKeys) Refused(context.Context, int, *messages.Challenge, http.Header) (bool, error) {
	return false, nil
}

// BenchmarkCaller measures a call over stdio with a caller, credentials by caller and three interceptors against one without them, in
// turns of all, and reports the ratios of their median turns: as it is by default, and with Config.InlineInterceptors. The fastest turns say
// nothing: a turn in which the scheduler happens to keep a processor awake takes a third of the time of the others.
func BenchmarkCaller(b *testing.B) {
	pass := func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
		return next(ctx, r)
	}
	start := func(cfg supervisor.Config) *supervisor.Manager {
		cfg.Servers = map[string]supervisor.Spec{"one": {Command: built.Fixture(b), Args: []string{"cheap"}, Era: messages.EraLegacy}}
		m, err := supervisor.Start(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = m.Close(context.Background()) })
		if err := m.Ready(b.Context(), "one"); err != nil {
			b.Fatal(err)
		}
		return m
	}
	hooked := supervisor.Config{
		Interceptors: []supervisor.Interceptor{pass, pass, pass},
		AuthProvider: func(string, supervisor.Spec) (transports.Authorizer, error) { return callerKeys{}, nil },
	}
	plain, whole := start(supervisor.Config{}), start(hooked)
	hooked.InlineInterceptors = true
	inline := start(hooked)
	const tool = "add"
	const calls = 256 // some milliseconds, in which a busy machine is idle now and then
	turn := func(m *supervisor.Manager, callers int, named bool) time.Duration {
		var all sync.WaitGroup
		began := time.Now()
		for i := range callers {
			ctx := b.Context()
			if named {
				ctx = supervisor.WithCaller(ctx, fmt.Sprint("caller-", i))
			}
			all.Go(func() {
				for range calls / callers {
					if _, err := m.CallServerTool(ctx, "one", tool, json.RawMessage(`{"a":1,"b":2}`)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		return time.Since(began)
	}
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			managers := []*supervisor.Manager{plain, whole, inline}
			times := make([][]time.Duration, len(managers))
			for n := range b.N {
				for i := range managers {
					i = (n + i) % len(managers)
					times[i] = append(times[i], turn(managers[i], callers, i > 0))
				}
			}
			median := func(i int) float64 {
				slices.Sort(times[i])
				return float64(times[i][len(times[i])/2])
			}
			b.ReportMetric(median(1)/median(0), "ratio")
			b.ReportMetric(median(2)/median(0), "inline-ratio")
			b.ReportMetric(median(0)/1e3/float64(calls/callers*callers), "µs/call")
		})
	}
}
