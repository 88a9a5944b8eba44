package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/score"
)

// These are the types that a test of one's own client names; see package client.
type (
	// Client is the client under test, with three methods: Tools, Call and Close. One with a method NotSent(error) bool is also held
	// to what it says of calls that failed.
	Client = client.Client
	// ProgressCaller is a Client that can tell of the progress of a call; it is held to telling of no other's.
	ProgressCaller = client.ProgressCaller
	// ClientServer is what a client is given to reach a server: Open starts it over stdio, URL and HTTP reach it over HTTP.
	ClientServer = client.Server
	// Dial makes a client of a server.
	Dial = client.Dial
)

// Redial is the Dial of a client that does not connect again by itself: it is dialled anew at the first use after its stream has
// ended, and no call is made twice.
func Redial(dial func(ctx context.Context, stream io.ReadWriteCloser) (Client, error)) Dial {
	if dial == nil {
		return nil // TestClient says so
	}
	return client.Redial(dial)
}

// RedialHTTP is [Redial] over HTTP, where no stream ends: a client whose session the server does not know any more (404) says so by a
// method Lost() bool, or begins a new one by itself. A client of one transport alone names it with [Over].
func RedialHTTP(dial func(ctx context.Context, url string, c *http.Client) (Client, error)) Dial {
	if dial == nil {
		return nil // TestClient says so
	}
	return client.RedialHTTP(dial)
}

// TestClient plays bad days to any MCP client, in this process, in memory and in virtual time: a day with each fault of the catalogue
// that a client can meet, and random days by their seeds, with up to four servers. Each is a subtest, TRANSPORT/ERA/FAULT or
// TRANSPORT/ERA/seed-N, so that "go test -run" and [Only] choose among them. What is judged is seen from outside: every call ends, with
// its own answer; nothing is sent twice that may have run; the client comes back; nothing is left of it; its list follows the server's;
// it does not storm; servers that are well are served; cancelled calls are told to the server; ids, headers and sessions are used as
// the protocol says. It plays over stdio and HTTP, and in both eras of the protocol; a transport or an era that the client does not
// have is skipped.
//
//	func TestOurClient(t *testing.T) {
//		chaos.TestClient(t, func(ctx context.Context, s *chaos.ClientServer) (chaos.Client, error) { return newOurClient(s) })
//	}
//
// A failure shows the day with its timeline; a random day is made as small as possible before. When three cases or more fail, the last
// lines count what was violated in all of them: one defect mostly fails many. The same seed plays the same day. What
// is known and accepted is said with [Known]. A client that holds a mutex while it waits for the server stops the virtual time; that
// day is then played in real time, beside the others, and takes minutes.
//
// Clients of mcp-go and the Go SDK are ready in test/chaos/client/mcpgo and test/chaos/client/gosdk: Dial connects one with the library's
// defaults, Client and Session take one that the program has connected in its own way.
func TestClient(t *testing.T, dial Dial, options ...Option) {
	t.Helper()
	s := newSettings(t, "TestClient", options)
	t.Cleanup(func() { s.logCauses(t) })
	if dial == nil {
		s.refuse(t, "chaos.TestClient: the dial is nil: give a function that connects a client to a server")
	}
	eras, kinds := s.eras, s.kinds
	if len(eras) == 0 {
		eras = allEras
	}
	if len(kinds) == 0 {
		kinds = allKinds
	}
	s.checkNames(t, kinds, eras)
	served, played := 0, 0
	for _, kind := range kinds {
		for _, era := range eras {
			if n, ok := s.testOver(t, dial, kind, era); ok {
				served++
				played += n
			}
		}
	}
	switch {
	case served == 0:
		s.refuse(t, "the client has no result of any call, over no transport and in no era: see the skipped tests for what its dial says")
	case played == 0:
		s.refuse(t, fmt.Sprintf("nothing was played: chaos.Only(%q) names cases of transports and eras alone that the client does not have, see the skipped tests", s.only))
	}
}

