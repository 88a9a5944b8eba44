//go:build unix

package discover_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// A repository that carries a link to the approved file of its neighbour has no servers by it: neither its words nor its approval
// are the repository's.
func TestALinkOutOfTheProjectIsNotRead(t *testing.T) {
	for name, link := range map[string]func(w *tree, evil string){
		"the file": func(w *tree, evil string) {
			w.link(filepath.Join("..", "good", ".mcp.json"), filepath.Join(evil, ".mcp.json"))
		},
		"the folder": func(w *tree, evil string) {
			w.link(filepath.Join(w.root, "good", ".mcpvisor"), filepath.Join(evil, ".mcpvisor"))
		},
		"a chain": func(w *tree, evil string) {
			w.link("one", filepath.Join(evil, ".mcp.json"))
			w.link(filepath.Join("sub", "..", "..", "good", ".mcp.json"), filepath.Join(evil, "one"))
			w.mkdir(filepath.Join(evil, "sub"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTree(t)
			good, evil := filepath.Join(w.root, "good"), filepath.Join(w.root, "evil")
			w.mkdir(filepath.Join(good, ".git"))
			w.mkdir(filepath.Join(evil, ".git"))
			w.write(filepath.Join(good, ".mcp.json"), "a")
			w.write(filepath.Join(good, ".mcpvisor", "mcp.local.json"), "a")
			found := w.load(w.options(good))
			if err := found.Approvals.Approve(found.Set, "a"); err != nil {
				t.Fatal(err)
			}
			link(w, evil)
			found = w.load(w.options(evil))
			if len(found.Specs) != 0 {
				t.Errorf("the clone has %v", found.Specs)
			}
			if len(found.Problems) == 0 || !strings.Contains(found.Problems[0].Error(), "leads out of the project, to "+good) {
				t.Errorf("nothing is said: %v", found.Problems)
			}
		})
	}
}

// Links within a project are a way to organise it, and count under the path where they were found.
func TestALinkWithinTheProjectIsRead(t *testing.T) {
	w := newTree(t)
	w.write(filepath.Join(w.repo, "conf", "mcp.json"), "a")
	w.link(filepath.Join("conf", "mcp.json"), filepath.Join(w.repo, ".mcp.json"))
	w.link(filepath.Join(w.repo, ".mcp.json"), filepath.Join(w.nested, ".mcp.json"))
	found := w.load(w.options(w.nested))
	if s := found.Specs["a"]; len(found.Problems) != 0 || s.Source != filepath.Join(w.nested, ".mcp.json") {
		t.Errorf("%v, %v", s, found.Problems)
	}
}

// What is written into a project stays in it: a repository's links neither lead to the person's own files nor make new ones.
func TestAnEditDoesNotLeaveTheProject(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	w := newTree(t)
	own := filepath.Join(w.root, "cfg")
	w.raw(filepath.Join(own, "mcp.json"), "{}")
	file := filepath.Join(w.repo, ".mcpvisor", "mcp.local.json")
	for name, prepare := range map[string]func(){
		"a link to a file":    func() { w.mkdir(filepath.Dir(file)); w.link(filepath.Join(own, "mcp.json"), file) },
		"a dangling link":     func() { w.mkdir(filepath.Dir(file)); w.link(filepath.Join(own, "new", "mcp.json"), file) },
		"a link to a folder":  func() { w.link(own, filepath.Dir(file)) },
		"a dangling folder":   func() { w.link(filepath.Join(own, "gone"), filepath.Dir(file)) },
		"up through a folder": func() { w.link(filepath.Join("a", "..", "..", "..", "cfg"), filepath.Dir(file)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(filepath.Dir(file)); err != nil {
				t.Fatal(err)
			}
			prepare()
			project, err := discover.ProjectOf(file)
			if err != nil {
				t.Fatal(err)
			}
			err = discover.EditIn(project, file, func([]byte) ([]byte, error) { return []byte("written"), nil })
			if !errors.Is(err, discover.ErrLeavesProject) || !strings.Contains(err.Error(), own) {
				t.Errorf("the edit ends with %v", err)
			}
			if text, err := os.ReadFile(filepath.Join(own, "mcp.json")); err != nil || string(text) != "{}" {
				t.Errorf("the person's own file is %q, %v", text, err)
			}
			if all, err := os.ReadDir(own); err != nil || len(all) != 1 {
				t.Errorf("beside it are %v, %v", all, err)
			}
		})
	}
}

// A configuration, or a store of approvals, that another user could have written is refused; a link of the person's own is followed.
func TestWhatOthersMayWriteIsNotBelieved(t *testing.T) {
	for name, spoil := range map[string]func(w *tree) error{
		"the file is everybody's":   func(w *tree) error { return os.Chmod(w.user, 0o666) },
		"the folder is everybody's": func(w *tree) error { return os.Chmod(filepath.Dir(w.user), 0o777) },
		"the file is another's": func(w *tree) error {
			if os.Getuid() != 0 {
				t.Skip("NOT TESTED: a file of another owner. Only root can give one away")
			}
			return os.Chown(w.user, 4242, 4242)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTree(t)
			w.write(w.user, "mine")
			if err := spoil(w); err != nil {
				t.Fatal(err)
			}
			found := w.load(w.options(w.repo))
			if len(found.Specs) != 0 || len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Error(), "not believed") {
				t.Errorf("%v, %v", found.Specs, found.Problems)
			}
		})
	}
	t.Run("approvals", func(t *testing.T) {
		w := newTree(t)
		w.write(filepath.Join(w.repo, ".mcp.json"), "a")
		found := w.load(w.options(w.repo))
		if err := found.Approvals.Approve(found.Set, "a"); err != nil {
			t.Fatal(err)
		}
		equal(t, discover.AwaitingApproval(w.load(w.options(w.repo)).Set))
		if err := os.Chmod(w.approvals, 0o666); err != nil {
			t.Fatal(err)
		}
		found = w.load(w.options(w.repo))
		equal(t, discover.AwaitingApproval(found.Set), "a")
		if len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Error(), "not believed") {
			t.Errorf("%v", found.Problems)
		}
	})
	t.Run("a link of dotfiles", func(t *testing.T) {
		w := newTree(t)
		w.write(filepath.Join(w.home, "dotfiles", "mcp.json"), "mine")
		w.mkdir(filepath.Dir(w.user))
		w.link(filepath.Join(w.home, "dotfiles", "mcp.json"), w.user)
		if found := w.load(w.options(w.repo)); len(found.Specs) != 1 {
			t.Errorf("%v, %v", found.Specs, found.Problems)
		}
	})
}

func (w *tree) link(to, from string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(from))
	if err := os.Symlink(to, from); err != nil {
		w.t.Fatal(err)
	}
}
