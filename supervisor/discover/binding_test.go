package discover_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

func first(now, _ bool) bool { return now }

// approve approves what waits under a name, and gives what is loaded then.
func (w *tree) approve(names ...string) discover.Configuration {
	w.t.Helper()
	found := w.load(w.options(w.repo))
	if err := found.Approvals.Approve(found.Set, names...); err != nil {
		w.t.Fatal(err)
	}
	return w.load(w.options(w.repo))
}

// Approvals of the older form ask once more, and say why; the old ones stay until then.
func TestOldApprovalsAskOnceMore(t *testing.T) {
	w := newTree(t)
	file := filepath.Join(w.repo, ".mcp.json")
	w.write(file, "a", "b")
	w.raw(w.approvals, `{"version": 1, "files": {"`+filepath.ToSlash(file)+`": {"a": "v1:0", "b": "v1:1"}}}`)
	found := w.load(w.options(w.repo))
	equal(t, discover.AwaitingApproval(found.Set), "a", "b")
	if got := found.Specs["a"].Hold; !strings.HasPrefix(got, "approved by an older mcpvisor, which did not bind") {
		t.Error(got)
	}
	found = w.approve("a")
	equal(t, discover.AwaitingApproval(found.Set), "b")
	if got := found.Specs["b"].Hold; !strings.HasPrefix(got, "approved by an older mcpvisor") {
		t.Error(got)
	}
}

// What was shown is approved: of a file that has changed meanwhile, the old content is, and the new one waits.
func TestWhatWasShownIsApproved(t *testing.T) {
	w := newTree(t)
	file := filepath.Join(w.repo, ".mcp.json")
	w.write(file, "a")
	shown := w.load(w.options(w.repo))
	shown.Approvals.MarkShown(shown.Set, "a")
	if reloaded := w.load(w.options(w.repo)); !first(reloaded.Approvals.WasShown(reloaded.Set, "a")) {
		t.Error("it was shown")
	}
	w.raw(file, `{"mcpServers": {"a": {"command": "evil"}}}`)
	now := w.load(w.options(w.repo))
	if first(now.Approvals.WasShown(now.Set, "a")) {
		t.Error("what was never shown counts as shown")
	}
	if err := shown.Approvals.Approve(shown.Set, "a"); err != nil {
		t.Fatal(err)
	}
	equal(t, discover.AwaitingApproval(w.load(w.options(w.repo)).Set), "a")
}

// Variables that an envFile gains after the approval are left out, and it is said; values change freely.
func TestNewVariablesWait(t *testing.T) {
	w := newTree(t)
	w.raw(filepath.Join(w.repo, ".mcp.json"), `{"mcpServers": {"a": {"command": "x", "envFile": ".env"}}}`)
	env := filepath.Join(w.repo, ".env")
	w.raw(env, "ONE=1\n")
	found := w.approve("a")
	if s := found.Specs["a"]; s.Hold != "" || s.Env["ONE"] != "1" || s.Remark != "" {
		t.Fatalf("%+v", s)
	}
	w.raw(env, "ONE=2\nTWO=2\n")
	found = w.load(w.options(w.repo))
	s := found.Specs["a"]
	if _, there := s.Env["TWO"]; there || s.Hold != "" || s.Env["ONE"] != "2" || !strings.Contains(s.Remark, "TWO") {
		t.Errorf("%+v", s)
	}
	equal(t, discover.Stale(found.Set), "a")
	found = w.approve("a")
	if s := found.Specs["a"]; s.Env["TWO"] != "2" || s.Remark != "" {
		t.Errorf("%+v", s)
	}
}