// checkNames fails the test if Only leaves no case of some transports and eras, or if a Known is about no case of any.
func (s *settings) checkNames(t *testing.T, kinds []messages.TransportKind, eras []messages.Era) {
	t.Helper()
	var here, anywhere, names []string
	for _, kind := range allKinds {
		for _, era := range allEras {
			for _, name := range s.caseNames(kind, era) {
				path := casePath(kind, era) + "/" + name
				anywhere = append(anywhere, path)
				if slices.Contains(kinds, kind) && slices.Contains(eras, era) {
					here, names = append(here, path), append(names, name)
				}
			}
		}
	}
	for _, k := range s.known {
		if text := k.cases.String(); !strings.Contains(text, "seed-") && !slices.ContainsFunc(anywhere, k.cases.MatchString) {
			s.refuse(t, fmt.Sprintf("chaos.Known: %s. Cases are named as %s", score.NoMatchText(text, "TRANSPORT/ERA/CASE", slices.Concat(names, anywhere)), anywhere[0]))
		}
	}
	if slices.ContainsFunc(here, func(path string) bool { return s.chosen(path, path[strings.LastIndexByte(path, '/')+1:]) }) {
		return
	}
	text := "chaos.Only: " + score.NoMatchText(s.only.String(), "case", slices.Concat(names, here))
	for _, path := range anywhere {
		if s.chosen(path, path[strings.LastIndexByte(path, '/')+1:]) {
			text += fmt.Sprintf(". It matches %s, which chaos.Over or chaos.Eras leaves out", path)
			break
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return strings.HasPrefix(name, "seed-") })
	text += ". There are " + strings.Join(names, ", ")
	if s.days > 0 {
		text += fmt.Sprintf(", and by chaos.Seed and chaos.Days seed-%d to seed-%d", s.seed, s.seed+uint64(s.days)-1)
	}
	s.refuse(t, text)
}

// casePath is how the subtests of a transport and an era begin.
func casePath(kind messages.TransportKind, era messages.Era) string {
	return fmt.Sprintf("%s/%s", kind, era)
}

// caseNames returns the names of all cases of a transport and an era, the random days last.
func (s *settings) caseNames(kind messages.TransportKind, era messages.Era) (names []string) {
	for _, c := range client.Cases(kind, era) {
		names = append(names, c.Name)
	}
	for i := range s.days {
		names = append(names, fmt.Sprintf("seed-%d", s.seed+uint64(i)))
	}
	return names
}

// testOver plays the days of one transport and era that are chosen, and counts them. It reports whether the client has both.
func (s *settings) testOver(t *testing.T, dial Dial, kind messages.TransportKind, era messages.Era) (played int, ok bool) {
	path := casePath(kind, era)
	demanded := len(s.kinds) > 0 && (len(s.eras) > 0 || era == messages.EraLegacy)
	if !demanded {
		if ok, why := s.speaks(t, dial, client.Case{Name: client.Ordinary, Kind: kind, Era: era}); !ok {
			t.Run(path, func(t *testing.T) {
				t.Skipf("the client has no result on a day on which nothing breaks (chaos.Over and chaos.Eras make that a failure): %s", why)
			})
			return 0, false
		}
	}
	for _, c := range client.Cases(kind, era) {
		if s.chosen(c.Name, path+"/"+c.Name) {
			played++
			t.Run(path+"/"+c.Name, func(t *testing.T) { s.playDay(t, dial, c.Day(s.limits), true) })
		}
	}
	for i := range s.days {
		day := client.RandomDay(s.seed+uint64(i), kind, era, s.limits)
		if s.chosen(day.Name, path+"/"+day.Name) {
			played++
			t.Run(path+"/"+day.Name, func(t *testing.T) { s.playDay(t, dial, day, false) })
		}
	}
	return played, true
}

// speaks reports whether any call of an ordinary day has a result, and why not.
func (s *settings) speaks(t *testing.T, dial Dial, c client.Case) (ok bool, why string) {
	t.Helper()
	h, _, err := s.runDay(t.Context(), dial, c.Day(s.limits))
	if frozen := (*client.ErrFrozen)(nil); errors.As(err, &frozen) {
		return true, ""
	} else if err != nil {
		t.Fatal(err)
	}
	for _, e := range h.Events {
		switch {
		case e.Kind == history.End && e.Outcome == messages.OutcomeResult:
			return true, ""
		case e.Kind == history.Violation && e.Name == client.Panicked:
			return true, "" // its days tell it
		case e.Kind == history.Refused, e.Kind == history.End && why == "":
			why = e.Text
		}
	}
	return false, why
}

// runDay plans a day, plays it and judges it.
func (s *settings) runDay(ctx context.Context, dial Dial, day scenario.Scenario) (*history.History, []invariant.Verdict, error) {
	plan, err := day.Plan(0, scenario.Sim)
	if err != nil {
		return nil, nil, err
	}
	h, err := client.Run(ctx, plan, dial)
	if err != nil {
		return nil, nil, err
	}
	return h, client.Judge(h, s.limits), nil
}

