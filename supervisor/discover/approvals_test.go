package discover_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// One server's way through approvals: held when found, free when approved, held again when its content changes, free
// when it changes back; its neighbours, other files and other projects have no part in it.
func TestApproval(t *testing.T) {
	seeds.Shows(t, "004.nfr3.no-arbitrary-commands")
	w := newTree(t)
	file := filepath.Join(w.repo, ".mcp.json")
	const one = `{"mcpServers": {"a": {"command": "x", "env": {"T": "${TOKEN:-none}"}}, "b b": {"command": "y"}}}`
	w.raw(file, one)
	o := w.options(w.repo)

	found := w.load(o)
	equal(t, discover.AwaitingApproval(found.Set), "a", "b b")
	if got, want := found.Specs["a"].Hold, "found in the project and not approved yet; look at "+file+
		" and run `mcpvisor approve a`"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := found.Specs["b b"].Hold; !strings.HasSuffix(got, "and run `mcpvisor approve \"b b\"`") {
		t.Error(got)
	}
	if err := found.Approvals.Approve(found.Set, "a"); err != nil {
		t.Fatal(err)
	}
	equal(t, discover.AwaitingApproval(found.Approvals.Apply(found.Set)), "b b")
	equal(t, discover.AwaitingApproval(w.load(o).Set), "b b")

	// Another value of a variable is another token, not another server.
	o.Lookup = func(name string) (string, bool) { return "rotated", true }
	equal(t, discover.AwaitingApproval(w.load(o).Set), "b b")

	w.raw(file, strings.Replace(one, `"command": "x"`, `"command": "x", "args": ["--evil"]`, 1))
	found = w.load(o)
	equal(t, discover.AwaitingApproval(found.Set), "a", "b b")
	if got := found.Specs["a"].Hold; !strings.HasPrefix(got, "changed since it was approved; look at "+file+" and run") {
		t.Error(got)
	}
	w.raw(file, "// only a comment\n"+one)
	equal(t, discover.AwaitingApproval(w.load(o).Set), "b b")
	w.raw(file, strings.Replace(one, `"command": "x"`, `"timeout": "9s", "command": "x"`, 1)) // everything in the entry counts
	equal(t, discover.AwaitingApproval(w.load(o).Set), "a", "b b")
	w.raw(file, one)

	// The same words in another project are another matter.
	other := filepath.Join(w.home, "other")
	w.raw(filepath.Join(other, ".mcp.json"), one)
	equal(t, discover.AwaitingApproval(w.load(w.options(other)).Set), "a", "b b")
	o.ApproveAll = true
	equal(t, discover.AwaitingApproval(w.load(o).Set))
	o.ApproveAll = false
	equal(t, discover.AwaitingApproval(w.load(o).Set), "b b")
}

// Local files lie in the project too: a clone may carry one, so that what they say waits for the person as well. The
// person's own files, the organisation's and the command line's do not wait.
func TestWhoWaits(t *testing.T) {
	seeds.Shows(t, "004.nfr3.no-arbitrary-commands")
	w := newTree(t)
	w.write(w.user, "user")
	w.write(filepath.Join(w.repo, ".mcp.json"), "project")
	local := filepath.Join(w.repo, ".mcpvisor", "mcp.local.json")
	w.raw(local, `{"servers": {"local": {"command": "x"}}}`)
	named := filepath.Join(w.root, "named.json")
	w.write(named, "named")
	o := w.options(w.repo)
	o.Files, o.Servers = []string{named}, []string{"flag=x"}
	found := w.load(o)
	if len(found.Specs) != 5 {
		t.Fatalf("%+v", found.Specs)
	}
	equal(t, discover.AwaitingApproval(found.Set), "local", "project")
	if err := found.Approvals.Approve(found.Set, "local", "project", "user", "named", "flag"); err != nil {
		t.Fatal(err)
	}
	equal(t, discover.AwaitingApproval(w.load(o).Set))
	// A claim of trust is part of what was approved.
	w.raw(local, `{"servers": {"local": {"command": "x", "trusted": true}}}`)
	equal(t, discover.AwaitingApproval(w.load(o).Set), "local")
	b, err := os.ReadFile(w.approvals)
	if err != nil || strings.Contains(string(b), "named") || strings.Contains(string(b), "flag") {
		t.Errorf("%s, %v", b, err)
	}
}

func TestStore(t *testing.T) {
	w := newTree(t)
	w.raw(filepath.Join(w.repo, ".mcp.json"),
		`{"servers": {"a": {"command": "x", "env": {"T": "kanarienvogel"}}, "b": {"command": "x"}}}`)
	o := w.options(w.repo)
	first, second := w.load(o), w.load(o)

	err := first.Approvals.Approve(first.Set, "a", "nobody")
	if !errors.Is(err, messages.ErrUnknownServer) {
		t.Errorf("%v", err)
	}
	equal(t, discover.AwaitingApproval(w.load(o).Set), "a", "b")

	// Two that were loaded before either approved keep each other's answer.
	if err := errors.Join(first.Approvals.Approve(first.Set, "a"), second.Approvals.Approve(second.Set, "b")); err != nil {
		t.Fatal(err)
	}
	equal(t, discover.AwaitingApproval(w.load(o).Set))

	info, err := os.Stat(w.approvals)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	b, err := os.ReadFile(w.approvals)
	if err != nil || strings.Contains(string(b), "kanarienvogel") {
		t.Errorf("%s %v", b, err)
	}
	if files, _ := filepath.Glob(w.approvals + ".*"); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// A store that cannot be read approves nothing, says so, and is not overwritten.
func TestDamagedStore(t *testing.T) {
	for _, data := range []string{"{", `{"version": 3}`, `[]`, `{"version": 1, "files": []}`, `{"version": 2, "files": {"f": {"a": 1}}}`} {
		w := newTree(t)
		w.write(filepath.Join(w.repo, ".mcp.json"), "a")
		w.raw(w.approvals, data)
		found := w.load(w.options(w.repo))
		equal(t, discover.AwaitingApproval(found.Set), "a")
		if len(found.Problems) != 1 || !strings.HasPrefix(found.Problems[0].Error(), w.approvals+": the store of approvals") {
			t.Errorf("%s: %v", data, found.Problems)
		}
		if err := found.Approvals.Approve(found.Set, "a"); err == nil {
			t.Errorf("%s: approved", data)
		}
		if b, err := os.ReadFile(w.approvals); err != nil || string(b) != data {
			t.Errorf("%s: overwritten with %s, %v", data, b, err)
		}
	}
	// A damaged store is reported only if a server waits because of it.
	w := newTree(t)
	w.raw(w.approvals, "{")
	w.write(w.user, "u")
	if found := w.load(w.options(w.repo)); len(found.Problems) != 0 {
		t.Errorf("%v", found.Problems)
	}
}

// A store that cannot be written remembers nothing, and nothing half.
func TestUnwritableStore(t *testing.T) {
	w := newTree(t)
	w.write(filepath.Join(w.repo, ".mcp.json"), "a")
	w.raw(filepath.Dir(w.approvals), "a file where the directory should be")
	found := w.load(w.options(w.repo))
	err := found.Approvals.Approve(found.Set, "a")
	if err == nil || !strings.Contains(err.Error(), "approval") {
		t.Errorf("%v", err)
	}
	equal(t, discover.AwaitingApproval(found.Approvals.Apply(found.Set)), "a")
}
