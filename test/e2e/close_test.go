package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/test/servers/built"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// I12: after Close nothing is left: no process, no descriptor, no goroutine, also of servers that do not want to end,
// of dials that never end, and while the other side is still there. The baseline is compared inside, because the
// servers over HTTP outlive the manager.
func TestCloseLeavesNothing(t *testing.T) {
	seeds.Shows(t, "004.fr6.shutdown", "000.6.close", "001.2.close", "002.5.close")
	checkLeaks(t)
	good := startServer(t, goodWebServer) // its calls go on after ours have ended, so it needs a process of its own
	hole := web.Serve(t, web.BlackHole())
	t.Run("beside servers that live on", func(t *testing.T) {
		checkLeaks(t)
		before := len(childrenOf(t, os.Getpid()))
		short := func(s supervisor.Spec) supervisor.Spec {
			return changeSpec(s, func(s *supervisor.Spec) { s.StopGrace = toDuration(0.5) })
		}
		m := startManager(t, supervisor.Config{
			Servers: map[string]supervisor.Spec{
				"stdio": fixtureSpec("good"), "launcher": fixtureSpec("launcher", "depth=3"),
				"http": {Type: messages.HTTP, URL: good.url("/mcp")}, "sse": {Type: messages.SSE, URL: good.url("/sse")},
				"sdk": {Type: messages.SDK}, "deaf": short(fixtureSpec("ignores-signals")),
				"grandchild": short(fixtureSpec("grandchild", "signals=ignore")), "silent": short(fixtureSpec("silent")),
				"hole": {Type: messages.HTTP, URL: hole + "/mcp"}, "missing": {Command: "/no/such/program"},
			},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"sdk": mcpgo.Serve(web.Server("sdk"))},
		})
		healthy := []string{"stdio", "launcher", "http", "sse", "sdk", "deaf", "grandchild"}
		awaitConnected(t, m, healthy...)
		// A call that will not end is in flight on each.
		type end struct {
			server string
			err    error
		}
		ends := make(chan end, len(healthy))
		w := m.Watch(0)
		for _, name := range healthy {
			go func() {
				_, err := m.CallServerTool(context.Background(), name, "sleep", object{"for": "1h"})
				ends <- end{name, err}
			}()
		}
		started := 0
		for e := range w.Events(testContext(t, bound)) {
			if e.Kind == messages.EventCallStarted {
				if started++; started == len(healthy) {
					break
				}
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			// The grace of the deaf ones and the drain may need more: the rest ends by itself.
			closeManager(t, m)
		}
		for range healthy {
			if e := <-ends; !errors.Is(e.err, supervisor.ErrOutcomeUnknown) && !errors.Is(e.err, supervisor.ErrNotSent) {
				t.Errorf("a call in flight on %s ended with %v", e.server, e.err)
			}
		}
		if n := m.Tools().Len(); n != 0 {
			t.Errorf("the catalog still shows %d tools", n)
		}
		if pids := childrenOf(t, os.Getpid()); len(pids) != before {
			t.Errorf("children after Close returned: %v, there were %d before the start", pids, before)
		}
	})
}

// L3: closing while a hundred servers are starting: within its bound, and nothing stays behind.
func TestCloseWhileAHundredServersAreStarting(t *testing.T) {
	checkLeaks(t)
	for _, after := range []time.Duration{0, 30 * time.Millisecond, 300 * time.Millisecond} {
		specs := map[string]supervisor.Spec{}
		for i := range 100 {
			kind := []string{"good", "slow-start", "silent", "exits-at-once"}[i%4]
			specs[fmt.Sprintf("s%03d", i)] = changeSpec(fixtureSpec(kind), func(s *supervisor.Spec) { s.StopGrace = toDuration(0.2) })
		}
		m, err := supervisor.Start(t.Context(), supervisor.Config{Servers: specs})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		begin := time.Now()
		closeManager(t, m)
		t.Logf("closed %v after the start: took %v", after, time.Since(begin).Round(time.Millisecond))
		if pids := childrenOf(t, os.Getpid()); len(pids) != 0 {
			t.Fatalf("%d children are left after Close returned", len(pids))
		}
	}
}

// Disconnect and Remove end the process, and everything that it started.
func TestDisconnectAndRemoveEndTheProcess(t *testing.T) {
	seeds.Shows(t, "000.11.stdio-lifecycle", "000.11.tool-unregistration", "000.8.unregister",
		"004.fr6.ac-clean-disconnect", "004.fr6.disconnect-one", "000.1.external-servers", "000.4.connect",
		"000.4.disconnect", "002.4.start-server", "002.4.stop-server", "002.8.processes", "002.10.integration",
		"004.fr1.connect-disconnect", "004.e.integration", "004.f.hot-add-remove")
	checkLeaks(t)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"other": fixtureSpec("good")}})
	awaitConnected(t, m, "other")
	ctx := testContext(t, bound)
	for name, end := range map[string]func(string) error{
		"disconnected": func(name string) error { return m.Disconnect(ctx, name) },
		"removed":      func(name string) error { return m.Remove(ctx, name) },
		"replaced": func(name string) error {
			_, err := m.SetServers(ctx, nil)
			return err
		},
	} {
		before := len(childrenOf(t, os.Getpid()))
		if err := m.Connect(ctx, name, fixtureSpec("launcher", "depth=2")); err != nil {
			t.Fatal(err)
		}
		pid := statusOf(t, m, name).PID
		if pid == 0 || len(toolNames(m, name)) == 0 {
			t.Fatalf("%s: process %d, tools %v", name, pid, toolNames(m, name))
		}
		tree := append(descendants(t, pid), pid)
		if err := end(name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if names := toolNames(m, name); name != "replaced" && len(names) != 0 {
			t.Errorf("%s: its tools are still there: %v", name, names)
		}
		awaitEnded(t, bound, tree...)
		eventually(t, name+" is reaped", func() bool { return len(childrenOf(t, os.Getpid())) <= before })
	}
	checkText(t, m, "other", "echo", object{"text": "still here"}, "still here")
}

// H12: a thousand cycles would take long; what each leaves behind would show after forty, too.
func TestReconnectsLeaveNothing(t *testing.T) {
	checkLeaks(t)
	good := web.Serve(t, web.Good())
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"stdio": {Command: built.Fixture(t), Args: servers.Args("good")},
		"http":  {Type: messages.HTTP, URL: good + "/mcp"},
		"sse":   {Type: messages.SSE, URL: good + "/sse"},
	}})
	awaitConnected(t, m, "stdio", "http", "sse")
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors(t)
	for range 40 {
		for _, name := range []string{"stdio", "http", "sse"} {
			if err := m.Reconnect(testContext(t, bound), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Idle connections to the HTTP server may be a few more than there were; they do not grow with the cycles.
	const few = 10
	eventually(t, "goroutines and descriptors are back where they were", func() bool {
		return runtime.NumGoroutine() <= goroutines+4*few && len(openDescriptors(t)) <= len(descriptors)+2*few
	})
	if st := statusOf(t, m, "stdio"); st.Restarts != 40 || st.Attempts != 0 {
		t.Errorf("%d restarts, %d failures", st.Restarts, st.Attempts)
	}
}
