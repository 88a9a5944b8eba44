package shrink_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcpvisor/mcpvisor/test/chaos/generate"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/shrink"
)

type predicate = func(context.Context, scenario.Scenario) bool

// planPredicate makes a predicate of plans one of scenarios.
func planPredicate(t interface{ Fatal(...any) }, fails func(scenario.Plan) bool) predicate {
	return func(_ context.Context, s scenario.Scenario) bool {
		p, err := s.Plan(0, scenario.Sim)
		if err != nil {
			t.Fatal("asked about a scenario that cannot be planned:", err)
		}
		return fails(p)
	}
}

func parseScenario(t *testing.T, text string) scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const largeScenario = `
name: large
seed: 3
duration: 24h
servers:
  - { name: web, count: 200, start: 300ms, tools: 9 }
  - { name: api, count: 30, kind: http, latency: 20ms }
  - { name: db }
faults:
  - { fault: crash, on: [web, any:5], every: 7m, spread: 30s }
  - { fault: crash, on: web, at: 1h, spread: 10m }
  - { fault: hang-call, on: api, at: 10m, every: 1h, for: 3m }
  - { fault: stop, on: db, at: 2h, for: 17m41s }
commands:
  - { do: disable, on: web, at: 1h2m, spread: 5m }
  - { do: enable, on: web, at: 1h8m }
  - { do: reconnect, on: [any:3], every: 20m }
load:
  - { on: web, tool: read, rate: 0.01 }
  - { on: db, tool: write, rate: 3, size: 1000 }
manager: { gate: 3, stable: 20s, probe: 1m }
`

// isNear says that a crash and a disable of one server are at most a second apart.
func isNear(p scenario.Plan) bool {
	for _, f := range p.Faults {
		for _, c := range p.Commands {
			if f.Fault == "crash" && c.Do == "disable" && f.Server == c.Server && (f.Begin-c.At).Abs() <= time.Second {
				return true
			}
		}
	}
	return false
}

