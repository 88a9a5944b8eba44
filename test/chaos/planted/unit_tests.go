package planted

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// A TestResult is the result of the unit tests of a bug's package.
type TestResult struct {
	// Failed names the first test that failed, or "a crash"; empty if none did. Hang is set if the tests had not ended in time.
	Failed string        `json:"failed,omitempty"`
	Hang   bool          `json:"hang,omitempty"`
	CPU    time.Duration `json:"cpu"`
}

// Detected reports whether the unit tests would have stopped the bug.
func (t TestResult) Detected() bool { return t.Failed != "" || t.Hang }

// findExtraTests returns another package whose unit tests test a package as well, empty for none: package supervisor drives the
// actors, and their tests stand there; a package below internal is a part of the one above it.
func findExtraTests(folder string) string {
	if folder == "actors" {
		return "supervisor"
	}
	whole, _, isPart := strings.Cut(folder, "/internal/")
	if !isPart {
		return ""
	}
	return whole
}

// Test runs the unit tests of a bug's package with the bug, in short mode, until the first failure. A test that fails without a
// bug is skipped. It returns an error if the tests cannot be built or hang without a bug.
func (p *Programs) Test(ctx context.Context, b bugs.Bug, limit time.Duration) (TestResult, error) {
	t, err := p.testPackage(ctx, b, limit)
	if other := findExtraTests(b.Package); err == nil && other != "" && !t.Detected() {
		first := t.CPU
		b.Package = other
		t, err = p.testPackage(ctx, b, limit)
		t.CPU += first
	}
	return t, err
}

// testPackage builds the tests of a package once, runs them once without a bug to learn which ones fail anyway, and then with
// the bug.
func (p *Programs) testPackage(ctx context.Context, b bugs.Bug, limit time.Duration) (TestResult, error) {
	// Tests that fail on this machine without any bug would otherwise find every bug.
	flaws, known := p.failingTests[b.Package]
	if !known {
		if err := p.runGo(ctx, "test", "-c", "-vet=off", "-overlay", p.overlay, "-o", p.testPath(b.Package), "./"+b.Package); err != nil {
			return TestResult{}, err
		}
		// The go command builds no program for a package without tests: those of another package test it.
		if _, err := os.Stat(p.testPath(b.Package)); errors.Is(err, fs.ErrNotExist) {
			return TestResult{}, nil
		}
		clean, out, err := p.runTests(ctx, bugs.Bug{Package: b.Package}, limit, "")
		if err != nil {
			return clean, err
		}
		if clean.Hang {
			return clean, fmt.Errorf("the tests of %s take longer than %v", b.Package, limit)
		}
		flaws = failedTests(out)
		p.failingTests[b.Package] = flaws
	}
	skip := ""
	if len(flaws) > 0 {
		skip = "^(" + strings.Join(flaws, "|") + ")$"
	}
	t, _, err := p.runTests(ctx, b, limit, skip)
	return t, err
}

// runTests runs a built test program with a bug, or without one for an empty name, and returns its output as well. The test
// program's own timeout ends it; the context only steps in 5 s later, if that fails.
func (p *Programs) runTests(ctx context.Context, b bugs.Bug, limit time.Duration, skip string) (TestResult, string, error) {
	bounded, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	args := []string{"-test.short", "-test.timeout", limit.String()}
	// Without a bug all failures are wanted, not only the first.
	if b.Name != "" {
		args = append(args, "-test.failfast")
	}
	if skip != "" {
		args = append(args, "-test.skip", skip)
	}
	run := exec.CommandContext(bounded, p.testPath(b.Package), args...)
	run.Dir = filepath.Join(p.root, filepath.FromSlash(b.Package))
	run.Env = append(os.Environ(), bugVariable+"="+b.Name, "RAPID_NOFAILFILE=1") // rapid must leave no file in the source tree
	run.WaitDelay = 5 * time.Second
	out, err := run.CombinedOutput()
	var t TestResult
	if s := run.ProcessState; s != nil {
		t.CPU = s.UserTime() + s.SystemTime()
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return t, "", ctx.Err()
	case bounded.Err() != nil || strings.Contains(string(out), "panic: test timed out"):
		t.Hang = true
	case errors.As(err, &exit):
		// A panic ends the process without the name of a test.
		t.Failed = "a crash"
		if names := failedTests(string(out)); len(names) > 0 {
			t.Failed = names[0]
		}
	case err != nil:
		return t, "", err
	}
	return t, string(out), nil
}

// failurePattern finds the top-level tests that failed; subtests are indented.
var failurePattern = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// failedTests returns the names of the failed tests in the output of a test program.
func failedTests(out string) (names []string) {
	for _, m := range failurePattern.FindAllStringSubmatch(out, -1) {
		names = append(names, m[1])
	}
	return names
}
