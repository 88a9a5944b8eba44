package seeds_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// The README names one command that runs every test. It does: it tests all packages of the module, and no test lies in
// another module.
func TestOneCommandRunsEveryTest(t *testing.T) {
	seeds.Shows(t, "003.7.one-test-command")
	root, err := arch.Root()
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(b), "\r\n", "\n")
	}
	if !regexp.MustCompile(`(?m)^make test\b`).MatchString(text("README.md")) {
		t.Error("README.md names no such command")
	}
	recipe := regexp.MustCompile(`(?m)^test:.*\n((?:\t.*\n)+)`).FindStringSubmatch(text("Makefile"))
	if recipe == nil || !regexp.MustCompile(`(?m)^\t(\$\(GO\) test|\$\(BIN\)/gotestsum [^\n]*--) [^\n]*\./\.\.\.$`).MatchString(recipe[1]) {
		t.Errorf("make test does not test ./...: %q", recipe)
	}
	if regexp.MustCompile(`-(run|skip|short)\b`).MatchString(recipe[1]) {
		t.Errorf("make test leaves tests out: %q", recipe[1])
	}
	var modules []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache"):
			return filepath.SkipDir
		case d.Name() == "go.mod" && filepath.Dir(path) != root:
			modules = append(modules, filepath.Dir(path))
		case strings.HasSuffix(path, "_test.go"):
			for _, m := range modules {
				if strings.HasPrefix(path, m+string(filepath.Separator)) {
					t.Errorf("%s lies in the module of %s, which ./... leaves out", path, m)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
