package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// View is a part of the servers and of their tools, to which agents are held from its time on: until the next one, and before the first
// one they see everything.
type View struct {
	At messages.Duration `json:"at,omitempty" yaml:"at,omitempty"`
	// Servers are those that it has; empty: all.
	Servers []string `json:"servers,omitempty" yaml:"servers,omitempty,flow"`
	// Deny are tools that it hides, each as SERVER:TOOL, or SERVER:* for all of a server. Only, if not empty, are those that it leaves.
	Deny []string `json:"deny,omitempty" yaml:"deny,omitempty,flow"`
	Only []string `json:"only,omitempty" yaml:"only,omitempty,flow"`
}

// The words of Agents.Through.
const (
	ThroughToken = "token"
	ThroughPath  = "path"
)

// checkViews checks the views of one entry of the agents. That a server is there is not checked: a rule may name one that is not.
func (f *findings) checkViews(path string, a Agents) {
	if through := []string{ThroughToken, ThroughPath}; a.Through != "" && !slices.Contains(through, a.Through) {
		f.addProblem(path+".through", suggestWord(a.Through, through), "no view is chosen by %s", quoteWord(a.Through))
	}
	if a.Through == ThroughPath && a.View != "" && len(a.Within) > 0 {
		f.addProblem(path+".through", "leave view or through out", "a path names a server or a view, and not both")
	}
	for i, v := range a.Within {
		at := fmt.Sprintf("%s.within[%d]", path, i)
		f.checkNotNegative(at+".at", v.At)
		for _, list := range [][]string{v.Deny, v.Only} {
			for _, rule := range list {
				if server, tool, ok := cutRule(rule); !ok || server == "" || tool == "" {
					f.addProblem(at, "write SERVER:TOOL, or SERVER:* for all of a server", "%s is no tool of a server", quoteWord(rule))
				}
			}
		}
	}
}

// cutRule takes SERVER:TOOL apart.
func cutRule(rule string) (server, tool string, ok bool) { return strings.Cut(rule, ":") }

// sortedViews returns views in the order of their times.
func sortedViews(views []View) []View {
	return slices.SortedStableFunc(slices.Values(views), func(a, b View) int { return cmp.Compare(a.At, b.At) })
}

// A Part is what a view leaves of the tools of one server. The zero value is all of them.
type Part struct {
	// Hidden is set if nothing of the server is shown, its resources and prompts included.
	Hidden bool
	only   []string // nil: all
	// without are tools that are hidden.
	without []string
}

// Has reports whether a tool is shown.
func (p Part) Has(tool string) bool {
	return !p.Hidden && (p.only == nil || slices.Contains(p.only, tool)) && !slices.Contains(p.without, tool)
}

// String names a part, the same for equal ones; empty for the whole.
func (p Part) String() string {
	switch {
	case p.Hidden:
		return "-"
	case p.only != nil:
		return "+" + strings.Join(slices.DeleteFunc(slices.Clone(p.only), func(tool string) bool { return slices.Contains(p.without, tool) }), ",")
	case len(p.without) > 0:
		return "-" + strings.Join(p.without, ",")
	}
	return ""
}

// PartOf returns what the view leaves of a server.
func (v View) PartOf(server string) (p Part) {
	if len(v.Servers) > 0 && !slices.Contains(v.Servers, server) {
		return Part{Hidden: true}
	}
	toolsIn := func(rules []string) (tools []string, whole bool) {
		for _, rule := range rules {
			if named, tool, _ := cutRule(rule); named == server {
				tools, whole = append(tools, tool), whole || tool == WholeServer
			}
		}
		slices.Sort(tools)
		return slices.Compact(tools), whole
	}
	denied, all := toolsIn(v.Deny)
	if p.without = denied; all {
		return Part{Hidden: true}
	}
	if len(v.Only) > 0 {
		only, all := toolsIn(v.Only)
		if len(only) == 0 {
			return Part{Hidden: true}
		}
		if !all {
			p.only = only
		}
	}
	return p
}

// PartAt returns what an agent sees of a server at a time.
func (a *PlannedAgent) PartAt(server string, at time.Duration) (p Part) {
	for _, v := range a.Within {
		if time.Duration(v.At) <= at {
			p = v.PartOf(server)
		}
	}
	return p
}

// PartDuring returns what an agent sees of a server from one time to another; false if that changes in between.
func (a *PlannedAgent) PartDuring(server string, from, to time.Duration) (p Part, same bool) {
	p = a.PartAt(server, from)
	for _, v := range a.Within {
		if at := time.Duration(v.At); at > from && at <= to && v.PartOf(server).String() != p.String() {
			return p, false
		}
	}
	return p, true
}

// PartsOf returns the parts of a server's tools that agents see at any time, each once: neither the whole nor nothing.
func (p *Plan) PartsOf(server string) (parts []Part) {
	for i := range p.Agents {
		for _, v := range p.Agents[i].Within {
			part := v.PartOf(server)
			if text := part.String(); text != "" && !part.Hidden && !slices.ContainsFunc(parts, func(q Part) bool { return q.String() == text }) {
				parts = append(parts, part)
			}
		}
	}
	return parts
}
