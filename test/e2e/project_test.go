package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// testProject is a person's home with a project in it.
type testProject struct {
	t         *testing.T
	dir, home string
}

func newProject(t *testing.T) *testProject {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &testProject{t: t, dir: filepath.Join(root, "project"), home: filepath.Join(root, "home")}
	for name, value := range map[string]string{"HOME": p.home, "XDG_CONFIG_HOME": filepath.Join(p.home, "config"),
		"USERPROFILE": p.home, "AppData": filepath.Join(p.home, "config")} {
		t.Setenv(name, value)
	}
	if err := os.MkdirAll(filepath.Join(p.dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

// writeConfig writes a file in the form that people have.
func (p *testProject) writeConfig(path string, servers map[string]supervisor.Spec) {
	p.t.Helper()
	entries := object{}
	for name, s := range servers {
		entry := object{"command": s.Command, "args": s.Args}
		if s.Env != nil {
			entry["env"] = s.Env
		}
		entries[name] = entry
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(asJSON(p.t, object{"mcpServers": entries})), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// approveServers is what `mcpvisor approve NAME…` does.
func (p *testProject) approveServers(names ...string) {
	p.t.Helper()
	found, err := discover.Load(discover.Options{Dir: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := found.Approvals.Approve(found.Set, names...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *testProject) loadConfig() supervisor.Config {
	p.t.Helper()
	cfg, problems, err := supervisor.FromFiles(p.dir)
	if err != nil || len(problems) > 0 {
		p.t.Fatal(problems, err)
	}
	return cfg
}

// Three steps: read the configuration that lies in the project and in the person's home, start, take the tools. Another
// entry in a file is another server, without a change of the program.
func TestAProjectsServersAreFoundConnectedAndOffered(t *testing.T) {
	seeds.Shows(t, "000.0.options-servers", "001.1.static-config", "001.4.startup-or-demand", "002.1.no-code-changes",
		"002.2.project-file", "002.7.own-project-file", "002.7.use", "003.4.default-value", "003.4.stdio-entry",
		"003.4.stdio-default", "003.6.found-in-project", "003.6.connects", "003.6.discovers", "003.6.registers",
		"003.6.available", "003.6.by-hand", "004.fr2.project-source", "004.fr2.user-source", "000.3.status-scope")
	checkLeaks(t)
	p := newProject(t)
	root := filepath.Join(p.dir, ".mcp.json")
	p.writeConfig(root, map[string]supervisor.Spec{"echo": changeSpec(fixtureSpec("good"), func(s *supervisor.Spec) {
		s.Env = map[string]string{"MODE": "${E2E_UNSET_MODE:-default mode}"}
	})})
	p.writeConfig(discover.DefaultPaths().User, map[string]supervisor.Spec{"mine": fixtureSpec("good")})
	p.approveServers("echo")

	m := startManager(t, p.loadConfig())
	awaitSettled(t, m)
	tools, err := m.AgentTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	i := slices.IndexFunc(tools, func(tool supervisor.AgentTool) bool {
		return tool.Declaration().Name == "mcp__echo__env"
	})
	if i < 0 {
		t.Fatalf("%d tools, and mcp__echo__env is not among them", len(tools))
	}
	out, err := tools[i].Handler()(testContext(t, bound), map[string]any{"name": "MODE"})
	if got := tools[i].FormatOutput(out); err != nil || got != "default mode" {
		t.Errorf("the server's environment says %q, %v", got, err)
	}
	for name, scope := range map[string]messages.Scope{"echo": messages.ScopeProject, "mine": messages.ScopeUser} {
		if st := statusOf(t, m, name); st.Status != messages.Connected || st.Scope != scope || st.Transport != messages.Stdio {
			t.Errorf("%s: %s, scope %s, transport %s", name, st.Status, st.Scope, st.Transport)
		}
	}

	p.writeConfig(filepath.Join(p.dir, ".mcpvisor", "mcp.json"),
		map[string]supervisor.Spec{"more": fixtureSpec("good", "tools=3")})
	p.approveServers("more")
	epoch := statusOf(t, m, "echo").Epoch
	if _, err := m.Configure(testContext(t, bound), p.loadConfig().Servers); err != nil {
		t.Fatal(err)
	}
	awaitSettled(t, m)
	checkText(t, m, "more", "extra-0002", nil, "extra-0002")
	if got := statusOf(t, m, "echo").Epoch; got != epoch {
		t.Error("the server that was there already lost its connection")
	}
}

// A file that merely lies in a directory starts nothing: a command runs when the person has approved it, as it is. And
// no shell reads it: what a shell would take for a command is an argument or a file's name.
func TestNoCommandRunsThatNobodyApproved(t *testing.T) {
	seeds.Shows(t, "004.nfr3.no-arbitrary-commands")
	checkLeaks(t)
	p := newProject(t)
	const words = "a; echo $(echo b) && c `d` %PATH%"
	first, second := filepath.Join(p.home, "first"), filepath.Join(p.home, words)
	if err := os.MkdirAll(p.home, 0o700); err != nil {
		t.Fatal(err)
	}
	ran := func(file string) bool {
		_, err := os.Stat(file)
		return err == nil
	}
	file := filepath.Join(p.dir, ".mcp.json")
	checkHeld := func(why string) {
		t.Helper()
		cfg, _, err := supervisor.FromFiles(p.dir)
		if err != nil {
			t.Fatal(err)
		}
		m := startManager(t, cfg)
		awaitRefused(t, m, "found")
		err = m.Reconnect(testContext(t, bound), "found") // not even when a person asks for it
		st := statusOf(t, m, "found")
		if st.Status != messages.Failed || st.PID != 0 || st.NextAttempt != nil ||
			!containsWords(st.Error, why, "approve") || err == nil {
			t.Errorf("%s: %q, process %d, %v", st.Status, st.Error, st.PID, err)
		}
		closeManager(t, m)
	}
	runs := func(file string) {
		t.Helper()
		m := startManager(t, p.loadConfig())
		awaitSettled(t, m)
		checkText(t, m, "found", "echo", object{"text": "approved"}, "approved")
		if !ran(file) {
			t.Errorf("%s is not there", file)
		}
		closeManager(t, m)
	}
	p.writeConfig(file, map[string]supervisor.Spec{"found": recordingServer(t, first)})
	checkHeld("not approved yet")
	if ran(first) {
		t.Fatal("the command has run")
	}
	p.approveServers("found")
	runs(first)

	p.writeConfig(file, map[string]supervisor.Spec{"found": recordingServer(t, second)})
	checkHeld("changed since it was approved")
	if ran(second) {
		t.Fatal("the changed command has run")
	}
	p.approveServers("found")
	runs(second)
	entries, err := os.ReadDir(p.home)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch name := e.Name(); name {
		case "first", words, "config", "Library", ".cache", "AppData": // from config on, the person's own places
		default:
			t.Errorf("a shell has made %q", name)
		}
	}

	s := recordingServer(t, first)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"line": {Command: s.Command + " " + s.Args[0] + "; true"},
	}})
	awaitRefused(t, m, "line")
	if st := statusOf(t, m, "line"); st.Status != messages.Failed || st.Class != messages.ClassMissing {
		t.Errorf("a command line as a command: %s, %s: %s", st.Status, st.Class, st.Error)
	}
}
