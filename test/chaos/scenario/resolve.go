package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/faults"
)

const (
	// maxPlanned bounds the faults, and the commands, of one plan.
	maxPlanned = 200_000
	// maxCalls bounds the calls that a plan is expected to make.
	maxCalls = 5_000_000
)

// Plan resolves the scenario with a seed for a tier; seed 0 means s.Seed, and that 1 if it is 0. It is pure: equal arguments
// give equal plans, on every machine. Every default is filled in: those of the servers and of the load as the types say
// them, those of the manager from restart.DefaultPolicy, and restart.DefaultLimits with a gate of 8.
//
// "any:N" picks anew at each occurrence of a fault or a command. The servers that a group's or a server's own name picks must
// be such that the fault can happen to them; of those that a pattern or "any:N" picks only those are taken. The order
// of things at one instant is that of the scenario, then that of the servers' names.
//
// Heal is at the end of Duration, and what is planned to last longer ends there. The error is Problems.
func (s Scenario) Plan(seed uint64, tier Tier) (Plan, error) {
	if err := s.Check(); err != nil {
		return Plan{}, err
	}
	r := &resolver{s: s, p: Plan{Scenario: s, Seed: cmp.Or(seed, s.Seed, 1), Tier: tier}}
	r.tier()
	if err := r.list.err(); err != nil { // what the faults cannot do in a tier that is not meant says nothing
		return Plan{}, err
	}
	r.manager()
	r.servers()
	r.faults()
	r.commands()
	r.p.End = r.p.Heal + or(s.Settle, r.p.settle())
	r.load()
	if err := r.list.err(); err != nil {
		return Plan{}, err
	}
	return r.p, nil
}

type resolver struct {
	s Scenario
	p Plan
	findings
}

func (r *resolver) tier() {
	standard := simDuration
	switch r.p.Tier {
	case Sim:
	case Real:
		standard = realDuration
	default:
		r.add("tiers", instead(string(r.p.Tier), words(Tiers)), "there is no tier %s", quote(string(r.p.Tier)))
	}
	if len(r.s.Tiers) > 0 && !slices.Contains(r.s.Tiers, r.p.Tier) {
		r.add("tiers", fmt.Sprintf("run it in %s", strings.Join(words(r.s.Tiers), " or ")),
			"the scenario %s is not for the tier %s", quote(r.s.Name), quote(string(r.p.Tier)))
	}
	r.p.Heal = or(r.s.Duration, standard)
}

func (r *resolver) manager() {
	m := r.s.Manager
	r.p.Policy, r.p.Limits = m.policy(), m.limits()
	r.p.WithdrawAfter, r.p.CallWait = or(m.WithdrawAfter, defaultWithdraw), time.Duration(m.CallWait)
	r.p.ProbeEvery, r.p.ProbeTimeout, r.p.ProbeStrikes = or(m.ProbeEvery, defaultProbeEvery), defaultProbeTimeout, defaultStrikes
	r.p.Quiet, r.p.MaxWait = defaultQuiet, defaultMaxWait
}

