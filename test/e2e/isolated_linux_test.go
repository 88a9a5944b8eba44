package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// Servers that are not of this project, on Node, work while they are isolated, and are kept from what they were not given.
func TestRealServersWorkIsolated(t *testing.T) {
	seeds.Shows(t, "002.9.sandbox")
	checkLeaks(t)
	npm, home := peers.NPM(t), t.TempDir()
	data := filepath.Join(home, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	spec := func(command string, args []string, i *messages.Isolation) supervisor.Spec {
		i.BestEffort = true // what this kernel cannot do is looked at below
		return supervisor.Spec{Command: command, Args: args, Cwd: home, Isolation: i}
	}
	everything, args := npm.Command(peers.Everything)
	files, roots := npm.Command(peers.Filesystem, home)
	locked := &messages.Isolation{PrivateTemp: true, Write: []string{"./data"}, Network: messages.NetworkNone,
		Memory: 1 << 30, Files: 256}
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"preset": spec(everything, args, messages.DefaultIsolation()),
		"alone":  spec(everything, args, &messages.Isolation{PrivateTemp: true, Write: []string{}, Network: messages.NetworkLoopback}),
		"files":  spec(files, roots, locked),
	}})
	awaitConnected(t, m, "preset", "alone", "files")
	checkText(t, m, "preset", "echo", object{"message": "hello"}, "Echo: hello")
	checkText(t, m, "alone", "echo", object{"message": "hello"}, "Echo: hello")

	st := statusOf(t, m, "files")
	if st.Isolation == nil || len(st.Isolation.InForce) == 0 {
		t.Fatalf("it is not isolated: %+v", st.Isolation)
	}
	if text := strings.Join(st.Isolation.Missing, "; "); text != "" {
		t.Logf("this kernel cannot: %s", text)
	}
	write := func(path string) bool {
		return !mustCall(t, m, "files", "write_file", object{"path": path, "content": "x"}).IsError
	}
	if !write(filepath.Join(data, "in")) {
		t.Error("it cannot write where it may")
	}
	readOnly := strings.Contains(st.Isolation.String(), "read-only") && !strings.Contains(st.Isolation.String(), "not in force: write")
	if got := write(filepath.Join(home, "out")); got == readOnly {
		t.Errorf("it writes elsewhere: %v; in force: %s", got, st.Isolation)
	}

	// Less isolation is another process.
	before := st.PID
	if err := m.Connect(testContext(t, bound), "files", supervisor.Spec{Command: files, Args: roots, Cwd: home}); err != nil {
		t.Fatal(err)
	}
	if st = statusOf(t, m, "files"); st.PID == before || st.Isolation != nil {
		t.Errorf("process %d, before %d; in force: %s", st.PID, before, st.Isolation)
	}
	if !write(filepath.Join(home, "out")) {
		t.Error("it cannot write without isolation")
	}
}

// What cannot be given is no server, and says which key it is.
func TestAnIsolationThatCannotBeIsNoServer(t *testing.T) {
	checkLeaks(t)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"network": {Command: "cat", Isolation: &messages.Isolation{Network: "some"}},
		"remote":  {URL: "http://127.0.0.1:1/mcp", Isolation: messages.DefaultIsolation()},
		"path":    {Command: "cat", Isolation: &messages.Isolation{Write: []string{"/no/such/folder"}, BestEffort: true}},
	}})
	awaitRefused(t, m, "path")
	for name, want := range map[string]string{
		"network": "isolation.network: it is unknown", "remote": "isolation is of a process",
		"path": `isolation.write: "/no/such/folder" cannot be used`,
	} {
		st := statusOf(t, m, name)
		if st.Status != messages.Failed || st.Class != messages.ClassConfig || st.Retry != messages.RetryNever ||
			!strings.Contains(st.Error, want) {
			if name == "path" && st.Class != messages.ClassConfig {
				t.Logf("this kernel has no Landlock: %s", st.Error)
				continue
			}
			t.Errorf("%s: %s, %s, %s: %s", name, st.Status, st.Class, st.Retry, st.Error)
		}
	}
}