// runInRealTime plays a day that virtual time cannot hold. The days of several tests are played at the same time.
func (s *settings) runInRealTime(t *testing.T, dial Dial, day scenario.Scenario, frozen *client.ErrFrozen) (*history.History, []invariant.Verdict, error) {
	plan, err := day.Plan(0, scenario.Sim)
	if err != nil {
		return nil, nil, err
	}
	t.Logf("played in real time, which takes %s: %v. Virtual time passes only while nobody waits for a mutex; do not hold one while you wait for the server.",
		plan.End.Round(time.Second), frozen)
	var h *history.History
	ended := make(chan error, 1)
	go func() {
		var err error
		h, err = client.RunReal(context.WithoutCancel(t.Context()), plan, dial)
		ended <- err
	}()
	waitBeside(t)
	if err := <-ended; err != nil {
		return nil, nil, err
	}
	return h, client.Judge(h, s.limits), nil
}

// waitBeside lets the other tests go on. A test that has set variables of the environment cannot do so, and waits alone.
func waitBeside(t *testing.T) {
	defer func() { _ = recover() }()
	t.Parallel()
}

// playDay is one subtest. A case in which its fault had no effect has shown nothing and is skipped; of a random day some may have none.
func (s *settings) playDay(t *testing.T, dial Dial, day scenario.Scenario, oneFault bool) {
	began := time.Now()
	group, name := filepath.Dir(t.Name()), filepath.Base(t.Name())
	var frozen *client.ErrFrozen
	h, verdicts, err := s.runDay(t.Context(), dial, day)
	if errors.As(err, &frozen) {
		h, verdicts, err = s.runInRealTime(t, dial, day, frozen)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := report.JUnitCase{Group: group, Name: name, Took: time.Since(began)}
	known := s.knownAs(t.Name())
	if report.Overall(violatedOf(verdicts)) != invariant.Violated {
		if without, all := client.Fired(h); oneFault && !all {
			c.Skipped = "the fault " + without + " had no effect on this client"
		} else if known != "" && oneFault {
			c.Failure = fmt.Sprintf("it passes, and Known says that it fails: %s. Take that Known away.", known)
		}
		if s.note(c); c.Failure != "" {
			t.Error(c.Failure)
		} else if c.Skipped != "" {
			t.Skip(c.Skipped)
		}
		return
	}
	run := report.Run{History: h, Verdicts: verdicts, Started: began, Took: time.Since(began), Command: "go test -run '^" + t.Name() + "$'"}
	if known != "" {
		c.Skipped = "known: " + known + ": " + firstWhy(verdicts)
		s.note(c)
		t.Skip(c.Skipped)
	}
	if !oneFault && frozen == nil {
		run = shrinkDay(t.Context(), day, run, func(ctx context.Context, day scenario.Scenario) (*history.History, []invariant.Verdict, error) {
			return s.runDay(ctx, dial, day)
		})
	}
	var text strings.Builder
	if s.junit != "" {
		dir := filepath.Join(s.junit, strings.ReplaceAll(t.Name(), "/", "-"))
		run.Replace = true
		if err := report.Write(dir, run); err != nil {
			t.Errorf("JUnit: %v", err)
		} else {
			run.Dir = dir
		}
	}
	report.Terminal(&text, run, false)
	for _, v := range run.Verdicts {
		if v.Answer == invariant.Violated {
			fmt.Fprintf(&text, "\n%s, the exchange; > is what shows it:\n%s", v.ID, client.Exchange(run.History, v))
			if what := client.Advice(v.ID); what != "" {
				fmt.Fprintf(&text, "What to do: %s\n", what)
			}
		}
	}
	c.Failure = text.String()
	s.note(c)
	s.noteFailure(t.Name(), run.Verdicts)
	t.Errorf("the client, on %s, seed %d:\n%s", day.Name, day.Seed, text.String())
}

// firstWhy says what was seen wrong first.
func firstWhy(all []invariant.Verdict) string {
	for _, v := range all {
		if v.Answer == invariant.Violated {
			return v.ID + ": " + v.Why
		}
	}
	return ""
}

// violatedOf leaves out what could not be judged.
func violatedOf(all []invariant.Verdict) (some []invariant.Verdict) {
	for _, v := range all {
		if v.Answer != invariant.Inconclusive {
			some = append(some, v)
		}
	}
	return some
}
