package invariant_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Histories are told as stories: one event a line, "time server kind key=value …", the manager and the machine being "-".
// The keys are the fields of history.Event in lower case; a snapshot's entries are "s1:live:epoch:count:hash:tools:parts" separated by
// commas, with a slash for the colon in parts; in a text "_" is a space. "#" begins a remark.
//
//	1s    s1 open conn=1
//	1.02s s1 opened conn=1
//	1.5s  -  snapshot generation=1 entries=s1:live:2:3:abc

var sides = map[history.Kind]history.Side{
	history.Phase: history.Manager, history.Snapshot: history.Manager, history.Removed: history.Manager, history.Auth: history.Manager,
	history.Log: history.Manager, history.Updated: history.Manager, history.Reading: history.Caller, history.ReadEnd: history.Caller,
	history.Call: history.Caller, history.End: history.Caller, history.GivenUp: history.Caller, history.Command: history.Owner,
	history.Done: history.Owner, history.FaultOn: history.Harness, history.FaultOff: history.Harness, history.Fired: history.Harness,
	history.Heal: history.Harness, history.Closing: history.Harness, history.Closed: history.Harness, history.Resources: history.Harness,
	history.Violation: history.Harness, history.Canary: history.Harness, history.Status: history.Harness,
	history.Joined: history.Agent, history.Parted: history.Agent, history.Asked: history.Agent, history.Replied: history.Agent,
	history.Noticed: history.Agent, history.Questioned: history.Agent, history.Consulted: history.Agent, history.Advised: history.Agent, history.Ended: history.Agent, history.Tasked: history.Agent, history.Retimed: history.Agent, history.StreamCut: history.Agent, history.StreamBack: history.Agent,
}

// parseEvents reads a story.
func parseEvents(t testing.TB, story string) []history.Event {
	t.Helper()
	var out []history.Event
	for n, line := range strings.Split(story, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 3 {
			t.Fatalf("line %d of the story: %q", n+1, line)
		}
		at, err := time.ParseDuration(words[0])
		if err != nil {
			t.Fatalf("line %d of the story: %v", n+1, err)
		}
		e := history.Event{T: at, Server: words[1], Kind: history.Kind(words[2]), Order: len(out) + 1}
		if e.Server == "-" {
			e.Server = ""
		}
		if e.Side = sides[e.Kind]; e.Side == "" {
			e.Side = history.World
		}
		for _, pair := range words[3:] {
			key, value, _ := strings.Cut(pair, "=")
			if err := setField(&e, key, value); err != nil {
				t.Fatalf("line %d of the story: %v", n+1, err)
			}
		}
		out = append(out, e)
	}
	return out
}

func setField(e *history.Event, key, value string) error {
	switch key {
	case "entries":
		for _, one := range strings.Split(value, ",") {
			p := strings.Split(one+"::::::", ":")
			epoch, _ := strconv.ParseUint(p[2], 10, 64)
			count, _ := strconv.Atoi(p[3])
			e.Entries = append(e.Entries, history.Entries{Server: p[0], State: p[1], Epoch: epoch, Count: count, Hash: p[4],
				Tools: strings.ReplaceAll(p[5], "+", ","), Parts: strings.ReplaceAll(p[6], "/", ":")})
		}
		return nil
	case "names":
		e.Names = strings.Split(value, ",")
		return nil
	case "house":
		p := strings.Split(value+",0,0,0,0", ",")
		e.House = &history.ResourceUsage{}
		lag, _ := strconv.Atoi(p[3])
		e.House.Lag = time.Duration(lag) * time.Millisecond
		e.House.Processes, _ = strconv.Atoi(p[0])
		e.House.Descriptors, _ = strconv.Atoi(p[1])
		e.House.Goroutines, _ = strconv.Atoi(p[2])
		return nil
	}
	v := reflect.ValueOf(e).Elem().FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
	if !v.IsValid() {
		return fmt.Errorf("no event has a field %q", key)
	}
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(value)
		v.SetInt(int64(d))
		return err
	case v.Kind() == reflect.String:
		if strings.EqualFold(key, "text") {
			value = strings.ReplaceAll(value, "_", " ")
		}
		v.SetString(value)
	case v.Kind() == reflect.Bool:
		v.SetBool(value == "true")
	case v.Kind() == reflect.Uint64:
		n, err := strconv.ParseUint(value, 10, 64)
		v.SetUint(n)
		return err
	case v.Kind() == reflect.Int:
		n, err := strconv.Atoi(value)
		v.SetInt(int64(n))
		return err
	}
	return nil
}

