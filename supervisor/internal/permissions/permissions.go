// Package permissions decides which tools are offered and which calls are sent: by the rules (package supervisor/access), by the pinned
// definitions (package supervisor/pins), by the person, and by the program's own function.
//
//	rules := permissions.NewRules(permissions.RuleOptions{Access: access, Naming: naming, …})
//	d := permissions.New(permissions.Options{Rules: rules, Asker: asker, Hooks: runner, …})
//	err := d.AllowCall(ctx, tool, args, &trace)      // nil: it may be sent
//
// Guarantees: a call is decided by one set of rules to its end, and without a lock; what is denied was not sent, and the error
// names the rule; under "hold" a changed tool is not offered before a person has approved it.
//
// # How it fits
//
// The chain of a call asks AllowCall and RefuseTool, each server's actor gives its lists to FilterTools and PrepareTools,
// and package supervisor replaces the rules. Package asker puts the questions.
//
// Not promised: that a call which was sent can be taken back. New rules count for the calls that are decided after them.
package permissions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/asker"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Decider decides which tools may be called, by the rules in force, the pins, and the program's own function. A call passes
// these gates in order:
//
//	rules (allow, deny, ask) ──▶ question to the person, if asked ──▶ Config.Allow ──▶ sent
//
// Safe for concurrent use: a call reads the rules without a lock, SetRules replaces them whole.
type Decider struct {
	Options
	pins pinState
}

// Options holds the rules, the pins and the functions that a decider works with.
type Options struct {
	Rules *ActiveRules
	// Pin and LeastPin are the first treatment of changed tools, which may be replaced.
	Pin, LeastPin string
	// Allow is the program's own function, nil for none.
	Allow func(ctx context.Context, tool *messages.Tool, args json.RawMessage) error
	// Store remembers the definitions of tools; nil for none.
	Store *pins.Store
	Asker *asker.Asker
	Audit *auditor.Auditor
	Log   *zap.Logger
	// Hooks runs Allow.
	Hooks *hooks.Runner
	// Publish sends an event to the watchers; nil publishes none.
	Publish func(messages.Event)
}

// New makes a decider that works with the options as they are.
func New(o Options) *Decider {
	p := &Decider{Options: o}
	p.pins.setPolicy(o.Pin, o.LeastPin)
	return p
}

// AllowCall returns nil if the call may be sent. It runs before the call's own timeout begins, so that the time that a person takes
// does not count. trace gets the decision, and the answer of a person who was asked.
func (p *Decider) AllowCall(ctx context.Context, tool *messages.Tool, args json.RawMessage, trace *actors.Trace) error {
	if j := p.Rules.current.Load(); !j.empty {
		judgement := j.judgementFor(tool, p.Rules.Naming)
		// Nearly all calls end here: the rules allow the tool with any arguments.
		if judgement.Verdict() == access.Allow {
			if p.Audit != nil {
				auditor.NoteDecision(trace, judgement.Decide(access.Request{}))
			}
		} else {
			if err := p.decideCall(ctx, judgement, tool, args, trace); err != nil {
				return err
			}
		}
	}
	// The program's own function comes last: it sees only calls that the rules and the person allow.
	if p.Allow != nil {
		return p.askProgram(ctx, tool, args)
	}
	return nil
}

// AllowTool asks the program's function about a tool as about a call without arguments.
func (p *Decider) AllowTool(ctx context.Context, tool *messages.Tool) error {
	if p.Allow == nil {
		return nil
	}
	refused := p.askProgram(ctx, tool, nil)
	if own, ok := refused.(*messages.Error); ok { //nolint:errorlint // it was made just now
		own.Server, own.Tool = tool.Server, tool.Name
	}
	return refused
}

// askProgram asks the program's function, and waits for its answer until ctx ends or the manager closes: a function that does not
// return holds up no call beyond its time. A panic of it refuses the call.
func (p *Decider) askProgram(ctx context.Context, tool *messages.Tool, args json.RawMessage) error {
	if ctx.Err() == nil {
		refused, err := hooks.Do(ctx, p.Hooks, p.Asker.Done, hooks.Call{Function: "Config.Allow", Server: tool.Server, Tool: tool.Name},
			func() error { return p.Allow(ctx, tool, args) })
		var broken *hooks.Broken
		switch {
		case errors.As(err, &broken):
			return refusal.ProgramError(fmt.Errorf("its function Allow %w", broken))
		case errors.Is(err, hooks.ErrOver):
			return refusal.ClosedError("call")
		case err != nil && ctx.Err() == nil:
			return err
		// The caller may have left, or its time have passed, while the program decided: the tool must not run then.
		case err == nil && refused != nil:
			return refusal.ProgramError(refused)
		}
	}
	if err := ctx.Err(); err != nil {
		return &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassOf(err),
			Text: "the context ended while the program decided whether it may be made", Err: err}
	}
	return nil
}

