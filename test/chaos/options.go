package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
)

// Option changes what [TestClient], [TestProgram] and [TestServer] do.
type Option func(*settings)

// settings are what the options set.
type settings struct {
	seed   uint64
	days   int
	only   *regexp.Regexp
	junit  string
	limits client.Limits
	kinds  []messages.TransportKind
	eras   []messages.Era
	calls  []string
	known  []knownFailure

	// mu guards cases, which are collected for JUnit.
	mu    sync.Mutex
	cases []report.JUnitCase
	bad   error
}

// Seed is that of the first random day, 1 if it is not said; the next days have the next seeds. With [TestProgram] it decides in which
// order and which together the cases are played.
func Seed(seed uint64) Option { return func(s *settings) { s.seed = seed } }

// Days is how many random days there are for each transport and era, 10 if it is not said; 0 is none.
func Days(n int) Option { return func(s *settings) { s.days = n } }

// Only plays the cases whose name the regular expression matches: "crash", "^half-line$", "seed-7".
func Only(pattern string) Option {
	return func(s *settings) {
		var err error
		if s.only, err = regexp.Compile(pattern); err != nil {
			s.bad = fmt.Errorf("Only: %w", err)
		}
	}
}

// JUnit writes junit.xml into a folder, and beside it for each day that failed a folder with its report, timeline and record.
func JUnit(dir string) Option { return func(s *settings) { s.junit = dir } }

// Within is how long after the last fault a client may be until its calls succeed again; a minute if it is not said.
func Within(d time.Duration) Option { return func(s *settings) { s.limits.Back = d } }

// Late is how long after its deadline, or after it was given up, a call of [TestClient] may return; two seconds if it is not said.
func Late(d time.Duration) Option { return func(s *settings) { s.limits.Late = d } }

// Known names cases of [TestClient] that fail, by a regular expression of TRANSPORT/ERA/CASE, and why that is accepted: they are skipped,
// with what was seen. A case of one fault that passes all the same fails, so that what is known stays true; a random day may pass.
func Known(pattern, why string) Option {
	return func(s *settings) {
		re, err := regexp.Compile(pattern)
		if s.known = append(s.known, knownFailure{re, why}); err != nil {
			s.bad = fmt.Errorf("Known: %w", err)
		}
	}
}

// knownFailure is what Known says.
type knownFailure struct {
	cases *regexp.Regexp
	why   string
}

// knownAs returns why a subtest may fail, empty if it may not.
func (s *settings) knownAs(test string) string {
	for _, k := range s.known {
		if k.cases.MatchString(test[strings.IndexByte(test, '/')+1:]) {
			return k.why
		}
	}
	return ""
}

// Over names the transports over which [TestClient] plays: messages.Stdio, messages.HTTP. If it is not said, it plays both, and leaves
// out what the client does not have.
func Over(kinds ...messages.TransportKind) Option { return func(s *settings) { s.kinds = kinds } }

// Eras names the eras of the servers that [TestClient] plays. If it is not said, it plays both, and leaves out the modern one for a
// client that does not speak it.
func Eras(eras ...messages.Era) Option { return func(s *settings) { s.eras = eras } }

// Calls allows [TestServer] to call tools, each as "TOOL" or "TOOL {json}". Without it only tools are called that the server marks as
// read-only and that need no argument.
func Calls(calls ...string) Option { return func(s *settings) { s.calls = calls } }

// newSettings applies the options, and fails the test for one that cannot be used.
func newSettings(t *testing.T, options []Option) *settings {
	t.Helper()
	s := &settings{seed: 1, days: 10}
	for _, o := range options {
		if o(s); s.bad != nil {
			t.Fatal(s.bad)
		}
	}
	if s.junit != "" {
		t.Cleanup(func() { s.writeJUnit(t) })
	}
	return s
}

// chosen reports whether Only leaves a case in.
func (s *settings) chosen(name string) bool { return s.only == nil || s.only.MatchString(name) }

// note keeps a case for JUnit.
func (s *settings) note(c report.JUnitCase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cases = append(s.cases, c)
}

// writeJUnit writes the file of all cases.
func (s *settings) writeJUnit(t *testing.T) {
	t.Helper()
	text, err := report.JUnit(t.Name(), s.cases)
	if err == nil {
		if err = os.MkdirAll(s.junit, 0o755); err == nil {
			err = os.WriteFile(filepath.Join(s.junit, "junit.xml"), text, 0o644)
		}
	}
	if err != nil {
		t.Errorf("JUnit: %v", err)
	}
}
