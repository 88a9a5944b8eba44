package access

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Set is the rules of one level.
type Set struct {
	Rules []Rule
	// Default decides about a call that no rule is about. Empty is allow, and, for managed rules, what the others say.
	Default Verdict
	// DefaultSource is where it stands.
	DefaultSource Source
}

// Rules are all rules of a manager: those of the organisation, and the others, wherever they are from.
type Rules struct {
	Managed, Own Set
	// Taken are servers of projects that took the name of one of the person's own: what Own allows by name is not said of them.
	Taken []string
	// Hints lets what trusted servers say of their tools inform the default, although no default is set.
	Hints bool
}

// Empty reports whether the rules decide nothing: everything is allowed.
func (r Rules) Empty() bool {
	return len(r.Managed.Rules)+len(r.Own.Rules) == 0 && !r.usesAnnotations()
}

// usesAnnotations reports whether annotations have a say.
func (r Rules) usesAnnotations() bool {
	return r.Own.Default != "" || r.Hints || r.Managed.Default != ""
}

// Request is a call that is to be decided about.
type Request struct {
	// Server is the server's id, Tool the tool's own name there.
	Server, Tool string
	// Qualified is the name under which the tool is offered; if empty, that of the zero messages.Naming.
	Qualified string
	// Args are the arguments, a JSON object or nothing.
	Args json.RawMessage
	// Trusted says that the server's annotations count.
	Trusted     bool
	Annotations *messages.Annotations
}

// Decision says what is to be done with a call, and why.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Rule is the rule that decided, as it was written; empty if none did.
	Rule string `json:"rule,omitempty"`
	// Source is where the rule, or the default, stands.
	Source Source `json:"source"`
	// Why says it in a clause: "the rule deny mcp__github (mcp.json:3:14, user)".
	Why string `json:"why"`
	// ByRule is set if a rule decided, and not a default.
	ByRule bool `json:"byRule"`
	// Settled says that an allow rule of the person's own would not change an ask: a rule asks, or the managed default does.
	Settled bool `json:"-"`
}

// Decide decides about one call.
func Decide(r Rules, q Request) Decision {
	return Compile(r).Tool(q.Server, q.Tool, q.Qualified).Decide(q)
}

// Matcher is rules that are ready for many calls. It is immutable.
type Matcher struct {
	rules Rules
	// The decisions where no rule is about a call: made once, so that a call costs none of their words.
	byDefault, floor, destructive, readOnly Decision
}

// Compile makes a matcher. The rules must not be changed afterwards.
func Compile(r Rules) *Matcher {
	r.Managed.Rules, r.Own.Rules = strictestFirst(r.Managed.Rules), strictestFirst(r.Own.Rules)
	m := &Matcher{rules: r}
	m.byDefault = Decision{Verdict: Allow, Why: "no rule is about it"}
	if own := r.Own; own.Default != "" {
		m.byDefault = Decision{Verdict: own.Default, Source: own.DefaultSource,
			Why: withSource("the default is "+string(own.Default), own.DefaultSource)}
	}
	m.floor = Decision{Verdict: r.Managed.Default, Source: r.Managed.DefaultSource,
		Why: withSource("the managed default is "+string(r.Managed.Default), r.Managed.DefaultSource), Settled: true}
	m.destructive = Decision{Verdict: Ask, Why: "its trusted server calls it destructive"}
	m.readOnly = Decision{Verdict: Allow, Why: "its trusted server calls it read-only"}
	return m
}

// strictestFirst puts the strictest first: the first one that matches decides.
func strictestFirst(rules []Rule) []Rule {
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b Rule) int { return b.Verdict.strictness() - a.Verdict.strictness() })
	return rules
}

// Rules are those that the matcher was made of, the strictest first.
func (m *Matcher) Rules() Rules { return m.rules }

// Judgement holds what the rules say about one tool. It is immutable.
type Judgement struct {
	// fixed is the decision if the name alone makes it; nil if arguments or annotations have a say.
	fixed *Decision
	// managed and own are the rules about the tool, up to the first without a condition.
	managed, own []Rule
	m            *Matcher
}

// Tool is the judgement about one tool. qualified may be empty.
func (m *Matcher) Tool(server, tool, qualified string) *Judgement {
	if qualified == "" {
		qualified = offeredAs(server, tool)
	}
	j := &Judgement{m: m}
	about := func(rules []Rule) (out []Rule) {
		for i := range rules {
			if rules[i].name.matchesTool(server, tool, qualified) {
				out = append(out, rules[i])
				if !rules[i].Conditional() {
					break
				}
			}
		}
		return out
	}
	own := m.rules.Own.Rules
	if slices.Contains(m.rules.Taken, server) {
		own = slices.DeleteFunc(slices.Clone(own), func(r Rule) bool { return r.Verdict == Allow })
	}
	j.managed, j.own = about(m.rules.Managed.Rules), about(own)
	conditional := slices.ContainsFunc(j.managed, Rule.Conditional)
	if !conditional && len(j.managed) == 0 {
		conditional = slices.ContainsFunc(j.own, Rule.Conditional) ||
			len(j.own) == 0 && m.rules.usesAnnotations()
	}
	if !conditional {
		d := j.Decide(Request{})
		j.fixed = &d
	}
	return j
}

