package live_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// quickParams are parameters with which a fault has its effect within the few seconds of a test.
var quickParams = map[string]map[string]string{
	"huge-line":       {"size": "17000000"}, // more than the limit
	"big-result":      {"size": "1000000"},
	"stderr-flood":    {"bytes": "1000000"},
	"cut-stream":      {"every": "500ms"},
	"throttle":        {"after": "1s"},
	"slow-start":      {"by": "1s"},
	"late-response":   {"by": "500ms"},
	"latency":         {"by": "50ms"},
	"exit-after-list": {"after": "100ms"},
	"leak-canary":     {"errors": "0.7"}, // a few calls may be all that a busy machine makes
}

// openingFaults are the faults of the opening and the handshake: they need a connection that is made while they last. So is a
// list for those of the list. The server is reconnected then, as its owner would.
var openingFaults = []string{
	"hang-start", "slow-start", "missing-binary", "exit-after-list", "refuse", "throttle",
	"grandchild", "exhausted", "crash-loop", "era-flip", "wrong-version", "cursor-loop", "empty-cursor", "duplicate-names", "long-names", "bad-schema",
	"change-during-list", "control-characters", "black-hole", "ignore-eof", "ignore-term", "silent-delete", "redirect",
	"list-error", "unauthorized", "forbidden", "server-error", "wrong-content-type", "slow-drip", "truncate", "modern-breach", "stale-session-400",
}

// firstFaults are the faults of the very first question to a server, which is not asked again.
var firstFaults = []string{"silent-discover", "die-on-discover"}

// finalFaults are the faults after which the owner must act: the manager tries nothing again by itself.
var finalFaults = []string{"unauthorized", "wrong-version", "era-flip", "missing-binary"}

// heavyFaults are the faults that cost so much that they are not called for often.
var heavyFaults = []string{"huge-line", "endless-line", "big-result"}

// The times of a day on which things break, in seconds: when they begin, which is when everything is connected, on a busy
// machine too.
const (
	manyServers = 7
	fewServers  = 2
)

// soloFaults are the faults that befall the whole process that runs the test, so that they need a run of their own.
var soloFaults = []string{"exhausted"}

func seconds(n float64) messages.Duration { return messages.Duration(n * float64(time.Second)) }

// serverGroups hold the servers of each such day.
func serverGroups(pace float64) (all []scenario.Group) {
	for _, kind := range []messages.TransportKind{messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket} {
		for _, era := range []messages.Era{messages.EraLegacy, messages.EraModern} {
			if kind == messages.SSE && era == messages.EraModern {
				continue // that transport is older than the era
			}
			all = append(all, scenario.Group{Name: fmt.Sprintf("%s-%s", kind, era), Kind: kind, Era: era, ConnectTimeout: seconds(6 * pace)})
		}
	}
	return all
}

// pairOfGroups are two of the kinds of servers that a fault can befall, another pair for each fault: every fault is tried, and every
// kind of server with many of them, without more processes than a small machine can bear.
func pairOfGroups(k faults.Kind, n int, pace float64) []scenario.Group {
	all := slices.DeleteFunc(serverGroups(pace), func(g scenario.Group) bool { return !k.Applies(g.Kind, g.Era) })
	if len(all) < 2 {
		return all
	}
	first := n % len(all)
	return []scenario.Group{all[first], all[(first+1+n%(len(all)-1))%len(all)]}
}

// paces are how many times slower than on a quiet machine a day goes.
var paces = []float64{1, 3, 9}

