package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

// beginCalls begins calls of one tool, and returns when they are on their way. ends gives their errors.
func beginCalls(t *testing.T, m *supervisor.Manager, n int, server, tool string, args any) (ends <-chan error) {
	t.Helper()
	w := m.Watch(0)
	defer w.Close()
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := m.CallServerTool(context.Background(), server, tool, args)
			errs <- err
		}()
	}
	for e := range w.Events(testContext(t, bound)) {
		if e.Kind == messages.EventCallStarted && e.Server == server {
			if n--; n == 0 {
				break
			}
		}
	}
	time.Sleep(200 * time.Millisecond) // an event is not a byte written: most of them are by now
	return errs
}

// awaitUnknown waits for the ends of calls, each of which must be outcome unknown, or not sent if it was too late.
func awaitUnknown(t *testing.T, ends <-chan error, n int) {
	t.Helper()
	unknown := 0
	for range n {
		select {
		case err := <-ends:
			if errors.Is(err, supervisor.ErrOutcomeUnknown) {
				unknown++
			} else if !errors.Is(err, supervisor.ErrNotSent) {
				t.Errorf("a call in flight ended with %v", err)
			}
		case <-time.After(bound):
			t.Fatal("a call in flight has not ended with its server")
		}
	}
	if unknown == 0 {
		t.Error("no call had been sent")
	}
}

// kill -9 of real servers, all at once: the calls in flight end at the death and not at their deadline, everything that
// the servers had started ends, and they are back under the restart policy, with a fresh list, while others notice
// nothing.
func TestKilledServersAreConnectedAgain(t *testing.T) {
	seeds.Shows(t, "001.1.reconnection", "001.7.disconnection", "004.fr1.ac-disconnection", "004.fr6.reconnect",
		"004.fr6.ac-reconnect", "004.fr3.ac-refresh", "004.nfr2.degradation", "002.9.process-isolation")
	checkLeaks(t)
	npm := peers.NPM(t)
	spec := func(command string, args []string) supervisor.Spec {
		return supervisor.Spec{Command: command, Args: args, CallTimeout: -1}
	}
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"everything": spec(npm.Command(peers.Everything)), "npx": spec(npm.NPX(peers.Everything)),
		"files": spec(npm.Command(peers.Filesystem, t.TempDir())), "bystander": spec(npm.Command(peers.Memory)),
	}})
	victims := []string{"everything", "npx", "files"}
	awaitConnected(t, m, append(victims, "bystander")...)
	before := map[string]supervisor.Status{}
	var pids []int
	for _, name := range victims {
		before[name] = statusOf(t, m, name)
		pids = append(append(pids, before[name].PID), descendants(t, before[name].PID)...)
	}
	const callers = 20
	long := object{"duration": 3600, "steps": 1}
	ends := beginCalls(t, m, callers, "everything", "trigger-long-running-operation", long)
	npxEnds := beginCalls(t, m, callers, "npx", "trigger-long-running-operation", long)
	w := m.Watch(1000)
	begin := time.Now()
	for _, name := range victims {
		kill9(t, before[name].PID)
	}
	awaitUnknown(t, ends, callers)
	t.Logf("%d calls in flight had ended %v after kill -9", callers, time.Since(begin).Round(time.Millisecond))
	awaitUnknown(t, npxEnds, callers)
	awaitEnded(t, bound, pids...)
	for _, name := range victims {
		eventually(t, name+" is connected again", func() bool {
			st := statusOf(t, m, name)
			return st.Status == messages.Connected && st.Epoch > before[name].Epoch
		})
		st := statusOf(t, m, name)
		if st.Restarts != 1 || st.PID == before[name].PID || st.PID == 0 {
			t.Errorf("%s: %d restarts, process %d, then %d", name, st.Restarts, before[name].PID, st.PID)
		}
		eventually(t, name+" shows the tools of its new connection", func() bool {
			for _, e := range m.Tools().Server(name) {
				if e.State != catalog.Live || e.Epoch != st.Epoch {
					return false
				}
			}
			return len(toolNames(m, name)) == len(st.Tools)
		})
	}
	checkText(t, m, "everything", "echo", object{"message": "again"}, "Echo: again")
	checkText(t, m, "npx", "echo", object{"message": "again"}, "Echo: again")
	t.Logf("all were connected again %v after kill -9", time.Since(begin).Round(time.Millisecond))
	if st := statusOf(t, m, "bystander"); st.Restarts != 0 || st.Status != messages.Connected {
		t.Errorf("a server that nobody killed: %s, %d restarts", st.Status, st.Restarts)
	}
	// What happened is told: how it died, when it was to be tried again, and that it is back.
	var steps []string
	w.Close()
	for e := range w.Events(t.Context()) {
		if e.Server == "everything" && e.Kind == messages.EventPhase {
			steps = append(steps, string(e.Status.Status)+" "+string(e.Status.Step))
			if e.Status.Step == messages.Restarting && !containsWords(e.Status.Error, "killed") {
				t.Errorf("the reason of the restart: %q", e.Status.Error)
			}
		}
	}
	if len(steps) < 4 || steps[0] != "pending restarting" && steps[0] != "pending closing" ||
		steps[len(steps)-1] != "connected " {
		t.Errorf("a watcher saw %q", steps)
	}
	history, err := m.History("everything")
	if err != nil || !containsWords(asJSON(t, history), "signal killed", "next attempt") {
		t.Errorf("its history: %s, %v", asJSON(t, history), err)
	}
}