// Fixed is the decision if the tool's name alone makes it.
func (j *Judgement) Fixed() (Decision, bool) {
	if j.fixed == nil {
		return Decision{}, false
	}
	return *j.fixed, true
}

// Verdict is the verdict if the tool's name alone makes it; empty if it does not.
func (j *Judgement) Verdict() Verdict {
	if j.fixed == nil {
		return ""
	}
	return j.fixed.Verdict
}

// Decide decides about a call of the tool. Only Args, Trusted and Annotations of the request count.
func (j *Judgement) Decide(q Request) Decision {
	if j.fixed != nil {
		return *j.fixed
	}
	var all []argument
	readable, parsed := true, false
	first := func(rules []Rule) *Rule {
		for i := range rules {
			r := &rules[i]
			if r.Conditional() && !parsed {
				all, readable = parseArguments(q.Args)
				parsed = true
			}
			if r.conditionsMet(all, readable) {
				return r
			}
		}
		return nil
	}
	if r := first(j.managed); r != nil {
		return decisionOf(r)
	}
	var d Decision
	if r := first(j.own); r != nil {
		d = decisionOf(r)
	} else {
		d = j.m.defaultDecision(q.Trusted, q.Annotations)
	}
	if j.m.floor.Verdict.strictness() > d.Verdict.strictness() {
		return j.m.floor
	}
	return d
}

// AlwaysDenied is the decision of a tool that is denied whatever its arguments are: it need not be offered to any caller.
func (j *Judgement) AlwaysDenied(trusted bool, a *messages.Annotations) (Decision, bool) {
	last := func(rules []Rule) (r *Rule, open bool) {
		for i := range rules {
			if !rules[i].Conditional() {
				return &rules[i], open
			}
			open = open || rules[i].Verdict != Deny
		}
		return nil, open
	}
	r, open := last(j.managed)
	if open {
		return Decision{}, false
	}
	if r != nil {
		return decisionOf(r), r.Verdict == Deny
	}
	if j.m.floor.Verdict == Deny {
		return j.m.floor, true
	}
	if r, open = last(j.own); open {
		return Decision{}, false
	}
	var d Decision
	if r != nil {
		d = decisionOf(r)
	} else {
		d = j.m.defaultDecision(trusted, a)
	}
	return d, d.Verdict == Deny
}

// conditionsMet reports whether the conditions of a rule are met.
func (r *Rule) conditionsMet(all []argument, readable bool) bool {
	for i := range r.conditions {
		c := &r.conditions[i]
		switch {
		case !readable:
			if r.Verdict == Allow {
				return false
			}
		case r.Verdict == Allow:
			if !c.isMet(all) {
				return false
			}
		case !c.mayBeMet(all):
			return false
		}
	}
	return true
}

func decisionOf(r *Rule) Decision {
	why := "the rule " + r.String()
	if r.unreadable {
		why = "the rule " + messages.Line(r.Text, 80) + " cannot be read, and until it can everything is denied"
	}
	return Decision{Verdict: r.Verdict, Rule: r.Text, Source: r.Source, Why: withSource(why, r.Source), ByRule: true,
		Settled: r.Verdict == Ask}
}

func withSource(why string, s Source) string {
	if place := s.String(); place != "" {
		return fmt.Sprintf("%s (%s)", why, place)
	}
	return why
}

// defaultDecision is the decision where no rule is about a call.
func (m *Matcher) defaultDecision(trusted bool, a *messages.Annotations) Decision {
	if !trusted || a == nil || !m.rules.usesAnnotations() {
		return m.byDefault
	}
	switch {
	case a.Destructive != nil && *a.Destructive:
		if m.byDefault.Verdict == Deny {
			return m.byDefault
		}
		return m.destructive
	case a.ReadOnly != nil && *a.ReadOnly:
		return m.readOnly
	}
	return m.byDefault
}

// Server is the decision about reading what a server offers beside tools, its resources and prompts: deny if a rule denies
// everything of the server, else allow. No ask and no default keeps anybody from reading.
func (m *Matcher) Server(server string) Decision {
	for _, rules := range [][]Rule{m.rules.Managed.Rules, m.rules.Own.Rules} {
		for i := range rules {
			if r := &rules[i]; !r.Conditional() && r.name.coversServer(server) {
				if r.Verdict == Deny {
					return decisionOf(r)
				}
				return Decision{Verdict: Allow, Why: "no rule denies the whole server"}
			}
		}
	}
	return Decision{Verdict: Allow, Why: "no rule denies the whole server"}
}
