package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/score"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// TestProgram plays the cases of mcpvisor chaos score to a client that is a program, in any language, over real processes and sockets
// and in real time: the whole takes a few minutes. Each case is a subtest. adapter is the command of a small program that drives the
// client; mcpvisor chaos score --help tells what it reads and writes.
//
//	func TestMain(m *testing.M) { chaos.Main(m) }
//
//	func TestOurClient(t *testing.T) {
//		chaos.TestProgram(t, []string{"node", "adapter.js"})
//	}
//
// [Seed] plays the cases in another order, and up to three at the same time in one client. The servers are this test binary, started
// again, so that its TestMain calls [Main].
func TestProgram(t *testing.T, adapter []string, options ...Option) {
	t.Helper()
	s := newSettings(t, "TestProgram", options)
	if !slices.Contains(s.given, "Seed") {
		s.seed = 0 // the cases are played in their order
	}
	o := score.Options{Adapter: adapter, Only: s.only, Seed: s.seed}
	r, err := score.Run(t.Context(), o)
	switch {
	case errors.Is(err, score.ErrNoCase):
		s.refuse(t, fmt.Sprintf("chaos.Only: %s. The cases are %s", messages.Printable(err.Error()), caseList()))
	case err != nil:
		s.refuse(t, messages.Printable(err.Error()))
	}
	for _, c := range r.Cases {
		t.Run(c.Name, func(t *testing.T) {
			for _, why := range c.Lost() {
				t.Error(messages.Printable(why))
			}
			if len(c.With) > 0 && len(c.Lost()) > 0 {
				t.Logf("played in one client with the cases %v, by the seed %d", c.With, s.seed)
			}
		})
	}
	s.cases = ScoreCases(r)
	if s.junit == "" {
		return
	}
	page, err := score.Page([]score.Result{r}, fmt.Sprintf("chaos.TestProgram in %s, seed %d", t.Name(), s.seed))
	if err == nil {
		if err = os.MkdirAll(s.junit, 0o755); err == nil {
			err = os.WriteFile(filepath.Join(s.junit, "score.html"), page, 0o644)
		}
	}
	if err != nil {
		t.Errorf("JUnit: %v", err)
	}
}

// caseList names all cases with the faults that they play.
func caseList() string {
	var all []string
	for _, c := range score.Cases() {
		name := strconv.Quote(c.Name)
		if len(c.Plays) > 0 {
			name += " (" + strings.Join(c.Plays, ", ") + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// ScoreCases returns a result of package score as cases for systems that collect tests: a case that lost a point is a failure, with its reasons.
func ScoreCases(r score.Result) (all []report.JUnitCase) {
	if r.Failed != "" {
		return []report.JUnitCase{{Group: r.Name, Name: "the adapter works", Failure: r.Failed}}
	}
	for _, c := range r.Cases {
		j := report.JUnitCase{Group: r.Name, Name: c.Name, Took: time.Duration(c.TookMs) * time.Millisecond}
		for i, why := range c.Lost() {
			if i > 0 {
				j.Failure += "\n"
			}
			j.Failure += why
		}
		all = append(all, j)
	}
	return all
}

// Main runs the tests of a package that uses [TestProgram], and ends the program. In the processes that it starts as servers the same
// program becomes one.
func Main(m *testing.M) {
	if servers.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}