// A child that dies in a call, or just after it has answered one: the first call is outcome unknown, the second has its
// answer.
func TestAnAnswerThatWasDeliveredBeatsTheDeath(t *testing.T) {
	checkLeaks(t)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"answers": fixtureSpec("answers-and-dies"), "dies": fixtureSpec("dies-mid-call"), "half": fixtureSpec("half-line"),
	}})
	awaitConnected(t, m, "answers", "dies", "half")
	checkText(t, m, "answers", "echo", object{"text": "last words"}, "last words")
	for _, name := range []string{"dies", "half"} {
		res, err := m.CallServerTool(testContext(t, bound), name, "echo", object{"text": "?"})
		if !errors.Is(err, supervisor.ErrOutcomeUnknown) || !containsWords(err.Error(), name, "may have run") {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	eventually(t, "all are back", func() bool {
		for _, name := range []string{"answers", "dies", "half"} {
			if st := statusOf(t, m, name); st.Status != messages.Connected || st.Restarts != 1 {
				return false
			}
		}
		return true
	})
}

// A server over HTTP or SSE that is killed is noticed without a call, within the bound that Timing.ProbeEvery sets, and
// connected again when it is back on its port.
func TestAKilledRemoteServerIsNoticedAndConnectedAgain(t *testing.T) {
	seeds.Shows(t, "001.1.health", "004.fr6.health")
	checkLeaks(t)
	npm := peers.NPM(t)
	for kind, path := range map[string]string{"streamableHttp": "/mcp", "sse": "/sse"} {
		t.Run(kind, func(t *testing.T) {
			l := startServer(t, everythingServer(npm, kind))
			spec := supervisor.Spec{Type: messages.HTTP, URL: l.url(path), CallTimeout: -1}
			if kind == "sse" {
				spec.Type = messages.SSE
			}
			const every = 500 * time.Millisecond
			m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"far": spec},
				Timing: actors.Timing{ProbeEvery: every}})
			awaitConnected(t, m, "far")
			const callers = 5
			ends := beginCalls(t, m, callers, "far", "trigger-long-running-operation", object{"duration": 3600, "steps": 1})
			begin := time.Now()
			l.killProcess()
			eventually(t, "its death is noticed", func() bool { return statusOf(t, m, "far").Status != messages.Connected })
			t.Logf("noticed after %v; it is asked every %v", time.Since(begin).Round(time.Millisecond), every)
			awaitUnknown(t, ends, callers)
			if st := statusOf(t, m, "far"); st.Class != messages.ClassNetwork || st.Error == "" {
				t.Errorf("%s %q: %s", st.Status, st.Class, st.Error)
			}
			_, err := m.CallServerTool(testContext(t, bound), "far", "echo", object{"message": "?"})
			if !errors.Is(err, supervisor.ErrNotSent) {
				t.Errorf("a call of a server that is away: %v", err)
			}
			l.startProcess()
			awaitConnected(t, m, "far")
			checkText(t, m, "far", "echo", object{"message": "again"}, "Echo: again")
		})
	}
}

// Without any probe a call notices the death, at once.
func TestACallNoticesADeadRemoteServer(t *testing.T) {
	checkLeaks(t)
	l := startServer(t, goodWebServer)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"far": {Type: messages.HTTP, URL: l.url("/mcp")}},
		Timing: actors.Timing{ProbeEvery: time.Hour}})
	awaitConnected(t, m, "far")
	l.killProcess()
	_, err := m.CallServerTool(testContext(t, bound), "far", "echo", object{"text": "?"})
	if !errors.Is(err, supervisor.ErrNotSent) && !errors.Is(err, supervisor.ErrOutcomeUnknown) {
		t.Errorf("a call of a dead server: %v", err)
	}
	eventually(t, "its death is noticed", func() bool { return statusOf(t, m, "far").Status != messages.Connected })
	l.startProcess()
	awaitConnected(t, m, "far")
	checkText(t, m, "far", "echo", object{"text": "again"}, "again")
}

