package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// With Retries a caller whose wait is longer than an attempt gets the outcome of the next attempt; without it the
// caller gets the failure. A server that ended by itself is not waited for again, nor is one that the query does not
// name.
func TestStatusWaitsForWhoRanOutOfTime(t *testing.T) {
	late := func(dials *atomic.Int64, silent int64) func(context.Context, inprocess.Peer) error {
		return func(ctx context.Context, peer inprocess.Peer) error {
			n := dials.Add(1)
			for {
				msg, err := peer.Read(ctx)
				if err != nil {
					return err
				}
				var req struct {
					ID     json.RawMessage
					Method string
				}
				if json.Unmarshal(msg, &req) != nil || req.ID == nil || n <= silent {
					continue
				}
				result := `{"tools":[]}`
				if req.Method == "initialize" {
					result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}`
				}
				_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result))
			}
		}
	}
	for _, c := range []struct {
		name   string
		query  control.StatusQuery
		want   messages.Phase
		silent int64
		within time.Duration
	}{
		{"waits for the next attempt", control.StatusQuery{Servers: []string{"late"}, Wait: 240 * time.Second, Retries: true},
			messages.Connected, 1, 60 * time.Second},
		{"waits for all of it", control.StatusQuery{Servers: []string{"late"}, Wait: 80 * time.Second, Retries: true},
			messages.Pending, 100, 80 * time.Second},
		{"is told", control.StatusQuery{Servers: []string{"late"}, Wait: 240 * time.Second}, messages.Failed, 1, 31 * time.Second},
		{"does not wait for a death", control.StatusQuery{Servers: []string{"dead"}, Wait: 240 * time.Second, Retries: true},
			messages.Failed, 1, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dials atomic.Int64
				dead := func(context.Context, inprocess.Peer) error { return errors.New("it has died") }
				spec := supervisor.Spec{Type: messages.SDK, Era: messages.EraLegacy}
				m, err := supervisor.Start(t.Context(), supervisor.Config{
					Servers:   map[string]supervisor.Spec{"late": spec, "dead": spec},
					InProcess: map[string]func(context.Context, inprocess.Peer) error{"late": late(&dials, c.silent), "dead": dead},
				})
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				all, err := control.Local(m, control.LocalConfig{}).Status(t.Context(), c.query)
				took := time.Since(begin)
				if err != nil || len(all) != 1 || all[0].Status != c.want || took > c.within {
					t.Errorf("after %v: %+v, %v", took, all, err)
				}
				within, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				if err := m.Close(within); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Millisecond) // the actor library's throttle for dead letters
			})
		})
	}
}
