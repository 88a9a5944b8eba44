package planted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// TestResult is what the unit tests of a bug's package say of it.
type TestResult struct {
	// Failed is the first test that failed, empty if none did; Hang says that they had not ended in time.
	Failed string        `json:"failed,omitempty"`
	Hang   bool          `json:"hang,omitempty"`
	CPU    time.Duration `json:"cpu"`
}

// Detected reports whether the unit tests would not have let the bug pass.
func (t TestResult) Detected() bool { return t.Failed != "" || t.Hang }

// extraTestPackages are the packages whose unit tests are those of another one as well: the actors are driven by the supervisor, and their
// tests stand there.
var extraTestPackages = map[string]string{"actors": "supervisor"}

// Test runs the unit tests of a bug's package with it, as far as they are for every day (-short), until the first that fails. A test
// that fails without a bug does not count.
func (p *Programs) Test(ctx context.Context, b Bug, limit time.Duration) (TestResult, error) {
	t, err := p.testPackage(ctx, b, limit)
	if other := extraTestPackages[b.Package]; err == nil && other != "" && !t.Detected() {
		first := t.CPU
		b.Package = other
		t, err = p.testPackage(ctx, b, limit)
		t.CPU += first
	}
	return t, err
}

func (p *Programs) testPackage(ctx context.Context, b Bug, limit time.Duration) (TestResult, error) {
	flaws, known := p.failingTests[b.Package]
	if !known {
		if err := p.runGo(ctx, "test", "-c", "-vet=off", "-overlay", p.overlay, "-o", p.testPath(b.Package), "./"+b.Package); err != nil {
			return TestResult{}, err
		}
		clean, out, err := p.runTests(ctx, Bug{Package: b.Package}, limit, "")
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

func (p *Programs) runTests(ctx context.Context, b Bug, limit time.Duration, skip string) (TestResult, string, error) {
	bounded, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	args := []string{"-test.short", "-test.timeout", limit.String()}
	if b.Name != "" {
		args = append(args, "-test.failfast")
	}
	if skip != "" {
		args = append(args, "-test.skip", skip)
	}
	run := exec.CommandContext(bounded, p.testPath(b.Package), args...)
	run.Dir = filepath.Join(p.root, filepath.FromSlash(b.Package))
	run.Env = append(os.Environ(), bugVariable+"="+b.Name, "RAPID_NOFAILFILE=1") // nothing is left in the source tree
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
		t.Failed = "a crash"
		if names := failedTests(string(out)); len(names) > 0 {
			t.Failed = names[0]
		}
	case err != nil:
		return t, "", err
	}
	return t, string(out), nil
}

var failurePattern = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// failedTests are the names of the tests that failed.
func failedTests(out string) (names []string) {
	for _, m := range failurePattern.FindAllStringSubmatch(out, -1) {
		names = append(names, m[1])
	}
	return names
}