// simPlan is that of a simulation with default policy and these servers: "s1" or "s1 kind=http trusted=true".
func simPlan(t testing.TB, servers ...string) scenario.Plan {
	t.Helper()
	p := scenario.Plan{
		Tier: scenario.Sim, Policy: restart.DefaultPolicy(), Limits: restart.DefaultLimits(2), WithdrawAfter: 5 * time.Second,
		ProbeEvery: 15 * time.Second, ProbeTimeout: 10 * time.Second, ProbeStrikes: 3, Quiet: 50 * time.Millisecond, MaxWait: time.Second,
	}
	for _, text := range servers {
		words := strings.Fields(text)
		s := scenario.Server{
			Name: words[0], Kind: messages.Stdio, Era: messages.EraLegacy, Tools: 3, Pages: 1, ConnectTimeout: 30 * time.Second,
			CallTimeout: time.Minute, Connect: messages.Eager,
		}
		for _, w := range words[1:] {
			switch key, value, _ := strings.Cut(w, "="); key {
			case "kind":
				s.Kind = messages.TransportKind(value)
			case "era":
				s.Era = messages.Era(value)
			case "trusted":
				s.Trusted = true
			case "disabled":
				s.Disabled = true
			case "connect":
				s.Connect = messages.Connect(value)
			case "timeout":
				d, err := time.ParseDuration(value)
				if err != nil {
					t.Fatal(err)
				}
				s.CallTimeout = d
			default:
				t.Fatalf("a server has no %q", key)
			}
		}
		p.Servers = append(p.Servers, s)
	}
	return p
}

// storyCase is one story and what a check must say of it.
type storyCase struct {
	name    string
	servers []string // s1 if empty
	plan    func(*scenario.Plan)
	story   string
	want    invariant.Answer
	// why must stand in the verdict's reason.
	why string
}

// runCases judges stories by one check.
func runCases(t *testing.T, id string, trials []storyCase) {
	t.Helper()
	check, ok := invariant.Find(id)
	if !ok {
		t.Fatalf("there is no check %s", id)
	}
	seen := map[invariant.Answer]bool{}
	for _, c := range trials {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			if len(c.servers) == 0 {
				c.servers = []string{"s1"}
			}
			h := &history.History{Plan: simPlan(t, c.servers...), Events: parseEvents(t, c.story)}
			if c.plan != nil {
				c.plan(&h.Plan)
			}
			v := check.Judge(h)
			seen[v.Answer] = true
			if v.ID != id || v.Answer != c.want || !strings.Contains(v.Why, c.why) {
				t.Errorf("%s: %s, want %s and %q\n%+v", v.Answer, v.Why, c.want, c.why, v)
			}
			if v.Answer == invariant.Violated {
				if len(v.Evidence) == 0 {
					t.Error("a violation without evidence")
				}
				if !strings.Contains(v.Why, v.At.Round(time.Millisecond).String()) && v.At > 0 {
					t.Errorf("the text does not say when it was violated, at %s: %s", v.At, v.Why)
				}
				if v.Looked == 0 {
					t.Error("a violation where nothing was looked at")
				}
			}
			if v.Answer != invariant.Holds && v.Why == "" {
				t.Error("no reason")
			}
		})
	}
	if answers := []invariant.Answer{invariant.Holds, invariant.Violated, invariant.Inconclusive}; !slices.ContainsFunc(trials,
		func(c storyCase) bool { return c.want == invariant.Violated }) || len(seen) < len(answers) {
		t.Errorf("%s: every check has a story that holds, one that is violated and one that says nothing; seen are %v", id, seen)
	}
}
