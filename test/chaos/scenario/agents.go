package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// maxAgents bounds the agents of one scenario.
const maxAgents = 1000

// checkAgents checks one entry of the agents.
func (f *findings) checkAgents(path string, a Agents) {
	if !namePattern().MatchString(a.As) {
		f.addProblem(path+".as", wordRule, "%s is no name for a principal", quoteWord(a.As))
	}
	if a.Count < 0 || a.Count > maxAgents {
		f.addProblem(path+".count", fmt.Sprintf("write a number up to %d", maxAgents), "%d agents cannot be", a.Count)
	}
	if a.Era != "" && !slices.Contains(Eras, a.Era) {
		f.addProblem(path+".era", suggestWord(string(a.Era), toStrings(Eras)), "there is no era %s", quoteWord(string(a.Era)))
	}
	if over := []string{OverLines, OverHTTP}; a.Over != "" && !slices.Contains(over, a.Over) {
		f.addProblem(path+".over", suggestWord(a.Over, over), "no agent comes over %s", quoteWord(a.Over))
	}
	// Written so that NaN, which YAML can hold, is refused as well.
	if !(a.Rate >= 0 && a.Rate <= 1000) {
		f.addProblem(path+".rate", "write how much each does per second", "the rate %v cannot be", a.Rate)
	}
	f.checkViews(path, a)
	f.checkNotNegative(path+".from", a.From)
	f.checkNotNegative(path+".for", a.For)
}

// resolveAgents plans each agent. They stop with the faults, so that what they have asked is over before the manager closes.
func (r *resolver) resolveAgents() {
	for i, a := range r.s.Agents {
		path := fmt.Sprintf("agents[%d]", i)
		if a.View != "" && !slices.ContainsFunc(r.p.Servers, func(s Server) bool { return s.Name == a.View }) {
			var known []string
			for _, s := range r.p.Servers {
				known = append(known, s.Name)
			}
			r.addProblem(path+".view", suggestWord(a.View, known), "there is no server %s", quoteWord(a.View))
			continue
		}
		begin, end := time.Duration(a.From), r.p.Heal
		if a.For > 0 {
			end = min(end, begin+time.Duration(a.For))
		}
		if begin >= end {
			r.addProblem(path+".from", "let it begin before", "it begins at %s, and the agents stop at %s", shortDuration(a.From), shortDuration(messages.Duration(end)))
			continue
		}
		held, through := "", ""
		if len(a.Within) > 0 {
			held, through = fmt.Sprintf("held-%d", i+1), cmp.Or(a.Through, ThroughToken)
		}
		for range max(a.Count, 1) {
			r.p.Agents = append(r.p.Agents, PlannedAgent{
				Name: fmt.Sprintf("agent-%d", len(r.p.Agents)+1), As: a.As, Era: cmp.Or(a.Era, messages.EraLegacy), Over: cmp.Or(a.Over, OverLines),
				View: a.View, Within: sortedViews(a.Within), Held: held, Through: through, Rate: cmp.Or(a.Rate, defaultRate), Begin: begin, End: end,
			})
		}
		if !r.withinLimit(path, len(r.p.Agents), "agents") {
			return
		}
	}
}
