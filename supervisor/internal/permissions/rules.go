package permissions

import (
	"encoding/json"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// ActiveRules holds the rules in force, and says what they decide about a tool, offered or not. It asks nobody and records nothing,
// so the auditor reads it as well as the Decider. Safe for concurrent use.
type ActiveRules struct {
	RuleOptions
	// current is replaced whole by SetRules; a call uses one set to its end.
	current atomic.Pointer[ruleSet]
}

// RuleOptions holds the first rules, and what is known of the servers that they are about.
type RuleOptions struct {
	// Access are the first rules; SetRules replaces them.
	Access access.Rules
	// Hints says that the annotations of trusted servers count, because there is a person to ask about them.
	Hints  bool
	Naming messages.Naming
	// Cell has the published state of a server, Names the ids of all, Snapshot the newest catalog.
	Cell     func(server string) *actors.Cell
	Names    func() []string
	Snapshot func() *catalog.Snapshot
}

// ruleSet is one set of compiled rules, with what they decide about each tool that was called under them.
type ruleSet struct {
	*access.Matcher
	// empty says that there are no rules, so that a call need not look for a judgement.
	empty bool
	// tools holds judgements by the address of the tool's definition, which a snapshot shares with the next one if the tool is
	// the same.
	tools     atomic.Pointer[sync.Map] // *messages.Tool → *access.Judgement
	keptCount atomic.Int64
}

// maxJudgements bounds the judgements that are kept. Above it all are forgotten, those of definitions that are gone included, and
// made again as calls come.
const maxJudgements = 1 << 16

// NewRules puts the first rules in force.
func NewRules(o RuleOptions) *ActiveRules {
	a := &ActiveRules{RuleOptions: o}
	a.SetRules(o.Access)
	return a
}

// compileRules compiles the rules as they would be in force. Annotations count only if there is a person to ask about them.
func (a *ActiveRules) compileRules(r access.Rules) *access.Matcher {
	// With a person to ask, annotations are worth something; without, "destructive" could only deny.
	r.Hints = r.Hints || a.Hints
	return access.Compile(r)
}

// HasRules reports whether these rules are in force already, each from the same file and line: a verdict names its place.
func (a *ActiveRules) HasRules(r access.Rules) bool {
	return reflect.DeepEqual(a.current.Load().Rules(), a.compileRules(r).Rules())
}

// SetRules puts rules in force. Calls that were decided before are not affected.
func (a *ActiveRules) SetRules(r access.Rules) {
	made := a.compileRules(r)
	j := &ruleSet{Matcher: made, empty: made.Rules().Empty()}
	j.tools.Store(new(sync.Map))
	a.current.Store(j)
}

// judgementFor returns the judgement about a tool that is offered, and keeps it for the next call of the same definition.
func (j *ruleSet) judgementFor(tool *messages.Tool, naming messages.Naming) *access.Judgement {
	known := j.tools.Load()
	if v, ok := known.Load(tool); ok {
		return v.(*access.Judgement)
	}
	// Two goroutines may make the same judgement at once; one of them is kept.
	made := j.Tool(tool.Server, tool.Name, naming.Tool(tool.Server, tool.Name))
	if j.keptCount.Add(1) > maxJudgements {
		j.keptCount.Store(1)
		known = new(sync.Map)
		j.tools.Store(known)
	}
	known.Store(tool, made)
	return made
}

// isTrusted reports whether the annotations of a server's tools may be believed: its spec says trusted.
func (a *ActiveRules) isTrusted(server string) bool {
	cell := a.Cell(server)
	return cell != nil && cell.View().Spec.Trusted
}

// FindHiddenTool returns the server and the own name of a tool that is not offered, by its qualified name. A name with a hash is
// looked for among the quarantined tools.
func (a *ActiveRules) FindHiddenTool(qualified string) (server, tool string) {
	if server, tool, ok := a.Naming.Split(qualified); ok {
		return server, tool
	}
	for _, name := range a.Names() {
		cell := a.Cell(name)
		if cell == nil || cell.View().Tools == nil {
			continue
		}
		for _, q := range cell.View().Tools.Quarantined {
			if q.By != "" && a.Naming.Tool(name, q.Name) == qualified {
				return name, q.Name
			}
		}
	}
	return "", ""
}

// CurrentRules returns the rules that are in force.
func (a *ActiveRules) CurrentRules() access.Rules { return a.current.Load().Rules() }

// Decide returns what would happen to a call, by the rules, and by the annotations of the tool if its server is trusted and
// offers it.
func (a *ActiveRules) Decide(server, tool string, args json.RawMessage) access.Decision {
	q := access.Request{Server: server, Tool: tool, Qualified: a.Naming.Tool(server, tool), Args: args, Trusted: a.isTrusted(server)}
	// A tool that is not offered is decided about by its name alone.
	if e, ok := a.Snapshot().LookupTool(server, tool); ok {
		q.Annotations = e.Tool.Annotations
	}
	return a.current.Load().Tool(server, tool, q.Qualified).Decide(q)
}

// DecideServer returns what the rules say about everything of a server.
func (a *ActiveRules) DecideServer(server string) access.Decision {
	return a.current.Load().Server(server)
}
