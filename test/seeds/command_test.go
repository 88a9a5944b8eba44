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
	find := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile("(?m)" + pattern).FindStringSubmatch(makefile)
		if m == nil {
			t.Fatalf("the Makefile has no %s", pattern)
		}
		return m[1]
	}
	both := find(`^test:.*\n((?:\t.*\n)+)`)
	tested := find(`^TESTED +:?= (.*\n)`)
	var patterns [][]string
	for _, half := range [][2]string{{"test-library", "LIBRARY"}, {"test-outside", "OUTSIDE"}} {
		if !regexp.MustCompile(`\$\(MAKE\)[^;]* ` + half[0] + `\b`).MatchString(both) {
			t.Errorf("make test leaves %s out: %q", half[0], both)
		}
		recipe := find(`^` + half[0] + `:.*\n((?:\t.*\n)+)`)
		if !regexp.MustCompile(`(?m)^\t\$\(TESTED\) .*\$\(` + half[1] + `\)$`).MatchString(recipe) {
			t.Errorf("%s does not test %s: %q", half[0], half[1], recipe)
		}
		if out := both + tested + recipe; leavesTestsOut.MatchString(out) {
			t.Errorf("make test leaves tests out: %q", out)
		}
		patterns = append(patterns, strings.Fields(find(`^`+half[1]+` +:?= (.*\n)`)))
	}
	return patterns
}

// patternCovers reports whether a pattern of packages such as ./test/... names the package in this folder.
func patternCovers(pattern, dir string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	if above, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == above || strings.HasPrefix(dir, above+"/")
	}
	return dir == pattern
}
