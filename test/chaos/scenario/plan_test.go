package scenario_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// parse reads a scenario whose name and servers the test does not care for, unless it says its own.
func parse(t *testing.T, text string) scenario.Scenario {
	t.Helper()
	if !strings.Contains(text, "servers:") {
		text = "servers: [{name: web, count: 4}, {name: db}, {name: net, kind: http}]\n" + text
	}
	s, err := scenario.Parse("test.yaml", []byte("name: test\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func plan(t *testing.T, text string, seed uint64, tier scenario.Tier) scenario.Plan {
	t.Helper()
	p, err := parse(t, text).Plan(seed, tier)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func planText(p scenario.Plan) string {
	var out []string
	for _, f := range p.Faults {
		text := fmt.Sprintf("%v %s %s", f.Begin, f.Fault, f.Server)
		if f.End > f.Begin {
			text += fmt.Sprintf(" to %v", f.End)
		}
		out = append(out, strings.TrimSpace(text))
	}
	return strings.Join(out, " | ")
}

func TestWhatFaultsAreUnrolledTo(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"an instant on a group", "faults: [{fault: crash, on: web, at: 5s}]",
			"5s crash web-000 | 5s crash web-001 | 5s crash web-002 | 5s crash web-003"},
		{"an instant has no end, whatever is said", "faults: [{fault: crash, on: db, at: 5s, for: 1m}]", "5s crash db"},
		{"without for it lasts to the end of the duration", "duration: 1m\nfaults: [{fault: stop, on: db, at: 5s}]",
			"5s stop db to 1m0s"},
		{"and never longer", "duration: 1m\nfaults: [{fault: stop, on: db, at: 5s, for: 2m}]", "5s stop db to 1m0s"},
		{"every, until the end", "duration: 30s\nfaults: [{fault: crash, on: db, at: 5s, every: 10s}]",
			"5s crash db | 15s crash db | 25s crash db"},
		{"none at the very end", "duration: 25s\nfaults: [{fault: crash, on: db, at: 5s, every: 10s}]", "5s crash db | 15s crash db"},
		{"times bounds it", "duration: 30s\nfaults: [{fault: crash, on: db, every: 10s, times: 2}]", "0s crash db | 10s crash db"},
		{"a pattern", "faults: [{fault: crash, on: 'web-00[12]'}]", "0s crash web-001 | 0s crash web-002"},
		{"words are added", "faults: [{fault: crash, on: [db, web-003, db]}]", "0s crash db | 0s crash web-003"},
		{"the machine", "faults: [{fault: sleep, at: 5s, for: 10s}]", "5s sleep  to 15s"},
		{"faults of one time keep the order of the file", "faults: [{fault: stop, on: db, for: 1s}, {fault: crash, on: db}]",
			"0s stop db to 1s | 0s crash db"},
		{"of those that a pattern picks, those that it can befall", "faults: [{fault: reset}]", "0s reset net"},
		{"any picks of those", "faults: [{fault: reset, on: [db, any:1, '*']}]", "0s reset net"},
		{"a partition is of servers", "faults: [{fault: partition, for: 1s}]", "0s partition net to 1s"},
		{"sorted by time", "faults: [{fault: crash, on: db, at: 2s}, {fault: crash, on: web-000, at: 1s}]",
			"1s crash web-000 | 2s crash db"},
	} {
		if got := planText(plan(t, c.text, 1, scenario.Sim)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// The parameters of an occurrence are complete, and its own.
func TestParametersAreFilledIn(t *testing.T) {
	p := plan(t, "faults: [{fault: crash-loop, on: web, with: {after: 300ms}}, {fault: lose-session}]", 0, scenario.Sim)
	want := map[string]string{"after": "300ms", "code": "1"}
	for _, f := range p.Faults {
		if f.Fault == "crash-loop" && !reflect.DeepEqual(f.With, want) || f.Fault == "lose-session" && f.With != nil {
			t.Errorf("%s %v", f.Fault, f.With)
		}
	}
	p.Faults[1].With["after"] = "1h"
	if !reflect.DeepEqual(p.Faults[2].With, want) || len(p.Scenario.Faults[0].With) != 1 {
		t.Errorf("two occurrences share their parameters: %v %v", p.Faults[2].With, p.Scenario.Faults[0].With)
	}
}

func TestIDsCountFromOne(t *testing.T) {
	p := plan(t, "faults: [{fault: crash}]\ncommands: [{do: disable, at: 1s}, {do: configure, at: 500ms}]", 1, scenario.Sim)
	for i, f := range p.Faults {
		if f.ID != i+1 {
			t.Errorf("fault %d has the id %d", i, f.ID)
		}
	}
	for i, c := range p.Commands {
		if c.ID != i+1 {
			t.Errorf("command %d has the id %d", i, c.ID)
		}
	}
	if c := p.Commands[0]; c.Do != "configure" || c.Server != "" || len(p.Commands) != 7 {
		t.Errorf("%d commands, the first is %+v", len(p.Commands), c)
	}
}

func TestAnySpreadAndSeeds(t *testing.T) {
	const text = "duration: 100s\nfaults: [{fault: crash, on: [web, any:2], every: 10s, spread: 5s}]"
	s := parse(t, text)
	one, err := s.Plan(7, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := s.Plan(7, scenario.Sim)
	if !reflect.DeepEqual(one, second) {
		t.Error("one seed has two plans")
	}
	other, _ := s.Plan(8, scenario.Sim)
	if planText(one) == planText(other) {
		t.Error("two seeds have one plan")
	}
	if len(one.Faults) != 20 {
		t.Fatalf("%d faults: %s", len(one.Faults), planText(one))
	}
	pairs := map[string]bool{}
	for i := range 10 { // the spread of 5 s keeps occurrences of 10 s apart
		a, b := one.Faults[2*i], one.Faults[2*i+1]
		from := time.Duration(i) * 10 * time.Second
		if a.Server == b.Server || a.Begin < from || b.Begin >= from+5*time.Second || a.Begin == b.Begin {
			t.Errorf("occurrence %d: %v %s and %v %s", i, a.Begin, a.Server, b.Begin, b.Server)
		}
		both := []string{a.Server, b.Server}
		slices.Sort(both)
		pairs[strings.Join(both, " ")] = true
	}
	if len(pairs) < 2 {
		t.Errorf("each occurrence picks anew, and all picked %v", pairs)
	}
}

func TestTheSeed(t *testing.T) {
	for _, c := range []struct {
		text string
		seed uint64
		want uint64
	}{{"", 0, 1}, {"seed: 5", 0, 5}, {"seed: 5", 9, 9}} {
		if p := plan(t, c.text, c.seed, scenario.Sim); p.Seed != c.want {
			t.Errorf("%q with %d: %d, want %d", c.text, c.seed, p.Seed, c.want)
		}
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	p := plan(t, "servers: [{name: a}]\nload: [{}]", 0, scenario.Sim)
	want := scenario.Server{
		Name: "a", Group: "a", Kind: messages.Stdio, Era: messages.EraLegacy, Tools: 3, Pages: 1, Start: 20 * time.Millisecond,
		Latency: 2 * time.Millisecond, Connect: messages.Eager, ConnectTimeout: 30 * time.Second, CallTimeout: time.Minute,
	}
	if !reflect.DeepEqual(p.Servers[0], want) {
		t.Errorf("%+v", p.Servers[0])
	}
	if p.Policy != restart.DefaultPolicy() || p.Limits != restart.DefaultLimits(2) {
		t.Errorf("%+v %+v", p.Policy, p.Limits)
	}
	if p.Heal != 10*time.Minute || p.End != 10*time.Minute+95*time.Second {
		t.Errorf("healed at %v, over at %v", p.Heal, p.End)
	}
	if p.WithdrawAfter != 5*time.Second || p.ProbeEvery != 15*time.Second || p.ProbeTimeout != 10*time.Second ||
		p.ProbeStrikes != 3 || p.Quiet != 50*time.Millisecond || p.MaxWait != time.Second {
		t.Errorf("%+v", p)
	}
	if want := (scenario.PlannedLoad{Server: "a", Tool: "write", Rate: 1, End: p.End}); p.Load[0] != want {
		t.Errorf("%+v", p.Load[0])
	}
	crashed := plan(t, "faults: [{fault: crash, with: {down: 40s}, at: 9m50s}]", 0, scenario.Sim)
	if down := crashed.Faults[0].With["down"]; down != "10s" {
		t.Errorf("a server is down for %s after its crash, beyond the end of all faults", down)
	}
	if p := plan(t, "", 0, scenario.Real); p.Heal != 20*time.Second {
		t.Errorf("real: healed at %v", p.Heal)
	}
}

// The bound of I11: the longest wait, the connect timeout times the turns at the gate, and 5 s.
func TestHowLongTheHealedWorldIsGiven(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       time.Duration
	}{
		{"nothing breaks", "servers: [{name: a}]", 60*time.Second + 30*time.Second + 5*time.Second},
		{"turns", "servers: [{name: a, count: 17, connectTimeout: 10s}]", 60*time.Second + 3*10*time.Second + 5*time.Second},
		{"a narrower gate", "servers: [{name: a, count: 17, connectTimeout: 10s}]\nmanager: {gate: 2}",
			60*time.Second + 9*10*time.Second + 5*time.Second},
		{"five crashes do not park", "servers: [{name: a}]\nfaults: [{fault: crash, every: 1s, times: 5}]", 95 * time.Second},
		{"six may", "servers: [{name: a}]\nfaults: [{fault: crash, every: 1s, times: 6}]", 330*time.Second + 35*time.Second},
		{"what lasts may", "servers: [{name: a}]\nfaults: [{fault: stop, for: 5s}]", 330*time.Second + 35*time.Second},
		{"a dead connection must be noticed first", "servers: [{name: a, kind: http}]\nfaults: [{fault: half-open, for: 5s}]",
			330*time.Second + 35*time.Second + 45*time.Second},
		{"said", "servers: [{name: a}]\nsettle: 7s", 7 * time.Second},
	} {
		p := plan(t, c.text, 0, scenario.Sim)
		if got := p.End - p.Heal; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nobody", "faults: [{fault: crash, on: wbe}]", `faults[0].on[0]: there is no server "wbe"; did you mean "web"?`},
		{"too few", "commands: [{do: enable, on: [web, any:9]}]",
			`commands[0].on: 9 servers are to be picked, and there are 4 that it can happen to`},
		{"too many", "duration: 24h\nfaults: [{fault: crash, every: 10ms}]",
			`faults[0]: these are more than 200000 occurrences; say a longer every:, or times:, or fewer servers`},
		{"too many on all", "duration: 24h\nfaults: [{fault: crash, every: 1s}]",
			`faults[0]: these are more than 200000 faults; say a longer every:, or times:, or fewer servers`},
		{"after the end", "faults: [{fault: crash, at: 20m}]",
			`faults[0].at: it begins at 20m, after everything has ended at 10m; let it begin before, or say a longer duration`},
		{"not here", "tiers: [real]", `tiers: the scenario "test" is not for the tier "sim"; run it in real`},
		{"too much", "load: [{rate: 10000}]",
			`load: 41700000 calls are more than 5000000; lower the rate, or name fewer servers, or say for: how long`},
		{"a fault of another kind", "faults: [{fault: stop, on: [db, mem]}]\nservers: [{name: db}, {name: mem, kind: sdk}]",
			`faults[0].on: the fault "stop" cannot befall the server "mem", which is sdk and legacy: it is for stdio, http, sse, ` +
				`websocket, legacy, modern`},
		{"a fault of another era", "faults: [{fault: modern-breach, on: db}]",
			`faults[0].on: the fault "modern-breach" cannot befall the server "db", which is stdio and legacy: it is for stdio, http, ` +
				`websocket, sdk, modern`},
		{"a fault of no server", "faults: [{fault: modern-breach}]",
			`faults[0].on: it can happen to none of the servers that are picked: the fault "modern-breach" cannot befall the server ` +
				`"web-003", which is stdio and legacy: it is for stdio, http, websocket, sdk, modern`},
		{"a fault of the other tier", "faults: [{fault: grandchild}]",
			`faults[0].fault: the fault "grandchild" cannot be done in the tier sim; say tiers: [real], or leave it out`},
		{"a tool that is not there", "load: [{tool: tool-4, on: db}]", `load[0].on: the server "db" has 3 tools and no tool-4`},
	} {
		p, err := parse(t, c.text).Plan(0, scenario.Sim)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
		if !reflect.DeepEqual(p, scenario.Plan{}) {
			t.Errorf("%s: a plan beside the error", c.name)
		}
	}
	if _, err := parse(t, "").Plan(0, "dream"); err == nil {
		t.Error("there is no such tier")
	}
}
