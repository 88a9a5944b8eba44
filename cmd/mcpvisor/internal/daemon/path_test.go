//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestThePathGrowsAtItsEnd checks that what was found stays found, and that nothing of a project or of a relative place is added.
func TestThePathGrowsAtItsEnd(t *testing.T) {
	for _, c := range []struct{ have, more, project, want string }{
		{"/bin", "/nvm/bin:/bin", "/p", "/bin:/nvm/bin"},
		{"/bin", "", "/p", "/bin"},
		{"", "/bin", "", "/bin"},
		{"/bin", "/p/node_modules/.bin:/p:/pp", "/p", "/bin:/pp"},
		{"/bin", ".:bin:../x:/a/../bin:/new/", "/p", "/bin:/new"},
		{"/bin:.", "/x", "/p", "/bin:.:/x"},
		{"/bin", "/a\x00b:/c", "/p", "/bin:/c"}, // no system can look there
	} {
		if got := mergePath(c.have, c.more, c.project); got != c.want {
			t.Errorf("%q and %q in %q: %q", c.have, c.more, c.project, got)
		}
	}
	path := ""
	for i := range 10 * maxPath {
		path = mergePath(path, fmt.Sprintf("/%d", i), "/p")
	}
	if n := strings.Count(path, ":") + 1; n != maxPath {
		t.Errorf("%d directories", n)
	}
}

// TestWhichProgramACommandIs finds commands as agents do: the first directory counts, another name of one file is the same program, what is not
// there or not executable is none, and what an agent lacks is found in the directories of others. Servers with a file or a PATH of their own
// have one instance for all.
func TestWhichProgramACommandIs(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a/tool", "b/tool", "c/other"} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	dir := func(names ...string) string {
		for i := range names {
			names[i] = filepath.Join(root, names[i])
		}
		return strings.Join(names, ":")
	}
	if err := errors.Join(os.Symlink(dir("a"), dir("link")), os.WriteFile(dir("c/tool"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir("b"))
	specs := map[string]messages.Spec{"s": {Command: "tool"}}
	same := map[string]messages.Spec{"file": {Command: dir("a/tool")}, "path": {Command: "tool", Env: map[string]string{"PATH": "/bin"}}, "url": {URL: "https://a.example"}}
	instance := func(own string, all map[string]messages.Spec) string {
		return instanceOf(all, wanted{}, asking{ownPath: ownPath(own, filepath.Join(root, "p"))})
	}
	for own, want := range map[string]string{
		dir("a"): "a/tool", dir("a", "b"): "a/tool", dir("b", "a"): "b/tool", dir("link"): "a/tool", dir("c", "a"): "a/tool", dir("c"): "b/tool",
		"": "b/tool", "a:" + dir("b"): "b/tool",
	} {
		if got := programsOf(ownPath(own, ""))("tool"); got != dir(want) {
			t.Errorf("with %s the program is %s, not %s", own, got, want)
		}
		if got, a := instance(own, specs), instance(dir("a"), specs); (got == a) != (want == "a/tool") {
			t.Errorf("with %s the instance is that of a: %t", own, got == a)
		}
		if instance(own, same) != instance("", same) {
			t.Errorf("with %s a server whose program is given has an instance of its own", own)
		}
	}
	if got := programsOf("")("nothing"); got != "" {
		t.Errorf("nothing is %s", got)
	}
}
