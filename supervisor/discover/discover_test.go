package discover_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// tree is a home with a repository in it, and the places outside of it.
type tree struct {
	t                 *testing.T
	root, home, repo  string
	user, managed     string
	approvals, nested string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &tree{t: t, root: root, home: filepath.Join(root, "home"), repo: filepath.Join(root, "home", "repo")}
	w.nested = filepath.Join(w.repo, "a", "b")
	w.user, w.managed = filepath.Join(root, "cfg", "mcp.json"), filepath.Join(root, "etc", "managed.json")
	w.approvals = filepath.Join(root, "cfg", "new", "approvals.json")
	w.mkdir(filepath.Join(w.repo, ".git"))
	w.mkdir(w.nested)
	return w
}

func (w *tree) mkdir(dir string) {
	w.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
}

// write puts a file with one server, whose command is the file's own path below the root, so that a test sees who won.
func (w *tree) write(path string, servers ...string) {
	w.t.Helper()
	rel, _ := filepath.Rel(w.root, path)
	var entries []string
	for _, s := range servers {
		entries = append(entries, `"`+s+`": {"command": "`+filepath.ToSlash(rel)+`"}`)
	}
	w.raw(path, `{"mcpServers": {`+strings.Join(entries, ",")+`}}`)
}

func (w *tree) raw(path, data string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *tree) options(dir string) discover.Options {
	return discover.Options{Dir: dir, Lookup: func(string) (string, bool) { return "", false },
		Paths: discover.Paths{User: w.user, Managed: w.managed, Approvals: w.approvals, Home: w.home}}
}