// everyFault is a scenario in which each of the faults befalls two servers that it can befall.
func everyFault(begin, pace float64, choose func(faults.Kind) bool) scenario.Scenario {
	at := func(n float64) messages.Duration { return seconds(pace * n) }
	s := scenario.Scenario{
		Name: "every-fault", Duration: at(begin + 7), Settle: at(25),
		Manager: scenario.Manager{Gate: 16, Cap: seconds(2), Probe: at(3), ProbeEvery: at(1)},
	}
	for n, k := range faults.Kinds() {
		if !k.Where.Has(faults.Real) || !choose(k) {
			continue
		}
		rate := 2.0
		if slices.Contains(heavyFaults, k.Name) {
			rate = 0.7
		}
		for _, g := range pairOfGroups(k, n, pace) {
			g.Name = k.Name + "-" + g.Name
			timeout := at(3)
			if k.Name == "ignore-cancel" { // which takes calls that are given up
				g.Latency, timeout = at(0.3), at(0.1)
			}
			s.Servers = append(s.Servers, g)
			s.Load = append(s.Load, scenario.Load{On: scenario.Selector{g.Name}, Rate: rate / pace, Timeout: timeout})
			if k.WholeMachine {
				continue
			}
			fault := scenario.Fault{Fault: k.Name, With: quickParams[k.Name], On: scenario.Selector{g.Name}, At: at(begin), For: at(5)}
			if slices.Contains(firstFaults, k.Name) {
				fault.At, fault.For = 0, at(begin)
			}
			if k.Name == "forbidden" && g.Kind == messages.WebSocket { // where only the handshake is HTTP
				fault.With = map[string]string{"when": "handshake"}
			}
			s.Faults = append(s.Faults, fault)
			if slices.Contains(finalFaults, k.Name) {
				s.Commands = append(s.Commands, scenario.Command{Do: "reconnect", On: scenario.Selector{g.Name}, At: at(begin + 6)})
			}
			if slices.Contains(openingFaults, k.Name) {
				s.Commands = append(s.Commands, scenario.Command{Do: "reconnect", On: scenario.Selector{g.Name}, At: at(begin + 0.2), Spread: at(2)})
			}
		}
		if k.WholeMachine {
			s.Faults = append(s.Faults, scenario.Fault{Fault: k.Name, At: at(begin), For: at(4)})
		}
	}
	return s
}

// TestEveryFault makes each fault of the catalogue happen once to real processes and sockets. A day for which the machine was too slow is
// played again at another pace: a fault that has no effect for another reason has none at any, and what the manager does wrong because
// of a fault it does wrong at each.
func TestEveryFault(t *testing.T) {
	seeds.Shows(t, "004.nfr2.proven")
	check := func(name string, begin float64, choose func(faults.Kind) bool) {
		t.Run(name, func(t *testing.T) {
			for i, pace := range paces {
				h := run(t, everyFault(begin, pace, choose))
				problems := append(missing(h), listViolations(h)...)
				if len(problems) == 0 {
					return
				}
				report := t.Logf
				if i+1 == len(paces) {
					report = t.Errorf
				}
				report("at pace %v: %s", pace, strings.Join(problems, "\n"))
			}
		})
	}
	check("of one server", manyServers, func(k faults.Kind) bool {
		return !k.WholeMachine && !slices.Contains(soloFaults, k.Name) && !slices.Contains(heavyFaults, k.Name)
	})
	check("heavy", fewServers, func(k faults.Kind) bool { return slices.Contains(heavyFaults, k.Name) }) // they would take the processors from all others
	check("of the machine", fewServers, func(k faults.Kind) bool { return k.WholeMachine })
	for _, name := range soloFaults {
		check(name, fewServers, func(k faults.Kind) bool { return k.Name == name })
	}
}

// missing returns what has not come to its end in a day: a fault that had no effect, a server that is not connected again.
func missing(h *history.History) (all []string) {
	fired, at := map[int]bool{}, map[string]history.Event{}
	for _, e := range h.Events {
		switch e.Kind {
		case history.Fired:
			fired[e.Fault] = true
		case history.Status:
			at[e.Server] = e
		default:
		}
	}
	for _, f := range h.Plan.Faults {
		if !fired[f.ID] {
			all = append(all, fmt.Sprintf("%s had no effect on %q", f.Fault, f.Server))
		}
	}
	for _, s := range h.Plan.Servers {
		if e := at[s.Name]; e.Phase != messages.Connected {
			all = append(all, fmt.Sprintf("%s is %s %s at the end: %s", s.Name, e.Phase, e.Class, e.Text))
		}
	}
	return all
}

// listViolations returns the invariants that a day violates, each with its evidence.
func listViolations(h *history.History) (all []string) {
	for _, v := range invariant.Judge(h) {
		if v.Answer == invariant.Violated {
			text := fmt.Sprintf("%s (%s), server %q at %s: %s", v.ID, v.Title, v.Server, v.At, v.Why)
			for _, i := range v.Evidence {
				text += fmt.Sprintf("\n  %+v", h.Events[i])
			}
			all = append(all, text)
		}
	}
	return all
}