// A real server that was restarted on its port knows no session of before. The next call finds out, and gets its
// answer from a new session; a server that says it in its own words (400) is understood.
func TestARestartedRemoteServerGetsANewSession(t *testing.T) {
	checkLeaks(t)
	for name, command := range map[string]func(int) *exec.Cmd{
		"npm":    everythingServer(peers.NPM(t), "streamableHttp"),
		"go sdk": goSDKServer(peers.Go(t), "false"),
		"mcp-go": goodWebServer,
	} {
		t.Run(name, func(t *testing.T) {
			l := startServer(t, command)
			tool, args := "echo", object{"message": "hi", "text": "hi"}
			path := "/mcp"
			if name == "go sdk" {
				tool, args, path = "test_simple_text", nil, "/"
			}
			m := startManager(t, supervisor.Config{
				Servers: map[string]supervisor.Spec{
					"far":       {Type: messages.HTTP, URL: l.url(path), Era: messages.EraLegacy},
					"stateless": {Type: messages.HTTP, URL: l.url(path)},
				},
				Timing: actors.Timing{ProbeEvery: time.Hour},
			})
			awaitConnected(t, m, "far", "stateless")
			before := statusOf(t, m, "far")
			want := mustCall(t, m, "far", tool, args).Text()
			l.killProcess()
			l.startProcess()
			// The answer, or at worst a call that was not sent: never one of unknown outcome, for nothing has run.
			ok := isEventually(bound, func() bool {
				res, err := m.CallServerTool(testContext(t, bound), "far", tool, args)
				if err != nil && !errors.Is(err, supervisor.ErrNotSent) {
					t.Fatalf("after the restart: %v", err)
				}
				return err == nil && res.Text() == want
			})
			st := statusOf(t, m, "far")
			if !ok || st.Status != messages.Connected || st.Epoch <= before.Epoch || st.Restarts != 1 {
				t.Errorf("%s %s, %d restarts, epoch %d after %d", st.Status, st.Error, st.Restarts, st.Epoch, before.Epoch)
			}
			// In the modern era there is no session to lose: the same connection goes on.
			st = statusOf(t, m, "stateless")
			if st.Era != messages.EraModern {
				return
			}
			if got := mustCall(t, m, "stateless", tool, args).Text(); got != want {
				t.Errorf("without a session: %q", got)
			}
			if st = statusOf(t, m, "stateless"); st.Restarts != 0 {
				t.Errorf("without a session: %d restarts", st.Restarts)
			}
		})
	}
}

// H1: a session that the server has forgotten (404) costs one new session and no call: what the server refused before
// it ran is sent again, once, and what ran is not.
func TestALostSessionCostsOneNewSessionAndNoCall(t *testing.T) {
	checkLeaks(t)
	var executions, initializations atomic.Int64
	fresh := func() http.Handler {
		s := server.NewMCPServer("forgetful", "1.0.0")
		s.AddTool(mcp.NewTool("write"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			executions.Add(1)
			return mcp.NewToolResultText("written"), nil
		})
		hooks := &server.Hooks{}
		hooks.AddBeforeInitialize(func(context.Context, any, *mcp.InitializeRequest) { initializations.Add(1) })
		server.WithHooks(hooks)(s)
		return server.NewStreamableHTTPServer(s, server.WithStateful(true))
	}
	var now atomic.Pointer[http.Handler]
	h := fresh()
	now.Store(&h)
	url := web.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*now.Load()).ServeHTTP(w, r) }))
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"far": {Type: messages.HTTP, URL: url + "/mcp", Era: messages.EraLegacy}, // the modern era has no sessions
	}})
	awaitConnected(t, m, "far")
	for i := range 2 { // a third one within a minute waits longer than a call does
		const callers = 4
		ran, opened := executions.Load(), initializations.Load()
		h := fresh()
		now.Store(&h)
		answered := make(chan error, callers)
		for range callers {
			go func() {
				_, err := m.CallServerTool(context.Background(), "far", "write", nil)
				answered <- err
			}()
		}
		results := int64(0)
		for range callers {
			if err := <-answered; err == nil {
				results++
			} else if !errors.Is(err, supervisor.ErrNotSent) {
				t.Errorf("restart %d: %v", i, err)
			}
		}
		if n := executions.Load() - ran; n != results {
			t.Errorf("restart %d: %d results, %d executions", i, results, n)
		}
		awaitConnected(t, m, "far")
		eventually(t, "the lost session is noticed", func() bool { return initializations.Load() > opened })
		if n := initializations.Load() - opened; n != 1 {
			t.Errorf("restart %d: %d new sessions for one that was lost", i, n)
		}
		if results == 0 {
			t.Errorf("restart %d: no call got its answer from the new session", i)
		}
		eventually(t, "its tools are back", func() bool {
			_, err := m.CallServerTool(t.Context(), "far", "write", nil)
			return err == nil
		})
	}
}
