package supervisor_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// startAsProcesses runs the fakes as servers of kind stdio, so that the gate counts them as processes.
func startAsProcesses(t *testing.T, cfg supervisor.Config, fakes map[string]*fake) *supervisor.Manager {
	t.Helper()
	cfg.Gate = restart.DefaultLimits(2)
	specs := map[string]supervisor.Spec{}
	for name := range fakes {
		specs[name] = supervisor.Spec{Type: messages.Stdio, Command: "server"}
	}
	maps.Copy(specs, cfg.Servers)
	cfg.Servers = specs
	cfg.Transport = func(name string, _ supervisor.Spec) (transports.Transport, error) {
		return inprocess.New(fakes[name].serve), nil
	}
	return start(t, cfg, fakes)
}

// hundredSilent are 100 servers that never answer.
func hundredSilent() map[string]*fake {
	fakes := map[string]*fake{}
	for i := range 100 {
		f := newFake("x")
		f.mute = true
		fakes[fmt.Sprintf("silent-%03d", i)] = f
	}
	return fakes
}

// connectedAfter is the virtual time until a server is connected.
func connectedAfter(t *testing.T, m *supervisor.Manager, name string) time.Duration {
	t.Helper()
	begin := time.Now()
	for phase(t, m, name) != messages.Connected {
		time.Sleep(50 * time.Millisecond)
		if time.Since(begin) > 5*time.Minute {
			t.Fatalf("%s is not connected after %v", name, time.Since(begin))
		}
	}
	return time.Since(begin)
}

// A healthy server behind 100 silent ones costs itself their slots, 8 at a time for 2 s, and not their connect timeouts.
// What a person asks for while as many are silent as may be does not wait for anything but one slot.
func TestSilentServersDoNotHoldUpAHealthyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes := hundredSilent()
		fakes["zz-healthy"], fakes["zz-asked"] = newFake("x"), newFake("x")
		m := startAsProcesses(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"zz-asked": {Type: messages.Stdio, Command: "server", Disabled: true},
		}}, fakes)
		var most atomic.Int64
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				synctest.Wait() // within an instant one that ends and its successor would both count
				alive := int64(0)
				for _, f := range fakes {
					alive += f.alive.Load()
				}
				most.Store(max(most.Load(), alive))
			}
		}()
		time.Sleep(16*time.Second + 500*time.Millisecond)
		begin := time.Now()
		if err := m.Toggle(t.Context(), "zz-asked", true); err != nil {
			t.Fatal(err)
		}
		connectedAfter(t, m, "zz-asked")
		if up := time.Since(begin); up > 3*time.Second {
			t.Errorf("what a person asked for was connected after %v", up)
		}
		connectedAfter(t, m, "zz-healthy")
		up := 16500*time.Millisecond + time.Since(begin)
		if up > 27*time.Second {
			t.Errorf("the healthy server was connected after %v", up)
		}
		t.Logf("the healthy server was connected after %v", up)
		<-watched
		if n := most.Load(); n > 64+2 {
			t.Errorf("%d processes were alive, 64 may be silent and 2 answer", n)
		}
		displaced := 0
		for name := range fakes {
			st, _ := m.ServerStatus(name)
			if strings.HasPrefix(name, "silent") && st.Attempts > 2 {
				t.Errorf("%s has failed %d times in a minute", name, st.Attempts)
			}
			history, err := m.History(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range history {
				if strings.Contains(e.Text, "gave its place") {
					displaced++
				}
			}
		}
		if displaced < 30 || displaced > 60 {
			t.Errorf("%d attempts gave their place", displaced)
		}
	})
}

// A server that needs 54 s for its first start, and is allowed 60, is interrupted once when many others are silent, and is
// connected by its second attempt, also if a person asks for 100 more silent servers during that.
func TestASlowServerIsDisplacedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes := hundredSilent()
		slow := newFake("x")
		slow.delay = 54 * time.Second
		fakes["a-slow"] = slow
		specs := map[string]supervisor.Spec{
			"a-slow": {Type: messages.Stdio, Command: "server", ConnectTimeout: messages.Duration(time.Minute)},
		}
		for name, f := range hundredSilent() {
			fakes["late-"+name] = f
			specs["late-"+name] = supervisor.Spec{Type: messages.Stdio, Command: "server", Disabled: true}
		}
		m := startAsProcesses(t, supervisor.Config{Servers: specs}, fakes)
		var asked sync.WaitGroup
		defer asked.Wait()
		for name := range specs {
			if strings.HasPrefix(name, "late-") {
				asked.Go(func() {
					time.Sleep(45 * time.Second)
					_ = m.Toggle(t.Context(), name, true) // it never connects
				})
			}
		}
		up := connectedAfter(t, m, "a-slow")
		if n := slow.dials.Load(); n != 2 {
			t.Errorf("it was dialled %d times", n)
		}
		// It took 1m32s to 2m40s in a thousand runs: the order in which servers ask the gate is chance here.
		if up > 3*time.Minute {
			t.Errorf("it was connected after %v", up)
		}
		t.Logf("connected after %v", up)
	})
}
