package seeds_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	patterns := halvesOfTheTest(t, text("Makefile"))
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
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			if dir = filepath.ToSlash(dir); !slices.ContainsFunc(slices.Concat(patterns...), func(p string) bool { return patternCovers(p, dir) }) {
				t.Errorf("make test does not test %s", dir)
			}
			source := text(filepath.Join(dir, filepath.Base(path)))
			if leftOutUnderTheDetector.MatchString(source) && !slices.ContainsFunc(patterns[1], func(p string) bool { return patternCovers(p, dir) }) {
				t.Errorf("%s leaves something out under the race detector, and make test does not test %s without it", path, dir)
			}
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

var (
	// leftOutUnderTheDetector is how a test says that it is not run, or not wholly, under the race detector.
	leftOutUnderTheDetector = regexp.MustCompile(`(?m)^//go:build .*!race|\braceEnabled\b`)
	leavesTestsOut          = regexp.MustCompile(`-(run|skip|short)\b`)
)

// halvesOfTheTest is what "make test" tests: the packages that it tests under the race detector, and those that it tests
// without it.
func halvesOfTheTest(t *testing.T, makefile string) [][]string {
	t.Helper()
	makefile = strings.ReplaceAll(makefile, "\\\n", " ")
	find := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile("(?m)" + pattern).FindStringSubmatch(makefile)
		if m == nil {
			t.Fatalf("the Makefile has no %s", pattern)
		}
		return m[1]
	}
	both := find(`^test:.*\n((?:\t.*\n)+)`)
	tested := find(`^TESTED +:?= (.*\n)`) + find(`^AGAIN +:?= (.*\n)`) + find(`^FLAGS +:?= (.*\n)`)
	for _, half := range [][2]string{{"test-library", "RACED"}, {"test-outside", "OUTSIDE"}} {
		if !regexp.MustCompile(`\$\(MAKE\)[^;]* ` + half[0] + `\b`).MatchString(both) {
			t.Errorf("make test leaves %s out: %q", half[0], both)
		}
		recipe := find(`^` + half[0] + `:.*\n((?:\t.*\n)+)`)
		if !regexp.MustCompile(`(?m)^\t\$\(TESTED\) --packages "\$\(` + half[1] + `\)" \$\(FLAGS\)`).MatchString(recipe) {
			t.Errorf("%s does not test %s: %q", half[0], half[1], recipe)
		}
		if out := both + tested + recipe; leavesTestsOut.MatchString(out) {
			t.Errorf("make test leaves tests out: %q", out)
		}
	}
	// RACED is LIBRARY without PURE, so that OUTSIDE must have these.
	const raced = `$(filter-out $(PURE:.%=$(shell $(GO) list -m)%),$(shell $(GO) list $(LIBRARY)))`
	if got := strings.TrimSpace(find(`^RACED +:?= (.*\n)`)); got != raced {
		t.Errorf("RACED is %s, not %s", got, raced)
	}
	outside, ok := strings.CutSuffix(strings.TrimSpace(find(`^OUTSIDE +:?= (.*\n)`)), "$(PURE)")
	if !ok {
		t.Errorf("OUTSIDE does not end with the pure packages: %s", outside)
	}
	pure := strings.Fields(find(`^PURE +:?= (.*\n)`))
	for _, p := range pure {
		if !startsNoGoroutine(strings.TrimPrefix(p, "./")) {
			t.Errorf("make test leaves %s out under the race detector, and test/arch does not say that it is pure", p)
		}
	}
	return [][]string{strings.Fields(find(`^LIBRARY +:?= (.*\n)`)), slices.Concat(strings.Fields(outside), pure)}
}

// startsNoGoroutine reports whether test/arch holds that the package in this folder is pure.
func startsNoGoroutine(dir string) bool {
	return slices.ContainsFunc(arch.Table, func(row arch.Row) bool { return row.Pure && slices.Contains(row.Packages, dir) })
}

// patternCovers reports whether a pattern of packages such as ./test/... names the package in this folder.
func patternCovers(pattern, dir string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	if above, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == above || strings.HasPrefix(dir, above+"/")
	}
	return dir == pattern
}
