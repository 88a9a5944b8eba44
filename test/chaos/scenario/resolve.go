package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

const (
	// maxPlanned bounds the faults, and the commands, of one plan, so that a short interval in a long scenario does not
	// exhaust the memory.
	maxPlanned = 200_000
	// maxCalls bounds the calls that a plan is expected to make.
	maxCalls = 5_000_000
)

// Plan resolves the scenario with a seed for a tier; seed 0 means s.Seed, and 1 if that is 0. It is pure: equal
// arguments give equal plans on every machine. Every default is filled in: those of the servers and of the load as the
// types name them, those of the manager from restart.DefaultPolicy, and restart.DefaultLimits with a gate of 8.
//
// "any:N" picks anew at each occurrence of a fault or a command. Servers that the selector names, by a group's or their
// own name, must be able to have the fault; of those that a pattern or "any:N" picks, only the suitable ones are taken.
// The order of events at one instant is that of the scenario, then that of the servers' names.
//
// Heal is at the end of Duration, and longer faults end there. The error is Problems.
func (s Scenario) Plan(seed uint64, tier Tier) (Plan, error) {
	if err := s.Check(); err != nil {
		return Plan{}, err
	}
	r := &resolver{s: s, p: Plan{Scenario: s, Seed: cmp.Or(seed, s.Seed, 1), Tier: tier}}
	r.resolveTier()
	// In a wrong tier every fault would be reported as impossible, which says nothing new.
	if err := r.list.asError(); err != nil {
		return Plan{}, err
	}
	r.resolveManager()
	r.resolveServers()
	r.resolveFaults()
	r.resolveCommands()
	r.p.End = r.p.Heal + durationOr(s.Settle, r.p.settleTime())
	r.resolveLoad()
	r.resolveAgents()
	if err := r.list.asError(); err != nil {
		return Plan{}, err
	}
	return r.p, nil
}

// resolver fills in one plan, step by step in the order of the calls in Plan.
type resolver struct {
	s Scenario
	p Plan
	findings
}

// resolveTier checks the tier and sets Heal, on which all times depend.
func (r *resolver) resolveTier() {
	standard := simDuration
	switch r.p.Tier {
	case Sim:
	case Real:
		standard = realDuration
	default:
		r.addProblem("tiers", suggestWord(string(r.p.Tier), toStrings(Tiers)), "there is no tier %s", quoteWord(string(r.p.Tier)))
	}
	if len(r.s.Tiers) > 0 && !slices.Contains(r.s.Tiers, r.p.Tier) {
		r.addProblem("tiers", fmt.Sprintf("run it in %s", strings.Join(toStrings(r.s.Tiers), " or ")),
			"the scenario %s is not for the tier %s", quoteWord(r.s.Name), quoteWord(string(r.p.Tier)))
	}
	r.p.Heal = durationOr(r.s.Duration, standard)
}

// resolveManager fills in the numbers of the manager, with the defaults for those that the scenario leaves out.
func (r *resolver) resolveManager() {
	m := r.s.Manager
	r.p.Policy, r.p.Limits = m.restartPolicy(), m.gateLimits()
	r.p.WithdrawAfter, r.p.CallWait = durationOr(m.WithdrawAfter, defaultWithdraw), time.Duration(m.CallWait)
	r.p.ProbeEvery, r.p.ProbeTimeout, r.p.ProbeStrikes = durationOr(m.ProbeEvery, defaultProbeEvery), defaultProbeTimeout, defaultStrikes
	r.p.Quiet, r.p.MaxWait = defaultQuiet, defaultMaxWait
}