func (w *tree) load(o discover.Options) discover.Configuration {
	w.t.Helper()
	found, err := discover.Load(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// found returns the files of Find as "scope path", below the root.
func (w *tree) found(o discover.Options) []string {
	w.t.Helper()
	files, err := discover.Find(o)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		rel, err := filepath.Rel(w.root, f.Path)
		if err != nil || strings.HasPrefix(rel, "..") {
			rel = f.Path
		}
		line := string(f.Scope) + " " + filepath.ToSlash(rel)
		if f.Err != "" {
			line += " ! " + f.Err
		}
		out = append(out, line)
	}
	return out
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// The directory's own files win over its parents', up to the one with .git and no further.
func TestFindUpward(t *testing.T) {
	seeds.Shows(t, "002.2.project-file", "002.7.own-project-file", "003.6.found-in-project",
		"004.fr2.project-source")
	w := newTree(t)
	w.write(w.user, "a")
	w.write(filepath.Join(w.root, ".mcp.json"), "outside")
	w.write(filepath.Join(w.home, ".mcp.json"), "home")
	for _, dir := range []string{w.repo, filepath.Dir(w.nested), w.nested} {
		w.write(filepath.Join(dir, ".mcp.json"), "a", "b")
		w.write(filepath.Join(dir, ".mcpvisor", "mcp.json"), "b")
		w.write(filepath.Join(dir, ".mcpvisor", "mcp.local.json"), "c")
	}
	equal(t, w.found(w.options(w.nested)), "user cfg/mcp.json",
		"project home/repo/.mcp.json", "project home/repo/.mcpvisor/mcp.json",
		"project home/repo/a/.mcp.json", "project home/repo/a/.mcpvisor/mcp.json",
		"project home/repo/a/b/.mcp.json", "project home/repo/a/b/.mcpvisor/mcp.json",
		"local home/repo/.mcpvisor/mcp.local.json", "local home/repo/a/.mcpvisor/mcp.local.json",
		"local home/repo/a/b/.mcpvisor/mcp.local.json")
	first := w.load(w.options(w.nested))
	if s := first.Specs["a"]; s.Source != w.user || s.Hold != "" { // an entry without an approval hides no server of the person
		t.Errorf("%+v", s)
	}
	if err := first.Approvals.Approve(first.Set, discover.AwaitingApproval(first.Set)...); err != nil {
		t.Fatal(err)
	}
	found := w.load(w.options(w.nested))
	if found.ProjectDir != w.repo {
		t.Errorf("project %s", found.ProjectDir)
	}
	for name, want := range map[string]string{"a": "home/repo/a/b/.mcp.json", "b": "home/repo/a/b/.mcpvisor/mcp.json",
		"c": "home/repo/a/b/.mcpvisor/mcp.local.json"} {
		if got := found.Specs[name].Command; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// Without a repository only the directory itself counts; the home directory is no parent, but may be the directory.
func TestFindStops(t *testing.T) {
	w := newTree(t)
	if err := os.Remove(filepath.Join(w.repo, ".git")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{w.root, w.home, w.repo, w.nested} {
		w.write(filepath.Join(dir, ".mcp.json"), "a")
	}
	equal(t, w.found(w.options(w.nested)), "project home/repo/a/b/.mcp.json")
	w.mkdir(filepath.Join(w.root, ".git"))
	equal(t, w.found(w.options(w.nested)), "project home/repo/a/b/.mcp.json")
	equal(t, w.found(w.options(w.home)), "project home/.mcp.json")
	w.mkdir(filepath.Join(w.home, ".git")) // dot-files under version control make no project of everything in it
	equal(t, w.found(w.options(w.nested)), "project home/repo/a/b/.mcp.json")
	equal(t, w.found(w.options(w.home)), "project home/.mcp.json")
	w.raw(filepath.Join(w.repo, ".git"), "gitdir: elsewhere") // a worktree's
	equal(t, w.found(w.options(w.nested)), "project home/repo/.mcp.json", "project home/repo/a/b/.mcp.json")
}

// A symbolic link into a repository finds the repository.
func TestFindThroughLink(t *testing.T) {
	w := newTree(t)
	w.write(filepath.Join(w.repo, ".mcp.json"), "a")
	link := filepath.Join(w.root, "link")
	if err := os.Symlink(w.nested, link); err != nil {
		t.Fatal(err)
	}
	equal(t, w.found(w.options(link)), "project home/repo/.mcp.json")
}

func TestFindNothing(t *testing.T) {
	w := newTree(t)
	w.raw(filepath.Join(w.repo, ".mcpvisor"), "a file where a directory is expected")
	equal(t, w.found(w.options(w.repo)))
	if found := w.load(w.options(w.repo)); len(found.Specs) != 0 || len(found.Problems) != 0 || found.Unreadable() {
		t.Errorf("%+v", found)
	}
}

// What is there and cannot be read is named, and what was asked for and is missing; the rest is read.
func TestFindUnreadable(t *testing.T) {
	w := newTree(t)
	w.mkdir(filepath.Join(w.repo, ".mcp.json"))
	named := filepath.Join(w.root, "named.json")
	w.write(named, "n")
	o := w.options(w.repo)
	o.Files = []string{named, filepath.Join(w.root, "missing.json"), w.home, ""}
	equal(t, w.found(o), "project home/repo/.mcp.json ! it is a directory instead of a file", "dynamic named.json",
		"dynamic missing.json ! there is no such file; check the name after --config",
		"dynamic home ! it is a directory; name the file in it",
		"dynamic --config ! the name of the file is empty; name a file")
	found := w.load(o)
	if found.Specs["n"].Command != "named.json" || len(found.Problems) != 4 || found.Unreadable() {
		t.Errorf("%+v", found)
	}
	o.Files = o.Files[1:2]
	if found := w.load(o); !found.Unreadable() {
		t.Errorf("%+v", found)
	}
}

// A managed file excludes everything else, readable or not.
func TestManaged(t *testing.T) {
	seeds.Shows(t, "000.3.status-scope")
	w := newTree(t)
	w.write(w.user, "u")
	w.write(filepath.Join(w.repo, ".mcp.json"), "p")
	w.write(w.managed, "m")
	o := w.options(w.repo)
	o.Servers = []string{"f=x"}
	found := w.load(o)
	if len(found.Specs) != 1 || found.Specs["m"].Scope != messages.ScopeManaged || found.Specs["m"].Hold != "" ||
		len(found.Shadowed) != 3 {
		t.Errorf("%+v", found)
	}
	if err := os.Remove(w.managed); err != nil {
		t.Fatal(err)
	}
	w.mkdir(w.managed)
	if found := w.load(o); len(found.Specs) != 0 || len(found.Problems) != 1 {
		t.Errorf("%+v", found)
	}
}

// The command line wins over every file, and a file that is named as well as found counts as named.
func TestCommandLine(t *testing.T) {
	seeds.Shows(t, "002.4.load-config", "004.fr2.flag-source", "004.fr2.ac-cli-override")
	w := newTree(t)
	project := filepath.Join(w.repo, ".mcp.json")
	w.write(project, "a", "b")
	o := w.options(w.repo)
	o.Files = []string{project, "-"}
	o.Stdin = strings.NewReader(`{"mcpServers": {"c": {"command": "stdin"}, "b": {"command": "stdin"}}}`)
	o.Servers = []string{"c=flag"}
	found := w.load(o)
	for name, want := range map[string]string{"a": "home/repo/.mcp.json", "b": "stdin", "c": "flag"} {
		s := found.Specs[name]
		if s.Command != want || s.Scope != messages.ScopeDynamic || s.Hold != "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if len(found.Shadowed) != 2 {
		t.Errorf("%+v", found.Shadowed)
	}
	o.Servers = []string{"oops"}
	if _, err := discover.Load(o); err == nil || !strings.Contains(err.Error(), "there is no = in the value") {
		t.Errorf("%v", err)
	}
	for _, dir := range []string{filepath.Join(w.root, "no"), project} {
		if _, err := discover.Load(w.options(dir)); err == nil || !strings.HasPrefix(err.Error(), dir+": ") {
			t.Errorf("%v", err)
		}
	}
}

// What a file says of directories is about its own project; the environment is the caller's.
func TestContext(t *testing.T) {
	w := newTree(t)
	w.raw(filepath.Join(w.nested, ".mcp.json"), `{"servers": {
		"a": {"command": "${X}", "args": ["${workspaceFolder}", "${userHome}"], "cwd": "sub"},
		"h": {"url": "https://example.com"}}}`)
	w.raw(w.user, `{"servers": {"u": {"command": "x", "args": ["${workspaceFolder}"]}}}`)
	o := w.options(w.nested)
	o.Lookup = func(name string) (string, bool) { return "x-" + name, name == "X" }
	o.AllowedTransports = []messages.TransportKind{messages.Stdio}
	found := w.load(o)
	a := found.Specs["a"]
	if a.Command != "x-X" || !slices.Equal(a.Args, []string{w.nested, w.home}) || a.Cwd != filepath.Join(w.nested, "sub") {
		t.Errorf("%+v", a)
	}
	if u := found.Specs["u"]; !slices.Equal(u.Args, []string{w.repo}) {
		t.Errorf("%+v", u)
	}
	if h := found.Specs["h"]; !strings.Contains(h.Invalid, "servers of type http are not allowed here") {
		t.Errorf("%+v", h)
	}
}

func TestTooLarge(t *testing.T) {
	w := newTree(t)
	w.raw(filepath.Join(w.repo, ".mcp.json"), strings.Repeat(" ", config.MaxFile+1))
	found := w.load(w.options(w.repo))
	if len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Error(), "larger than 4 MiB") {
		t.Errorf("%v", found.Problems)
	}
}

// The zero options are those of the command: this directory, this environment, this person.
func TestDefaults(t *testing.T) {
	seeds.Shows(t, "004.fr2.user-source")
	w := newTree(t)
	t.Chdir(w.repo)
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "USERPROFILE", "AppData"} {
		t.Setenv(name, w.home)
	}
	t.Setenv("MCPVISOR_TEST_COMMAND", "from-environment")
	p := discover.DefaultPaths()
	if p.Home != w.home || !strings.HasPrefix(p.User, w.home) || filepath.Base(p.User) != "mcp.json" ||
		filepath.Dir(p.User) != filepath.Dir(p.Approvals) || filepath.Base(p.Managed) != "managed-mcp.json" {
		t.Errorf("%+v", p)
	}
	w.raw(p.User, `{"mcpServers": {"u": {"command": "${MCPVISOR_TEST_COMMAND}"}}}`)
	found := w.load(discover.Options{})
	if found.ProjectDir != w.repo || found.Specs["u"].Command != "from-environment" {
		t.Errorf("%+v", found)
	}
}

// A place that is not known is not looked at.
func TestNoPlaces(t *testing.T) {
	w := newTree(t)
	w.write(filepath.Join(w.repo, ".mcp.json"), "a")
	o := w.options(w.repo)
	o.Paths = discover.Paths{Managed: w.managed}
	found := w.load(o)
	if len(found.Problems) != 0 || found.Specs["a"].Hold == "" {
		t.Errorf("%+v", found)
	}
	err := found.Approvals.Approve(found.Set, "a")
	if err == nil || !strings.Contains(err.Error(), "no place to remember") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(w.approvals); err == nil || !os.IsNotExist(err) {
		t.Errorf("%v, want %v", err, fs.ErrNotExist)
	}
}
