package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/shrink"
)

// These are the types that a test of one's own client names; see package client.
type (
	// Client is the client under test, with three methods: Tools, Call and Close. One with a method NotSent(error) bool is also held
	// to what it says of calls that failed.
	Client = client.Client
	// ClientServer is what a client is given to reach its server: Open starts it over stdio, URL and HTTP reach it over HTTP.
	ClientServer = client.Server
	// Dial makes a client of a server.
	Dial = client.Dial
)

// Redial is the Dial of a client that does not connect again by itself: it is dialled anew at the first use after its stream has
// ended, and no call is made twice.
func Redial(dial func(ctx context.Context, stream io.ReadWriteCloser) (Client, error)) Dial {
	return client.Redial(dial)
}

// RedialHTTP is [Redial] over HTTP; give [Over] messages.HTTP.
func RedialHTTP(dial func(ctx context.Context, url string, c *http.Client) (Client, error)) Dial {
	return client.RedialHTTP(dial)
}

// TestClient plays bad days to any MCP client, in this process, in memory and in virtual time: a day with each fault of the catalogue
// that a client can meet, and random days by their seeds. Each is a subtest, TRANSPORT/ERA/FAULT or TRANSPORT/ERA/seed-N, so that
// "go test -run" and [Only] choose among them. What is judged is seen from outside: every call ends, with its own answer; nothing is
// sent twice that may have run; the client comes back; nothing is left of it; its list follows the server's; it does not storm.
//
//	func TestOurClient(t *testing.T) {
//		chaos.TestClient(t, func(ctx context.Context, s *chaos.ClientServer) (chaos.Client, error) { return newOurClient(s) })
//	}
//
// A failure shows the day with its timeline; a random day is made as small as possible before. The same seed plays the same day.
// Clients of mcp-go and the Go SDK are ready in test/chaos/client/mcpgo and test/chaos/client/gosdk.
func TestClient(t *testing.T, dial Dial, options ...Option) {
	t.Helper()
	s := newSettings(t, options)
	eras := s.eras
	if len(eras) == 0 {
		eras = []messages.Era{messages.EraLegacy, messages.EraModern}
	}
	for _, kind := range s.kinds {
		for _, era := range eras {
			t.Run(fmt.Sprintf("%s/%s", kind, era), func(t *testing.T) { s.testOver(t, dial, kind, era) })
		}
	}
}

// testOver plays every day of one transport and era.
func (s *settings) testOver(t *testing.T, dial Dial, kind messages.TransportKind, era messages.Era) {
	if era == messages.EraModern && len(s.eras) == 0 && !speaks(t, dial, client.Case{Name: client.Ordinary, Kind: kind, Era: era}, s.limits) {
		t.Skip("the client does not speak 2026-07-28; chaos.Eras makes that a failure")
	}
	for _, c := range client.Cases(kind, era) {
		if s.chosen(c.Name) {
			t.Run(c.Name, func(t *testing.T) { s.playDay(t, dial, c.Day(s.limits), true) })
		}
	}
	for i := range s.days {
		day := client.RandomDay(s.seed+uint64(i), kind, era, s.limits)
		if s.chosen(day.Name) {
			t.Run(day.Name, func(t *testing.T) { s.playDay(t, dial, day, false) })
		}
	}
}

// speaks reports whether any call of an ordinary day has a result.
func speaks(t *testing.T, dial Dial, c client.Case, l client.Limits) bool {
	t.Helper()
	h, _, err := runDay(t.Context(), dial, c.Day(l), l)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range h.Events {
		if e.Kind == history.End && e.Outcome == messages.OutcomeResult {
			return true
		}
	}
	return false
}

// runDay plans a day, plays it and judges it.
func runDay(ctx context.Context, dial Dial, s scenario.Scenario, l client.Limits) (*history.History, []invariant.Verdict, error) {
	plan, err := s.Plan(0, scenario.Sim)
	if err != nil {
		return nil, nil, err
	}
	h, err := client.Run(ctx, plan, dial)
	if err != nil {
		return nil, nil, err
	}
	return h, client.Judge(h, l), nil
}

// playDay is one subtest. A case in which its fault had no effect has shown nothing and is skipped; of a random day some may have none.
func (s *settings) playDay(t *testing.T, dial Dial, day scenario.Scenario, oneFault bool) {
	began := time.Now()
	group, name := filepath.Dir(t.Name()), filepath.Base(t.Name())
	h, verdicts, err := runDay(t.Context(), dial, day, s.limits)
	if err != nil {
		t.Fatal(err)
	}
	c := report.JUnitCase{Group: group, Name: name, Took: time.Since(began)}
	if report.Overall(violatedOf(verdicts)) != invariant.Violated {
		if without, all := client.Fired(h); oneFault && !all {
			c.Skipped = "the fault " + without + " had no effect on this client"
		}
		if s.note(c); c.Skipped != "" {
			t.Skip(c.Skipped)
		}
		return
	}
	run := report.Run{History: h, Verdicts: verdicts, Started: began, Took: time.Since(began), Command: "go test -run '^" + t.Name() + "$'"}
	if !oneFault {
		run = s.shrinkDay(t.Context(), dial, day, run)
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
	c.Failure = text.String()
	s.note(c)
	t.Errorf("the client, on %s, seed %d:\n%s", day.Name, day.Seed, text.String())
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

const (
	// shrinkTries and shrinkTime bound the search for a smaller day.
	shrinkTries = 200
	shrinkTime  = 15 * time.Second
)

// shrinkDay returns the run of the smallest day that it finds in which the same is seen wrong. A day that hangs is not tried again.
func (s *settings) shrinkDay(ctx context.Context, dial Dial, day scenario.Scenario, run report.Run) report.Run {
	first := ""
	for _, v := range run.Verdicts {
		if v.Answer == invariant.Violated && first == "" {
			first = v.ID
		}
	}
	if first == history.Hung {
		return run
	}
	ctx, cancel := context.WithTimeout(ctx, shrinkTime)
	defer cancel()
	violated := func(ctx context.Context, smaller scenario.Scenario) bool {
		_, verdicts, err := runDay(ctx, dial, smaller, s.limits)
		if err != nil {
			return false
		}
		for _, v := range verdicts {
			if v.ID == first && v.Answer == invariant.Violated {
				return true
			}
		}
		return false
	}
	small, stats := shrink.Shrink(ctx, day, violated, shrink.Options{Tries: shrinkTries})
	if stats.Kept == 0 {
		return run
	}
	h, verdicts, err := runDay(context.WithoutCancel(ctx), dial, small, s.limits)
	if err != nil || report.Overall(violatedOf(verdicts)) != invariant.Violated {
		return run
	}
	return report.Run{History: h, Verdicts: verdicts, Started: run.Started, Took: run.Took, Command: run.Command,
		Found: &report.Found{Scenario: day, Command: run.Command}}
}