func TestEndsAtTheSmallest(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails func(scenario.Plan) bool
		want  string
	}{
		{"a crash within a second of a disable", isNear, `
			servers: [web-…]
			crash web-… at …
			disable web-… at …`},
		{"a server that is stopped", func(p scenario.Plan) bool {
			for _, f := range p.Faults {
				if f.Fault == "stop" && f.End-f.Begin >= 10*time.Second {
					return true
				}
			}
			return false
		}, `
			servers: [db]
			stop db at … for …`},
		{"two servers", func(p scenario.Plan) bool { return len(p.Servers) >= 2 }, `
			servers: [… …]`},
		{"calls with a narrow gate", func(p scenario.Plan) bool { return len(p.Load) > 0 && p.Limits.Processes < 5 }, `
			servers: [db]
			load write db
			gate 3`},
		{"anything", func(scenario.Plan) bool { return true }, `
			servers: [db]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parseScenario(t, largeScenario)
			got, stats := shrink.Shrink(t.Context(), s, planPredicate(t, c.fails), shrink.Options{Tries: 5000})
			if !stats.Failed || !stats.Minimal {
				t.Errorf("%+v", stats)
			}
			if !matchesLines(storyOf(t, got), c.want) {
				t.Errorf("after %d tries:\n%s\nwant %s", stats.Tries, got.YAML(), c.want)
			}
			p, err := got.Plan(0, scenario.Sim)
			if err != nil || !c.fails(p) {
				t.Errorf("what is returned does not fail: %v", err)
			}
			t.Logf("%d tries, %d kept\n%s", stats.Tries, stats.Kept, got.YAML())
		})
	}
}

// storyOf tells a scenario by what is in it.
func storyOf(t *testing.T, s scenario.Scenario) string {
	p, err := s.Plan(0, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, server := range p.Servers {
		names = append(names, server.Name)
	}
	lines := []string{fmt.Sprintf("servers: %v", names)}
	for _, f := range p.Faults {
		line := fmt.Sprintf("%s %s at %v", f.Fault, f.Server, f.Begin)
		if f.End > f.Begin {
			line += fmt.Sprintf(" for %v", f.End-f.Begin)
		}
		lines = append(lines, line)
	}
	for _, c := range p.Commands {
		lines = append(lines, fmt.Sprintf("%s %s at %v", c.Do, c.Server, c.At))
	}
	for _, l := range p.Load {
		lines = append(lines, fmt.Sprintf("load %s %s", l.Tool, l.Server))
	}
	if s.Manager.Gate > 0 {
		lines = append(lines, fmt.Sprintf("gate %d", s.Manager.Gate))
	}
	return strings.Join(lines, "\n")
}

// matchesLines compares line by line; … stands for a word of any kind.
func matchesLines(got, want string) bool {
	g, w := strings.Fields(got), strings.Fields(want)
	if len(g) != len(w) {
		return false
	}
	for i := range g {
		before, after, open := strings.Cut(w[i], "…")
		if !open && g[i] != w[i] || !strings.HasPrefix(g[i], before) || !strings.HasSuffix(g[i], after) {
			return false
		}
	}
	return true
}

// The times of what is left are ones that a person reads, and the day ends when all is done.
func TestTimesAreRound(t *testing.T) {
	got, _ := shrink.Shrink(t.Context(), parseScenario(t, largeScenario), planPredicate(t, isNear), shrink.Options{Tries: 5000})
	for _, at := range []time.Duration{time.Duration(got.Faults[0].At), time.Duration(got.Commands[0].At)} {
		if at%time.Second != 0 || at > 2*time.Minute {
			t.Errorf("at %v", at)
		}
	}
	if d := time.Duration(got.Duration); d > 5*time.Minute || got.Faults[0].For != 0 {
		t.Errorf("%v\n%s", d, got.YAML())
	}
	if got.Manager != (scenario.Manager{}) || len(got.Faults[0].With) != 0 {
		t.Errorf("settings are left:\n%s", got.YAML())
	}
}

const lateScenario = `
name: late
seed: 3
duration: 15m
servers: [{ name: web, count: 4 }]
faults: [{ fault: crash, on: web-001, at: 7m25s }]
load: [{ on: web-001, from: 7m26s, for: 2s }]
agents:
  - { as: principal-1, from: 7m26s, for: 2s }
  - { as: principal-2, from: 14m }
`

// A day is cut behind the failure with the agents that would come later.
func TestAgentsThatComeLaterGoWithTheirTime(t *testing.T) {
	crashes := planPredicate(t, func(p scenario.Plan) bool { return len(p.Faults) > 0 })
	got, _ := shrink.Shrink(t.Context(), parseScenario(t, lateScenario), crashes, shrink.Options{Tries: 2, At: 7*time.Minute + 25*time.Second})
	if time.Duration(got.Duration) != 7*time.Minute+26*time.Second || len(got.Agents) != 0 {
		t.Errorf("%s", got.YAML())
	}
}

// What has to happen in a certain order moves to the start of the day together, calls and agents included.
func TestWhatIsLateMovesToTheStartTogether(t *testing.T) {
	follow := planPredicate(t, func(p scenario.Plan) bool {
		if len(p.Faults) == 0 || len(p.Load) == 0 || len(p.Agents) == 0 {
			return false
		}
		at := p.Faults[0].Begin
		return p.Load[0].Begin-at == time.Second && p.Agents[0].Begin-at == time.Second
	})
	got, stats := shrink.Shrink(t.Context(), parseScenario(t, lateScenario), follow, shrink.Options{})
	if !stats.Minimal || time.Duration(got.Faults[0].At) > 0 || time.Duration(got.Duration) > 10*time.Second {
		t.Errorf("%+v\n%s", stats, got.YAML())
	}
}

func TestWhatDoesNotFailStaysAsItIs(t *testing.T) {
	s := parseScenario(t, largeScenario)
	got, stats := shrink.Shrink(t.Context(), s, planPredicate(t, func(scenario.Plan) bool { return false }), shrink.Options{})
	if stats.Failed || stats.Tries != 1 || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v", stats)
	}
	if _, stats := shrink.Shrink(t.Context(), scenario.Scenario{}, planPredicate(t, isNear), shrink.Options{}); stats.Failed || stats.Tries != 0 {
		t.Errorf("a scenario that cannot be planned: %+v", stats)
	}
}

func TestTriesAndContextBoundIt(t *testing.T) {
	asked := 0
	count := planPredicate(t, func(p scenario.Plan) bool { asked++; return isNear(p) })
	got, stats := shrink.Shrink(t.Context(), parseScenario(t, largeScenario), count, shrink.Options{Tries: 20})
	if asked != 20 || stats.Tries != 20 || stats.Minimal {
		t.Errorf("asked %d times: %+v", asked, stats)
	}
	if p, err := got.Plan(0, scenario.Sim); err != nil || !isNear(p) {
		t.Errorf("what is returned does not fail: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked = 0
	got, stats = shrink.Shrink(ctx, parseScenario(t, largeScenario), func(_ context.Context, s scenario.Scenario) bool {
		if asked++; asked == 10 {
			cancel() // this answer is not to be believed
			return true
		}
		return planPredicate(t, isNear)(ctx, s)
	}, shrink.Options{})
	if p, err := got.Plan(0, scenario.Sim); err != nil || !isNear(p) || asked != 10 || stats.Minimal {
		t.Errorf("asked %d times: %+v, %v", asked, stats, err)
	}
}

// Whatever fails and however it is asked: what is returned still fails, is not larger, is the same each time, and no
// scenario is asked about twice.
func TestPropertiesOfEveryShrinking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := generate.Scenario(rapid.Uint64().Draw(t, "seed"), generate.Options{Servers: 6, Faults: 8})
		p, err := s.Plan(0, scenario.Sim)
		if err != nil {
			t.Fatal(err)
		}
		// It fails if all of these are there: some faults of the plan, by their names and servers, and so many streams.
		need := map[string]bool{}
		some := rapid.IntRange(0, max(len(p.Faults)-1, 0)) // a day may have none
		for _, i := range rapid.SliceOfN(some, 0, min(len(p.Faults), 3)).Draw(t, "faults") {
			need[p.Faults[i].Fault+" "+p.Faults[i].Server] = true
		}
		streams := rapid.IntRange(0, len(p.Load)).Draw(t, "streams")
		fails := func(p scenario.Plan) bool {
			left := len(need)
			seen := map[string]bool{}
			for _, f := range p.Faults {
				if key := f.Fault + " " + f.Server; need[key] && !seen[key] {
					seen[key], left = true, left-1
				}
			}
			return left == 0 && len(p.Load) >= streams
		}
		twice := map[string]bool{}
		asking := func(ctx context.Context, s scenario.Scenario) bool {
			if key := string(s.YAML()); twice[key] {
				t.Fatalf("asked twice:\n%s", key)
			} else {
				twice[key] = true
			}
			return planPredicate(t, fails)(ctx, s)
		}
		o := shrink.Options{Tries: rapid.IntRange(1, 400).Draw(t, "tries")}
		got, stats := shrink.Shrink(context.Background(), s, asking, o)
		if stats.From.Less(stats.To) {
			t.Errorf("larger: %+v", stats)
		}
		q, err := got.Plan(0, scenario.Sim)
		if err != nil || !fails(q) {
			t.Errorf("what is returned does not fail: %v", err)
		}
		if stats.Minimal && (len(q.Faults) != len(need) || len(q.Load) != streams) {
			t.Errorf("%d faults for %d, %d streams for %d\n%s", len(q.Faults), len(need), len(q.Load), streams, got.YAML())
		}
		second, _ := shrink.Shrink(context.Background(), s, planPredicate(t, fails), o)
		if !reflect.DeepEqual(got, second) {
			t.Errorf("two results:\n%s\n%s", got.YAML(), second.YAML())
		}
	})
}

func ExampleShrink() {
	s, err := scenario.Parse("bad.yaml", []byte(`
name: bad
duration: 10m
servers: [{name: web, count: 20}, {name: db}]
faults:
  - {fault: crash, on: "any:3", every: 1m}
  - {fault: stop, on: db, at: 90s, for: 45s}
load: [{tool: read}]
`))
	if err != nil {
		panic(err)
	}
	// Stands in for a run of the scenario: it fails as soon as the server db is stopped.
	fails := func(_ context.Context, s scenario.Scenario) bool {
		plan, err := s.Plan(0, scenario.Sim)
		for _, f := range plan.Faults {
			if f.Fault == "stop" {
				return err == nil
			}
		}
		return false
	}
	small, _ := shrink.Shrink(context.Background(), s, fails, shrink.Options{})
	fmt.Printf("%s", small.YAML())
	// Output:
	// name: bad
	// duration: 1s
	// servers:
	//   - name: db
	// faults:
	//   - fault: stop
	//     on: [db]
	//     for: 1ms
}