// decideCall decides by the arguments too, and asks the person if the rules say so.
func (p *Decider) decideCall(
	ctx context.Context, j *access.Judgement, tool *messages.Tool, args json.RawMessage, trace *actors.Trace,
) error {
	// The spec may have changed since the tool was listed; the newest one counts.
	trusted := p.Rules.isTrusted(tool.Server)
	d := j.Decide(access.Request{Args: args, Trusted: trusted, Annotations: tool.Annotations})
	if p.Audit != nil {
		auditor.NoteDecision(trace, d)
	}
	switch d.Verdict {
	case access.Allow:
		return nil
	case access.Ask:
		return p.Asker.AskPermission(ctx, d, asker.Question{Server: tool.Server, Tool: tool.Name, Arguments: args,
			Annotations: tool.Annotations, Trusted: trusted, Why: d.Why}, &trace.Answer)
	case access.Deny:
	}
	return deniedError(tool.Server, tool.Name, d)
}

// deniedError returns the error of a call that a rule denies: it was not sent.
func deniedError(server, tool string, d access.Decision) *messages.Error {
	return &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Server: server, Tool: tool,
		Text: denialText(d), Err: messages.ErrDenied}
}

func denialText(d access.Decision) string { return "denied: " + d.Why }

// RefuseTool implements actors.Calls.Refuse. It returns why a tool that is not in the catalog may not be called: a pin holds it
// back, or a rule denies every call of it. nil says that the tool is unknown for another reason; the caller then gets that error.
func (p *Decider) RefuseTool(qualified, server, tool string) error {
	// A name of a tool that was never offered must be resolved among the quarantined ones.
	if qualified != "" {
		if server, tool = p.Rules.FindHiddenTool(qualified); server == "" {
			return nil
		}
	}
	cell := p.Rules.Cell(server)
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
	j := p.Rules.current.Load()
	if j.empty {
		return nil
	}
	// Only a rule is named here: a default that denies says nothing about this one tool.
	if d, hopeless := j.Tool(server, tool, p.Rules.Naming.Tool(server, tool)).AlwaysDenied(false, nil); hopeless && d.ByRule {
		return deniedError(server, tool, d)
	}
	return nil
}

// FilterTools implements actors.Common.Filter: it takes the tools out of a list that every call would be denied, because a model
// that sees them only wastes calls. They stand in Quarantined with the rule instead. The list is copied, since the session
// shares it.
func (p *Decider) FilterTools(name string, spec *messages.Spec, list *session.ToolList) *session.ToolList {
	// Pins first: a tool that is held back needs no rule.
	list = p.filterChanged(name, spec, list)
	j := p.Rules.current.Load()
	if j.empty {
		return list
	}
	// The session keeps the list for its next connection, so its slices are not changed.
	out := *list
	out.Tools, out.Quarantined = nil, slices.Clone(list.Quarantined)
	for _, t := range list.Tools {
		d, hopeless := j.Tool(name, t.Name, p.Rules.Naming.Tool(name, t.Name)).AlwaysDenied(spec.Trusted, t.Annotations)
		if !hopeless {
			out.Tools = append(out.Tools, t)
			continue
		}
		out.Quarantined = append(out.Quarantined,
			messages.QuarantinedTool{Name: t.Name, Reason: denialText(d), By: messages.QuarantinedByRule})
	}
	return &out
}

// AlwaysDenies reports whether the rules deny every call of a tool.
func (p *Decider) AlwaysDenies(t *messages.Tool) bool {
	j := p.Rules.current.Load()
	if j.empty {
		return false
	}
	_, hopeless := j.Tool(t.Server, t.Name, p.Rules.Naming.Tool(t.Server, t.Name)).AlwaysDenied(p.Rules.isTrusted(t.Server), t.Annotations)
	return hopeless
}

// CheckRead refuses to read what a server offers beside tools, if a rule denies the whole server. Rules about single tools do not
// apply to resources and prompts.
func (p *Decider) CheckRead(server string) error {
	j := p.Rules.current.Load()
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