// resolveServers makes the servers of all groups, sorted by name: the random choices below draw indexes in this order.
func (r *resolver) resolveServers() {
	for _, g := range r.s.Servers {
		r.p.Servers = append(r.p.Servers, g.planServers()...)
	}
	slices.SortFunc(r.p.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
}

// resolveFaults plans each occurrence of each fault on each of its servers.
func (r *resolver) resolveFaults() {
	for i, f := range r.s.Faults {
		path := fmt.Sprintf("faults[%d]", i)
		// Check has found the kind before.
		kind, _ := faults.Lookup(f.Fault)
		if tiers := TiersOf(kind); !slices.Contains(tiers, r.p.Tier) {
			r.addProblem(path+".fault", "say tiers: ["+strings.Join(toStrings(tiers), ", ")+"], or leave it out",
				"the fault %q cannot be done in the tier %s", f.Fault, r.p.Tier)
			continue
		}
		pick := picker(noServer)
		if !wholeMachine(kind) {
			var ok bool
			if pick, ok = r.resolvePicker(path, f.On, func(s Server) error { return refusalError(kind, s) }); !ok {
				continue
			}
		}
		starts, ok := r.startTimes(path, f.At, f.Every, f.Times)
		if !ok {
			continue
		}
		for n, at := range starts {
			for _, server := range pick(n) {
				begin := at + randomDelay(f.Spread, r.p.Seed, path, n, server)
				end := begin
				if !kind.Instant.Has(faults.Sim) {
					end = min(begin+durationOr(f.For, r.p.Heal), r.p.Heal)
				}
				if begin > r.p.Heal || begin == r.p.Heal && !kind.Instant.Has(faults.Sim) {
					// The random delay has moved the fault behind the end.
					continue
				}
				r.p.Faults = append(r.p.Faults, PlannedFault{
					Fault: f.Fault, With: capDownTime(withDefaults(kind, f.With), r.p.Heal-begin), Server: server, Begin: begin, End: end,
				})
			}
			if !r.withinLimit(path, len(r.p.Faults), "faults") {
				return
			}
		}
	}
	// The ids follow the order of time, so that a history reads in the order of its numbers.
	slices.SortStableFunc(r.p.Faults, func(a, b PlannedFault) int { return cmp.Compare(a.Begin, b.Begin) })
	for i := range r.p.Faults {
		r.p.Faults[i].ID = i + 1
	}
}

// capDownTime shortens the time for which a crashed server cannot be opened to the rest of the time until Heal, because
// every fault must have ended then.
func capDownTime(with map[string]string, remaining time.Duration) map[string]string {
	if down, err := time.ParseDuration(with["down"]); err == nil && down > remaining {
		with["down"] = remaining.String()
	}
	return with
}

// resolveCommands plans each occurrence of each command. A configure with servers keeps these and removes the others.
func (r *resolver) resolveCommands() {
	for i, c := range r.s.Commands {
		path := fmt.Sprintf("commands[%d]", i)
		pick := picker(noServer)
		partial := c.Do == "configure" && len(c.On) > 0
		if !wholeManager(c.Do) || partial {
			var ok bool
			if pick, ok = r.resolvePicker(path, c.On, func(Server) error { return nil }); !ok {
				continue
			}
		}
		starts, ok := r.startTimes(path, c.At, c.Every, c.Times)
		if !ok {
			continue
		}
		for n, at := range starts {
			if partial {
				if at := at + randomDelay(c.Spread, r.p.Seed, path, n, ""); at <= r.p.Heal {
					r.p.Commands = append(r.p.Commands, PlannedCommand{Do: c.Do, Only: pick(n), At: at})
				}
				continue
			}
			for _, server := range pick(n) {
				if at := at + randomDelay(c.Spread, r.p.Seed, path, n, server); at <= r.p.Heal {
					r.p.Commands = append(r.p.Commands, PlannedCommand{Do: c.Do, Server: server, At: at, With: c.With})
				}
			}
			if !r.withinLimit(path, len(r.p.Commands), "commands") {
				return
			}
		}
	}
	slices.SortStableFunc(r.p.Commands, func(a, b PlannedCommand) int { return cmp.Compare(a.At, b.At) })
	for i := range r.p.Commands {
		r.p.Commands[i].ID = i + 1
	}
}

// resolveLoad plans the calls to each server and bounds their expected number.
func (r *resolver) resolveLoad() {
	calls := 0.0
	for i, l := range r.s.Load {
		path := fmt.Sprintf("load[%d]", i)
		begin, end := time.Duration(l.From), r.p.End
		if l.For > 0 {
			end = min(end, begin+time.Duration(l.For))
		}
		if begin >= end {
			r.addProblem(path+".from", "let it begin before", "it begins at %s, and the run ends at %s", shortDuration(l.From), shortDuration(messages.Duration(end)))
			continue
		}
		tool := cmp.Or(l.Tool, WriteTool)
		pick, ok := r.resolvePicker(path, l.On, func(s Server) error { return missingToolError(s, tool) })
		if !ok {
			continue
		}
		// The rate is that of each server by itself.
		rate := cmp.Or(l.Rate, defaultRate)
		for _, server := range pick(0) {
			calls += rate * (end - begin).Seconds()
			r.p.Load = append(r.p.Load, PlannedLoad{
				Server: server, Tool: tool, Read: l.Read, Rate: rate, Timeout: time.Duration(l.Timeout), Size: l.Size, Callers: l.Callers,
				Task: l.Task, Cancel: l.Cancel, Begin: begin, End: end, Together: l.Together,
			})
		}
	}
	if calls > maxCalls {
		r.addProblem("load", "lower the rate, or name fewer servers, or say for: how long", "%.0f calls are more than %d", calls, maxCalls)
	}
}

// missingToolError says that a server has no such tool; nil if it has.
func missingToolError(s Server, tool string) error {
	var n int
	if _, err := fmt.Sscanf(tool, "tool-%d", &n); err == nil && n > s.Tools {
		return fmt.Errorf("the server %s has %d tools and no %s", quoteWord(s.Name), s.Tools, tool)
	}
	return nil
}

// picker returns the names of the servers that the n-th occurrence of an entry concerns.
type picker func(n int) []string

// resolvePicker resolves a selector; refuse says why a server is unsuitable. Problems go to the findings, and false is
// returned.
func (r *resolver) resolvePicker(path string, s Selector, refuse func(Server) error) (picker, bool) {
	c, unmatched := s.resolveChoice(r.p.Servers)
	if unmatched >= 0 {
		var known []string
		for _, g := range r.s.Servers {
			known = append(known, g.Name)
		}
		r.addProblem(fmt.Sprintf("%s.on[%d]", path, unmatched), suggestWord(s[unmatched], known), "there is no server %s", quoteWord(s[unmatched]))
		return nil, false
	}
	can, err := c.candidates(r.p.Servers, refuse)
	if err != nil {
		r.addProblem(path+".on", "", "%v", err)
		return nil, false
	}
	names := func(places []int) []string {
		out := make([]string, len(places))
		for i, at := range places {
			out[i] = r.p.Servers[at].Name
		}
		return out
	}
	if c.count == 0 {
		all := names(can)
		return func(int) []string { return all }, true
	}
	return func(n int) []string {
		return names(drawServers(can, c.count, Rand(r.p.Seed, fmt.Sprintf("%s any %d", path, n))))
	}, true
}

// noServer picks the empty name, for an entry that concerns no single server.
func noServer(int) []string { return []string{""} }

// startTimes returns the times at which an entry occurs, before the random delay of each server.
func (r *resolver) startTimes(path string, at, every messages.Duration, times int) ([]time.Duration, bool) {
	if time.Duration(at) > r.p.Heal {
		r.addProblem(path+".at", "let it begin before, or say a longer duration", "it begins at %s, after everything has ended at %s",
			shortDuration(at), shortDuration(messages.Duration(r.p.Heal)))
		return nil, false
	}
	if every == 0 {
		return []time.Duration{time.Duration(at)}, true
	}
	n := int((r.p.Heal-time.Duration(at)-1)/time.Duration(every)) + 1
	if times > 0 {
		n = min(n, times)
	}
	n = max(n, 1)
	if !r.withinLimit(path, n, "occurrences") {
		return nil, false
	}
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = time.Duration(at) + time.Duration(i)*time.Duration(every)
	}
	return out, true
}

// withinLimit reports whether n entries may be planned, and adds a problem if they are too many. It is asked before they are made.
func (r *resolver) withinLimit(path string, n int, what string) bool {
	if n <= maxPlanned {
		return true
	}
	r.addProblem(path, "say a longer every:, or times:, or fewer servers", "these are more than %d %s", maxPlanned, what)
	return false
}

// randomDelay returns a delay below most for one server and occurrence. It comes from a source of its own, so that
// another entry of the scenario does not change it.
func randomDelay(most messages.Duration, seed uint64, path string, n int, server string) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(Rand(seed, fmt.Sprintf("%s spread %d %s", path, n, server)).Int64N(int64(most)))
}
