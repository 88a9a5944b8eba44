package supervisor

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// permissions decides which tools may be called, by the rules in force, the pins, and the program's own function. A call passes
// these gates in order:
//
//	rules (allow, deny, ask) ──▶ question to the person, if asked ──▶ Config.Allow ──▶ sent
//
// Safe for concurrent use: a call reads the rules without a lock, SetPermissions replaces them whole.
type permissions struct {
	permissionOptions
	// rules is replaced whole by setRules; a call uses one set to its end.
	rules atomic.Pointer[ruleSet]
	pins  pinState
}

// permissionOptions are what permissions are made of.
type permissionOptions struct {
	// access are the first rules, and pin and leastPin the first treatment of changed tools; both may be replaced.
	access        access.Rules
	pin, leastPin string
	// hints says that the annotations of trusted servers count, because there is a person to ask about them.
	hints bool
	// allow is the program's own function, nil for none.
	allow  func(ctx context.Context, tool *messages.Tool, args json.RawMessage) error
	naming messages.Naming
	// store remembers the definitions of tools; nil for none.
	store *pins.Store
	asker *asker
	audit *auditor
	log   *zap.Logger

	// cell has the published state of a server, names the ids of all, snapshot the newest catalog.
	cell     func(server string) *actors.Cell
	names    func() []string
	snapshot func() *catalog.Snapshot
	// publish sends an event to the watchers; nil publishes none.
	publish func(messages.Event)
}

// ruleSet is one set of compiled rules, with what they decide about each tool that was called under them.
type ruleSet struct {
	*access.Matcher
	// empty says that there are no rules, so that a call need not look for a judgement.
	empty bool
	// tools holds judgements by the address of the tool's definition, which a snapshot shares with the next one if the tool is the same.
	tools     atomic.Pointer[sync.Map] // *messages.Tool → *access.Judgement
	keptCount atomic.Int64
}

// maxJudgements bounds the judgements that are kept. Above it all are forgotten, those of definitions that are gone included, and
// made again as calls come.
const maxJudgements = 1 << 16

func newPermissions(o permissionOptions) *permissions {
	p := &permissions{permissionOptions: o}
	p.pins.setPolicy(o.pin, o.leastPin)
	p.setRules(o.access)
	return p
}

// compileRules compiles the rules as they would be in force. Annotations count only if there is a person to ask about them.
func (p *permissions) compileRules(r access.Rules) *access.Matcher {
	// With a person to ask, annotations are worth something; without, "destructive" could only deny.
	r.Hints = r.Hints || p.hints
	return access.Compile(r)
}

// hasRules reports whether these rules are in force already, each from the same file and line: a verdict names its place.
func (p *permissions) hasRules(r access.Rules) bool {
	return reflect.DeepEqual(p.rules.Load().Rules(), p.compileRules(r).Rules())
}

// setRules puts rules in force. Calls that were decided before are not affected.
func (p *permissions) setRules(r access.Rules) {
	made := p.compileRules(r)
	j := &ruleSet{Matcher: made, empty: made.Rules().Empty()}
	j.tools.Store(new(sync.Map))
	p.rules.Store(j)
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

// allowCall implements actors.Calls.Allow: it returns nil if the call may be sent. It runs before the call's own timeout begins, so
// that the time that a person takes does not count.
func (p *permissions) allowCall(ctx context.Context, tool *messages.Tool, args json.RawMessage) error {
	if j := p.rules.Load(); !j.empty {
		judgement := j.judgementFor(tool, p.naming)
		// Nearly all calls end here: the rules allow the tool with any arguments.
		if judgement.Verdict() == access.Allow {
			if p.audit != nil {
				noteDecision(ctx, judgement.Decide(access.Request{}))
			}
		} else {
			if err := p.decideCall(ctx, judgement, tool, args); err != nil {
				return err
			}
		}
	}
	// The program's own function comes last: it sees only calls that the rules and the person allow.
	if p.allow != nil {
		if err := p.allow(ctx, tool, args); err != nil {
			return refusedByProgram(err)
		}
	}
	return nil
}

// decideCall decides by the arguments too, and asks the person if the rules say so.
func (p *permissions) decideCall(ctx context.Context, j *access.Judgement, tool *messages.Tool, args json.RawMessage) error {
	// The spec may have changed since the tool was listed; the newest one counts.
	trusted := p.isTrusted(tool.Server)
	d := j.Decide(access.Request{Args: args, Trusted: trusted, Annotations: tool.Annotations})
	if p.audit != nil {
		noteDecision(ctx, d)
	}
	switch d.Verdict {
	case access.Allow:
		return nil
	case access.Ask:
		return p.asker.askPermission(ctx, d, question{Server: tool.Server, Tool: tool.Name, Arguments: args,
			Annotations: tool.Annotations, Trusted: trusted, Why: d.Why})
	case access.Deny:
	}
	return deniedError(tool.Server, tool.Name, d)
}

// isTrusted reports whether the annotations of a server's tools may be believed: its spec says trusted.
func (p *permissions) isTrusted(server string) bool {
	cell := p.cell(server)
	return cell != nil && cell.View().Spec.Trusted
}

// deniedError returns the error of a call that a rule denies: it was not sent.
func deniedError(server, tool string, d access.Decision) *messages.Error {
	return &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Server: server, Tool: tool,
		Text: denialText(d), Err: messages.ErrDenied}
}