// A change of a file of the project that the entry names is reported, and needs a new approval where "approve" says so.
func TestChangedFiles(t *testing.T) {
	for where, want := range map[string]struct {
		entry, user string
		asks        bool
	}{
		"by default":     {`{"command": "./server.sh"}`, `{}`, false},
		"the entry asks": {`{"command": "./server.sh", "approve": "files"}`, `{}`, true},
		"the person":     {`{"command": "./server.sh"}`, `{"approve": "files"}`, true},
		"not the entry":  {`{"command": "./server.sh", "approve": "entry"}`, `{"approve": "files"}`, true},
	} {
		t.Run(where, func(t *testing.T) {
			w := newTree(t)
			w.raw(w.user, want.user)
			w.raw(filepath.Join(w.repo, ".mcp.json"), `{"mcpServers": {"a": `+want.entry+`}}`)
			script := filepath.Join(w.repo, "server.sh")
			w.raw(script, "echo one")
			found := w.approve("a")
			if s := found.Specs["a"]; s.Hold != "" || s.Remark != "" {
				t.Fatalf("%+v", s)
			}
			before := found.Snapshot.ApprovalState()
			w.raw(script, "echo another")
			if slices.Equal(before, found.Snapshot.ApprovalState()) {
				t.Error("a running mcpvisor would not notice")
			}
			s := w.load(w.options(w.repo)).Specs["a"]
			if asks := s.Hold != ""; asks != want.asks || !strings.Contains(s.Hold+s.Remark, "server.sh changed since it was approved") {
				t.Errorf("%+v", s)
			}
			if s := w.approve("a").Specs["a"]; s.Hold != "" || s.Remark != "" {
				t.Errorf("%+v", s)
			}
			if err := os.Remove(script); err != nil {
				t.Fatal(err)
			}
			if s := w.load(w.options(w.repo)).Specs["a"]; !strings.Contains(s.Hold+s.Remark, "server.sh changed") {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A local file cannot make its server trusted, approved or not, unless the person wrote the entry through mcpvisor.
func TestTrustIsThePersons(t *testing.T) {
	w := newTree(t)
	local := filepath.Join(w.repo, ".mcpvisor", "mcp.local.json")
	w.raw(local, `{"mcpServers": {"a": {"command": "x", "trusted": true}}}`)
	found := w.approve("a")
	if found.Specs["a"].Trusted || found.Specs["a"].Hold != "" || len(found.Problems) != 1 {
		t.Errorf("%+v, %v", found.Specs["a"], found.Problems)
	}
	o := w.options(w.repo)
	o.ApproveAll = true
	if w.load(o).Specs["a"].Trusted {
		t.Error("a flag for scripts makes it trusted")
	}
	if err := found.Approvals.ApproveOwn(found.Set, "a"); err != nil {
		t.Fatal(err)
	}
	if found = w.load(w.options(w.repo)); !found.Specs["a"].Trusted || len(found.Problems) != 0 {
		t.Errorf("%+v, %v", found.Specs["a"], found.Problems)
	}
	w.raw(local, `{"mcpServers": {"a": {"command": "y", "trusted": true}}}`)
	if found = w.approve("a"); found.Specs["a"].Trusted {
		t.Error("what somebody else wrote since is trusted")
	}
}

// A server of a project that has the name of the person's own does not hide it before it is approved, and has no use of the person's
// rules afterwards.
func TestATakenName(t *testing.T) {
	w := newTree(t)
	w.raw(w.user, `{"mcpServers": {"a": {"command": "mine"}}, "permissions": {"default": "ask", "allow": ["mcp__a"]}}`)
	w.raw(filepath.Join(w.repo, ".mcp.json"), `{"mcpServers": {"a": {"command": "theirs"}}}`)
	verdict := func(f discover.Configuration) access.Verdict {
		return access.Decide(f.Permissions, access.Request{Server: "a", Tool: "t"}).Verdict
	}
	found := w.load(w.options(w.repo))
	equal(t, discover.AwaitingApproval(found.Set), "a")
	if s := found.Specs["a"]; s.Command != "mine" || s.Hold != "" || verdict(found) != access.Allow {
		t.Errorf("%+v, %s", s, verdict(found))
	}
	found = w.approve("a")
	s := found.Specs["a"]
	if s.Command != "theirs" || !strings.Contains(s.Remark, "takes the place of your own server") || verdict(found) != access.Ask {
		t.Errorf("%+v, %s", s, verdict(found))
	}
	if s.Scope != messages.ScopeProject {
		t.Error(s.Scope)
	}
}

// An envFile that leads out of the project by a link is not read, whichever file of the project names it.
func TestAnEnvFileStaysInTheProject(t *testing.T) {
	w := newTree(t)
	w.raw(filepath.Join(w.root, "secret"), "TOKEN=1")
	if err := os.Symlink(filepath.Join(w.root, "secret"), filepath.Join(w.repo, ".env")); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("NOT TESTED: links. Windows lets only the privileged make one: ", err)
		}
		t.Fatal(err)
	}
	w.raw(filepath.Join(w.repo, ".mcp.json"), `{"mcpServers": {"a": {"command": "x", "envFile": ".env"}}}`)
	if s := w.load(w.options(w.repo)).Specs["a"]; !strings.Contains(s.Invalid, "leads out of the project") || s.Env["TOKEN"] != "" {
		t.Errorf("%+v", s)
	}
}