func (r *resolver) servers() {
	for _, g := range r.s.Servers {
		r.p.Servers = append(r.p.Servers, g.servers()...)
	}
	slices.SortFunc(r.p.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
}

func (r *resolver) faults() {
	for i, f := range r.s.Faults {
		path := fmt.Sprintf("faults[%d]", i)
		kind, _ := faults.Named(f.Fault) // Check has looked
		if !kind.In(string(r.p.Tier)) {
			r.add(path+".fault", "say tiers: ["+strings.Join(kind.Tiers, ", ")+"], or leave it out",
				"the fault %q cannot be done in the tier %s", f.Fault, r.p.Tier)
			continue
		}
		pick := picker(nobody)
		if !wholeMachine(kind) {
			var ok bool
			if pick, ok = r.picker(path, f.On, func(s Server) error { return refusal(kind, s) }); !ok {
				continue
			}
		}
		starts, ok := r.starts(path, f.At, f.Every, f.Times)
		if !ok {
			continue
		}
		for n, at := range starts {
			for _, server := range pick(n) {
				begin := at + spread(f.Spread, r.p.Seed, path, n, server)
				end := begin
				if !kind.Instant {
					end = min(begin+or(f.For, r.p.Heal), r.p.Heal)
				}
				if begin > r.p.Heal || begin == r.p.Heal && !kind.Instant {
					continue // the spread has put it after the end
				}
				r.p.Faults = append(r.p.Faults, Planned{
					Fault: f.Fault, With: endDown(parameters(kind, f.With), r.p.Heal-begin), Server: server, Begin: begin, End: end,
				})
			}
			if !r.few(path, len(r.p.Faults), "faults") {
				return
			}
		}
	}
	slices.SortStableFunc(r.p.Faults, func(a, b Planned) int { return cmp.Compare(a.Begin, b.Begin) })
	for i := range r.p.Faults {
		r.p.Faults[i].ID = i + 1
	}
}

// endDown shortens the time for which a crashed server cannot be opened to what is left until the world is healed: every fault has
// ended then.
func endDown(with map[string]string, left time.Duration) map[string]string {
	if down, err := time.ParseDuration(with["down"]); err == nil && down > left {
		with["down"] = left.String()
	}
	return with
}

func (r *resolver) commands() {
	for i, c := range r.s.Commands {
		path := fmt.Sprintf("commands[%d]", i)
		pick := picker(nobody)
		partial := c.Do == "configure" && len(c.On) > 0
		if !wholeManager(c.Do) || partial {
			var ok bool
			if pick, ok = r.picker(path, c.On, func(Server) error { return nil }); !ok {
				continue
			}
		}
		starts, ok := r.starts(path, c.At, c.Every, c.Times)
		if !ok {
			continue
		}
		for n, at := range starts {
			if partial {
				if at := at + spread(c.Spread, r.p.Seed, path, n, ""); at <= r.p.Heal {
					r.p.Commands = append(r.p.Commands, Order{Do: c.Do, Only: pick(n), At: at})
				}
				continue
			}
			for _, server := range pick(n) {
				if at := at + spread(c.Spread, r.p.Seed, path, n, server); at <= r.p.Heal {
					r.p.Commands = append(r.p.Commands, Order{Do: c.Do, Server: server, At: at, With: c.With})
				}
			}
			if !r.few(path, len(r.p.Commands), "commands") {
				return
			}
		}
	}
	slices.SortStableFunc(r.p.Commands, func(a, b Order) int { return cmp.Compare(a.At, b.At) })
	for i := range r.p.Commands {
		r.p.Commands[i].ID = i + 1
	}
}

func (r *resolver) load() {
	calls := 0.0
	for i, l := range r.s.Load {
		path := fmt.Sprintf("load[%d]", i)
		begin, end := time.Duration(l.From), r.p.End
		if l.For > 0 {
			end = min(end, begin+time.Duration(l.For))
		}
		if begin >= end {
			r.add(path+".from", "let it begin before", "it begins at %s, and the run ends at %s", short(l.From), short(messages.Duration(end)))
			continue
		}
		tool := cmp.Or(l.Tool, WriteTool)
		pick, ok := r.picker(path, l.On, func(s Server) error { return hasTool(s, tool) })
		if !ok {
			continue
		}
		rate := cmp.Or(l.Rate, defaultRate)
		for _, server := range pick(0) {
			calls += rate * (end - begin).Seconds()
			r.p.Load = append(r.p.Load, Stream{
				Server: server, Tool: tool, Read: l.Read, Rate: rate, Timeout: time.Duration(l.Timeout), Size: l.Size, Callers: l.Callers,
				Task: l.Task, Cancel: l.Cancel, Begin: begin, End: end,
			})
		}
	}
	if calls > maxCalls {
		r.add("load", "lower the rate, or name fewer servers, or say for: how long", "%.0f calls are more than %d", calls, maxCalls)
	}
}

func hasTool(s Server, tool string) error {
	var n int
	if _, err := fmt.Sscanf(tool, "tool-%d", &n); err == nil && n > s.Tools {
		return fmt.Errorf("the server %s has %d tools and no %s", quote(s.Name), s.Tools, tool)
	}
	return nil
}

// picker gives the names of the servers that the n-th occurrence of an entry is about.
type picker func(n int) []string

// picker resolves a selector. What is wrong is added to the findings.
func (r *resolver) picker(path string, s Selector, refuse func(Server) error) (picker, bool) {
	c, wrong := s.choose(r.p.Servers)
	if wrong >= 0 {
		var known []string
		for _, g := range r.s.Servers {
			known = append(known, g.Name)
		}
		r.add(fmt.Sprintf("%s.on[%d]", path, wrong), instead(s[wrong], known), "there is no server %s", quote(s[wrong]))
		return nil, false
	}
	can, err := c.candidates(r.p.Servers, refuse)
	if err != nil {
		r.add(path+".on", "", "%v", err)
		return nil, false
	}
	names := func(places []int) []string {
		out := make([]string, len(places))
		for i, at := range places {
			out[i] = r.p.Servers[at].Name
		}
		return out
	}
	if c.some == 0 {
		all := names(can)
		return func(int) []string { return all }, true
	}
	return func(n int) []string {
		return names(draw(can, c.some, Rand(r.p.Seed, fmt.Sprintf("%s any %d", path, n))))
	}, true
}

// nobody is the picker of what is about no single server.
func nobody(int) []string { return []string{""} }

// starts are the times at which something occurs.
func (r *resolver) starts(path string, at, every messages.Duration, times int) ([]time.Duration, bool) {
	if time.Duration(at) > r.p.Heal {
		r.add(path+".at", "let it begin before, or say a longer duration", "it begins at %s, after everything has ended at %s",
			short(at), short(messages.Duration(r.p.Heal)))
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
	if !r.few(path, n, "occurrences") {
		return nil, false
	}
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = time.Duration(at) + time.Duration(i)*time.Duration(every)
	}
	return out, true
}

func (r *resolver) few(path string, n int, what string) bool {
	if n <= maxPlanned {
		return true
	}
	r.add(path, "say a longer every:, or times:, or fewer servers", "these are more than %d %s", maxPlanned, what)
	return false
}

// spread is how much later something occurs on one server than on the first.
func spread(most messages.Duration, seed uint64, path string, n int, server string) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(Rand(seed, fmt.Sprintf("%s spread %d %s", path, n, server)).Int64N(int64(most)))
}
