package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
)

// Option changes what [TestClient], [TestProgram] and [TestServer] do. One that the function has no use for fails the test, and so does
// one that names nothing: else a test would show less than it says.
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
	// given are the names of the options.
	given []string

	// mu guards cases, which are collected for JUnit, and failed, for the list of their causes.
	mu     sync.Mutex
	cases  []report.JUnitCase
	failed []failedCase
	bad    error
}

// newOption returns an option with its name. What set returns fails the test.
func newOption(name string, set func(*settings) error) Option {
	return func(s *settings) {
		s.given = append(s.given, name)
		if err := set(s); err != nil && s.bad == nil {
			s.bad = fmt.Errorf("chaos.%s: %w", name, err)
		}
	}
}

// Seed is that of the first random day, 1 if it is not said; the next days have the next seeds. With [TestProgram] it decides in which
// order and which together the cases are played.
func Seed(seed uint64) Option {
	return newOption("Seed", func(s *settings) error { s.seed = seed; return nil })
}

// Days is how many random days [TestClient] plays for each transport and era, 10 if it is not said; 0 is none.
func Days(n int) Option {
	return newOption("Days", func(s *settings) error {
		if s.days = n; n < 0 {
			return fmt.Errorf("%d is less than none", n)
		}
		return nil
	})
}

// Only plays the cases whose name the regular expression matches: "crash", "^half-line$", "seed-7", or with the transport and the era
// of [TestClient] before it "^stdio/legacy/crash$". With [TestProgram] it is the name of a case, its number, or a fault that it plays, as
// mcpvisor chaos score --cases --json prints them. A test in which it matches nothing fails, and says what there is.
func Only(pattern string) Option {
	return newOption("Only", func(s *settings) (err error) {
		s.only, err = regexp.Compile(pattern)
		return err
	})
}

// JUnit writes junit.xml into a folder, and beside it for each day that failed a folder with its report, timeline and record.
func JUnit(dir string) Option {
	return newOption("JUnit", func(s *settings) error { s.junit = dir; return nil })
}

// Within is how long after the last fault a client of [TestClient] may be until its calls succeed again; a minute if it is not said.
func Within(d time.Duration) Option {
	return newOption("Within", func(s *settings) error { s.limits.Back = d; return checkPositive(d) })
}

// Late is how long after its deadline, or after it was given up, a call of [TestClient] may return; two seconds if it is not said.
func Late(d time.Duration) Option {
	return newOption("Late", func(s *settings) error { s.limits.Late = d; return checkPositive(d) })
}

// checkPositive refuses a time that no client can keep.
func checkPositive(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s is no time that a client can keep: give more than 0", d)
	}
	return nil
}

// Known names cases of [TestClient] that fail, by a regular expression of TRANSPORT/ERA/CASE, and why that is accepted: they are skipped,
// with what was seen. A case of one fault that passes all the same fails, so that the list of known failures stays true; a random day may pass. An
// expression that matches no case fails, unless it has "seed-" in it: which random days there are depends on [Seed] and [Days].
func Known(pattern, why string) Option {
	return newOption("Known", func(s *settings) error {
		re, err := regexp.Compile(pattern)
		if err == nil && why == "" {
			err = errors.New("say why the failure is accepted")
		}
		s.known = append(s.known, knownFailure{re, why})
		return err
	})
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
func Over(kinds ...messages.TransportKind) Option {
	return newOption("Over", func(s *settings) error {
		s.kinds = kinds
		for _, k := range kinds {
			if !slices.Contains(allKinds, k) {
				return fmt.Errorf("clients are played over messages.Stdio and messages.HTTP, and not over %q", messages.Line(string(k), 40))
			}
		}
		return nil
	})
}

// Eras names the eras of the servers that [TestClient] plays. If it is not said, it plays both, and leaves out the modern one for a
// client that does not speak it.
func Eras(eras ...messages.Era) Option {
	return newOption("Eras", func(s *settings) error {
		s.eras = eras
		for _, e := range eras {
			if !slices.Contains(allEras, e) {
				return fmt.Errorf("there are messages.EraLegacy and messages.EraModern, and no %q", messages.Line(string(e), 40))
			}
		}
		return nil
	})
}

var (
	allKinds = []messages.TransportKind{messages.Stdio, messages.HTTP}
	allEras  = []messages.Era{messages.EraLegacy, messages.EraModern}
)

// Calls allows [TestServer] to call tools, each as "TOOL" or "TOOL {json}". Without it only tools are called that the server marks as
// read-only and that need no argument.
func Calls(calls ...string) Option {
	return newOption("Calls", func(s *settings) error { s.calls = calls; return nil })
}

// optionsOf are the options that each function has a use for.
var optionsOf = map[string][]string{
	"TestClient":  {"Seed", "Days", "Only", "JUnit", "Within", "Late", "Known", "Over", "Eras"},
	"TestProgram": {"Seed", "Only", "JUnit"},
	"TestServer":  {"Only", "JUnit", "Calls"},
}

// newSettings applies the options of one of the functions, and fails the test for one that cannot be used.
func newSettings(t *testing.T, function string, options []Option) *settings {
	t.Helper()
	s := &settings{seed: 1, days: 10}
	for i, o := range options {
		if o == nil {
			s.bad = fmt.Errorf("chaos.%s: option %d is nil", function, i+1)
			break
		}
		o(s)
	}
	for _, name := range s.given {
		if own := optionsOf[function]; s.bad == nil && !slices.Contains(own, name) {
			s.bad = fmt.Errorf("chaos.%s has no use for chaos.%s: its options are %s", function, name, strings.Join(own, ", "))
		}
	}
	if s.junit != "" {
		t.Cleanup(func() { s.writeJUnit(t) })
	}
	if s.bad != nil {
		s.refuse(t, s.bad.Error())
	}
	return s
}

// refuse fails a test that cannot show what it was written for. A system that reads junit.xml alone finds the failure too.
func (s *settings) refuse(t *testing.T, why string) {
	t.Helper()
	s.note(report.JUnitCase{Group: t.Name(), Name: "what is tested", Failure: why})
	t.Fatal(why)
}

// chosen reports whether Only leaves a case in, which has a name or several.
func (s *settings) chosen(names ...string) bool {
	return s.only == nil || slices.ContainsFunc(names, s.only.MatchString)
}

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
