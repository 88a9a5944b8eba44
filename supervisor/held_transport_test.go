package supervisor_test

import (
	"context"
	"slices"
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

// heldTransport is one whose Dial does not look at its context, and waits until the test ends that.
type heldTransport struct {
	transports.Transport
	stuck chan struct{}
}

func (h heldTransport) Dial(ctx context.Context, to transports.Sink) (transports.Conn, error) {
	<-h.stuck
	return h.Transport.Dial(ctx, to)
}

// A Dial that does not return holds its own server, whose status was "dialing" for ever, and did not say why.
func TestStatusNamesADialThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		bad := supervisortest.NewServer("bad", supervisortest.Echo("x"))
		cfg := supervisortest.AddTo(supervisor.Config{}, bad)
		spec := cfg.Servers["bad"]
		spec.ConnectTimeout = supervisor.Duration(3 * time.Second)
		cfg.Servers["bad"] = spec
		cfg.Wrap = func(_ string, _ supervisor.Spec, inner transports.Transport) transports.Transport {
			return heldTransport{inner, stuck}
		}
		m, err := supervisor.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(context.Background())
		reason := func() string {
			synctest.Wait()
			st, err := m.ServerStatus("bad")
			if err != nil {
				t.Fatal(err)
			}
			return st.Reason
		}
		const said = "the Dial of its transport has not returned"
		if r := reason(); strings.Contains(r, said) {
			t.Errorf("within its time the reason is %q", r)
		}
		time.Sleep(5 * time.Second)
		if r := reason(); !strings.Contains(r, said) {
			t.Errorf("after its time the reason is %q", r)
		}
		entries, err := m.History("bad")
		if err != nil || !slices.ContainsFunc(entries, func(e supervisor.HistoryEntry) bool { return strings.Contains(e.Text, said) }) {
			t.Errorf("the history does not say it: %v, %v", entries, err)
		}
		close(stuck)
		if err := m.Ready(t.Context(), "bad"); err != nil {
			t.Error(err)
		}
		if r := reason(); strings.Contains(r, said) {
			t.Errorf("when it is connected the reason is %q", r)
		}
	})
}
