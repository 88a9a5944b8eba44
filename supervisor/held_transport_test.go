package supervisor_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// TestAFunctionThatOpensAServerAndDoesNotReturn: a server whose transport the program never returned was dialling for ever, with its connect
// timeout long over, and Close waited for it.
func TestAFunctionThatOpensAServerAndDoesNotReturn(t *testing.T) {
	for _, place := range []string{"Config.Transport", "Config.Wrap"} {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := make(chan struct{})
				bad, good := supervisortest.NewServer("bad", supervisortest.Echo("x")), supervisortest.NewServer("good", supervisortest.Echo("x"))
				hold := func(here string) {
					if here == place {
						<-stuck
					}
				}
				cfg := supervisortest.AddTo(supervisor.Config{}, bad, good)
				spec := cfg.Servers["bad"]
				spec.ConnectTimeout = supervisor.Duration(3 * time.Second)
				cfg.Servers["bad"] = spec
				var open atomic.Int32
				cfg.Transport = func(server string, _ supervisor.Spec) (transports.Transport, error) {
					if server != "bad" {
						return nil, nil
					}
					hold("Config.Transport")
					return inprocess.New(func(ctx context.Context, peer inprocess.Peer) error {
						open.Add(1)
						defer open.Add(-1)
						return bad.Serve(ctx, peer)
					}), nil
				}
				cfg.Wrap = func(server string, _ supervisor.Spec, inner transports.Transport) transports.Transport {
					if server == "bad" {
						hold("Config.Wrap")
					}
					return inner
				}
				m, err := supervisor.Start(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Ready(t.Context(), "good"); err != nil {
					t.Errorf("the other server: %v", err)
				}
				time.Sleep(9 * time.Second)
				synctest.Wait()
				st, err := m.ServerStatus("bad")
				if err != nil || st.Class != messages.ClassTimeout || !strings.Contains(st.Error, place+" had not returned within 3s") {
					t.Errorf("%s, %s, %q, %v", st.Status, st.Class, st.Error, err)
				}
				close(stuck)
				if err := m.Ready(t.Context(), "bad"); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if n := open.Load(); n != 1 {
					t.Errorf("%d connections are open", n)
				}
				begun := time.Now()
				if err := m.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took > time.Second {
					t.Errorf("Close took %s", took)
				}
			})
		})
	}
}