func denialText(d access.Decision) string { return "denied: " + d.Why }

// refuseTool implements actors.Calls.Refuse. It returns why a tool that is not in the catalog may not be called: a pin holds it
// back, or a rule denies every call of it. nil says that the tool is unknown for another reason; the caller then gets that error.
func (p *permissions) refuseTool(qualified, server, tool string) error {
	// A name of a tool that was never offered must be resolved among the quarantined ones.
	if qualified != "" {
		if server, tool = p.findHiddenTool(qualified); server == "" {
			return nil
		}
	}
	cell := p.cell(server)
	if cell == nil {
		return nil
	}
	if list := cell.View().Tools; list != nil {
		for _, q := range list.Quarantined {
			if q.Name == tool && q.By != "" {
				return &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Server: server, Tool: tool,
					Text: q.Reason, Err: messages.ErrDenied}
			}
		}
	}
	j := p.rules.Load()
	if j.empty {
		return nil
	}
	// Only a rule is named here: a default that denies says nothing about this one tool.
	if d, hopeless := j.Tool(server, tool, p.naming.Tool(server, tool)).AlwaysDenied(false, nil); hopeless && d.ByRule {
		return deniedError(server, tool, d)
	}
	return nil
}

// findHiddenTool returns the server and the own name of a tool that is not offered, by its qualified name. A name with a hash is
// looked for among the quarantined tools.
func (p *permissions) findHiddenTool(qualified string) (server, tool string) {
	if server, tool, ok := p.naming.Split(qualified); ok {
		return server, tool
	}
	for _, name := range p.names() {
		cell := p.cell(name)
		if cell == nil || cell.View().Tools == nil {
			continue
		}
		for _, q := range cell.View().Tools.Quarantined {
			if q.By != "" && p.naming.Tool(name, q.Name) == qualified {
				return name, q.Name
			}
		}
	}
	return "", ""
}

// filterTools implements actors.Common.Filter: it takes the tools out of a list that every call would be denied, because a model
// that sees them only wastes calls. They stand in Quarantined with the rule instead. The list is copied, since the session
// shares it.
func (p *permissions) filterTools(name string, spec *messages.Spec, list *session.ToolList) *session.ToolList {
	// Pins first: a tool that is held back needs no rule.
	list = p.filterChanged(name, spec, list)
	j := p.rules.Load()
	if j.empty {
		return list
	}
	// The session keeps the list for its next connection, so its slices are not changed.
	out := *list
	out.Tools, out.Quarantined = nil, slices.Clone(list.Quarantined)
	for _, t := range list.Tools {
		d, hopeless := j.Tool(name, t.Name, p.naming.Tool(name, t.Name)).AlwaysDenied(spec.Trusted, t.Annotations)
		if !hopeless {
			out.Tools = append(out.Tools, t)
			continue
		}
		out.Quarantined = append(out.Quarantined,
			messages.QuarantinedTool{Name: t.Name, Reason: denialText(d), By: messages.QuarantinedByRule})
	}
	return &out
}

// checkRead refuses to read what a server offers beside tools, if a rule denies the whole server. Rules about single tools do not
// apply to resources and prompts.
func (p *permissions) checkRead(server string) error {
	j := p.rules.Load()
	if j.empty {
		return nil
	}
	if d := j.Server(server); d.Verdict == access.Deny {
		e := deniedError(server, "", d)
		e.Op = "read"
		return e
	}
	return nil
}

// currentRules returns the rules that are in force.
func (p *permissions) currentRules() access.Rules { return p.rules.Load().Rules() }

// decide returns what would happen to a call, by the rules, and by the annotations of the tool if its server is trusted and
// offers it.
func (p *permissions) decide(server, tool string, args json.RawMessage) access.Decision {
	q := access.Request{Server: server, Tool: tool, Qualified: p.naming.Tool(server, tool), Args: args, Trusted: p.isTrusted(server)}
	// A tool that is not offered is decided about by its name alone.
	if e, ok := p.snapshot().LookupTool(server, tool); ok {
		q.Annotations = e.Tool.Annotations
	}
	return p.rules.Load().Tool(server, tool, q.Qualified).Decide(q)
}

// decideServer returns what the rules say about everything of a server.
func (p *permissions) decideServer(server string) access.Decision {
	return p.rules.Load().Server(server)
}
