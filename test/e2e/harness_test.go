package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// bound is when a test gives up waiting for what must come: a dozen servers of Node, of which npx starts some, take a minute on a busy machine.
const bound = 2 * time.Minute

// checkLeaks compares, when the test and everything that it cleans up has ended, what this process holds with what
// it held before. It is called first.
func checkLeaks(t *testing.T) {
	t.Helper()
	goroutines := goleak.IgnoreCurrent()
	descriptors, children, roles := openDescriptors(t), len(childrenOf(t, os.Getpid())), len(roleProcesses(t))
	t.Cleanup(func() {
		if t.Failed() {
			return // what a failed test leaves behind is not news
		}
		eventually(t, "child processes are back at the baseline", func() bool {
			return len(childrenOf(t, os.Getpid())) <= children
		})
		eventually(t, "what this program played has ended", func() bool { return len(roleProcesses(t)) <= roles })
		if !isEventually(bound, func() bool { return len(openDescriptors(t)) <= len(descriptors) }) {
			t.Errorf("file descriptors are left: %q, and before there were %q", openDescriptors(t), descriptors)
		}
		var left error
		if !isEventually(bound, func() bool { left = goleak.Find(goroutines); return left == nil }) {
			t.Errorf("goroutines are left: %v", left)
		}
	})
}

// startManager runs a manager until the end of the test, and then closes it.
func startManager(t *testing.T, cfg supervisor.Config) *supervisor.Manager {
	t.Helper()
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeManager(t, m) })
	return m
}

func closeManager(t *testing.T, m *supervisor.Manager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// testContext is a context for one step of a test.
func testContext(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// callTime is the context of a call whose time is over when the test says so, and not at a time of the clock: by then a slow machine
// may not have sent the call.
type callTime struct {
	context.Context
	over chan struct{}
	once *sync.Once
}

func newCallTime(t *testing.T) callTime {
	return callTime{testContext(t, bound), make(chan struct{}), new(sync.Once)}
}

func (c callTime) Done() <-chan struct{} { return c.over }

func (c callTime) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// end ends the time; it may be called again.
func (c callTime) end() { c.once.Do(func() { close(c.over) }) }

// endLate ends the time after bound, and its stop keeps it from that: a test must fail, not hang.
func (c callTime) endLate() (stop func() bool) { return context.AfterFunc(c.Context, c.end) }

func awaitSettled(t *testing.T, m *supervisor.Manager) {
	t.Helper()
	if err := m.Settled(testContext(t, bound)); err != nil {
		t.Fatal(err)
	}
}

// awaitRefused waits like awaitSettled where a spec cannot work, of which the error tells: it names the server.
func awaitRefused(t *testing.T, m *supervisor.Manager, server string) {
	t.Helper()
	if err := m.Settled(testContext(t, bound)); err == nil || !strings.Contains(err.Error(), `"`+server+`"`) {
		t.Fatalf("Settled does not tell of %q: %v", server, err)
	}
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !isEventually(bound, ok) {
		t.Fatalf("never: %s", what)
	}
}

func isEventually(d time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(d); ; time.Sleep(10 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

func statusOf(t *testing.T, m *supervisor.Manager, name string) supervisor.Status {
	t.Helper()
	st, err := m.ServerStatus(name)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// awaitConnected waits until all of these servers are connected.
func awaitConnected(t *testing.T, m *supervisor.Manager, names ...string) {
	t.Helper()
	for _, name := range names {
		if !isEventually(bound, func() bool { return statusOf(t, m, name).Status == messages.Connected }) {
			st := statusOf(t, m, name)
			t.Fatalf("%s is %s (%s): %s\nstderr: %s", name, st.Status, st.Reason, st.Error, st.StderrTail)
		}
	}
}

type object = map[string]any

// mustCall runs a tool that must answer.
func mustCall(t *testing.T, m *supervisor.Manager, server, tool string, args any) *supervisor.Result {
	t.Helper()
	res, err := m.CallServerTool(testContext(t, bound), server, tool, args)
	if err != nil {
		t.Fatalf("%s:%s: %v", server, tool, err)
	}
	return res
}

// checkText runs a tool and compares the text that it answers.
func checkText(t *testing.T, m *supervisor.Manager, server, tool string, args any, want string) {
	t.Helper()
	res := mustCall(t, m, server, tool, args)
	if res.IsError || res.Text() != want {
		t.Errorf("%s:%s answers %q (isError %v), want %q", server, tool, res.Text(), res.IsError, want)
	}
}

// toolNames is what the catalog shows of a server, by the server's own names.
func toolNames(m *supervisor.Manager, server string) []string {
	var names []string
	for _, e := range m.Tools().Server(server) {
		names = append(names, e.Tool.Name)
	}
	return names
}

// fixtureSpec is the spec of a fixture, played by this test binary.
func fixtureSpec(kind string, parameters ...string) supervisor.Spec {
	command, args := servers.Command(kind, parameters...)
	return supervisor.Spec{Command: command, Args: args}
}

// changeSpec changes a copy of a spec.
func changeSpec(s supervisor.Spec, change func(*supervisor.Spec)) supervisor.Spec {
	change(&s)
	return s
}

func toDuration(n float64) supervisor.Duration {
	return supervisor.Duration(time.Duration(n * float64(time.Second)))
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// containsWords reports whether text holds each of the words, whatever their case.
func containsWords(text string, words ...string) bool {
	text = strings.ToLower(text)
	for _, w := range words {
		if !strings.Contains(text, strings.ToLower(w)) {
			return false
		}
	}
	return true
}
