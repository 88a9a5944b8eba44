package access

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Set has the rules of one level.
type Set struct {
	Rules []Rule
	// Default decides about a call that no rule matches. Empty is allow, and, for managed rules, the decision of the other level.
	Default Verdict
	// DefaultSource is the place of the default, for a decision's Why.
	DefaultSource Source
}

// Rules are all rules of a manager: those of the organisation, and all others.
type Rules struct {
	Managed, Own Set
	// Taken are servers of projects that took the name of one of the person's own: what Own allows by name was not meant for them.
	Taken []string
	// Hints lets the annotations of trusted servers count although no default is set.
	Hints bool
}

// Empty reports whether the rules decide nothing: every call is allowed.
func (r Rules) Empty() bool {
	return len(r.Managed.Rules)+len(r.Own.Rules) == 0 && !r.usesAnnotations()
}

// usesAnnotations reports whether annotations of trusted servers count.
func (r Rules) usesAnnotations() bool {
	return r.Own.Default != "" || r.Hints || r.Managed.Default != ""
}

// Request describes a call for Decide.
type Request struct {
	// Server is the server's id, Tool the tool's own name there.
	Server, Tool string
	// Qualified is the name under which the tool is offered; if empty, that of the zero messages.Naming.
	Qualified string
	// Args are the arguments, a JSON object or nothing.
	Args json.RawMessage
	// Trusted says that the server's annotations may be believed.
	Trusted     bool
	Annotations *messages.Annotations
}

// Decision says what happens to a call, and why.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Rule is the rule that decided, as it was written; empty if none did.
	Rule string `json:"rule,omitempty"`
	// Source is the place of the rule, or of the default.
	Source Source `json:"source"`
	// Why gives the reason in a clause: "the rule deny mcp__github (mcp.json:3:14, user)".
	Why string `json:"why"`
	// ByRule is set if a rule decided, and not a default.
	ByRule bool `json:"byRule"`
	// Settled says that an allow rule of the person's own would not change an ask: a rule asks, or the managed default does.
	Settled bool `json:"-"`
}

// Decide decides about one call. For many calls, Compile once and keep the Judgement of each tool.
func Decide(r Rules, q Request) Decision {
	return Compile(r).Tool(q.Server, q.Tool, q.Qualified).Decide(q)
}

// Matcher has rules that are ready for many calls. It is immutable, and so safe for concurrent use.
type Matcher struct {
	rules Rules
	// The decisions for calls that no rule matches: made once, so that a call does not format their texts.
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

// strictestFirst sorts the rules by strictness, because the first one that matches decides.
func strictestFirst(rules []Rule) []Rule {
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b Rule) int { return b.Verdict.strictness() - a.Verdict.strictness() })
	return rules
}

// Rules returns the rules that the matcher was made of, the strictest first.
func (m *Matcher) Rules() Rules { return m.rules }

// Judgement has the rules that concern one tool. It is immutable.
type Judgement struct {
	// fixed is the decision if the name alone decides; nil if arguments or annotations matter.
	fixed *Decision
	// managed and own are the rules that match the tool, up to the first without a condition, behind which none can decide.
	managed, own []Rule
	m            *Matcher
}

// Tool returns the judgement about one tool. qualified may be empty.
func (m *Matcher) Tool(server, tool, qualified string) *Judgement {
	if qualified == "" {
		qualified = offeredAs(server, tool)
	}
	j := &Judgement{m: m}
	// Rules behind the first one without a condition are never reached.
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
	// A project's server with the name of one of the person's own gets no allowances that were meant for that one.
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
	// Then no argument and no annotation can change the decision, so it is made once.
	if !conditional {
		d := j.Decide(Request{})
		j.fixed = &d
	}
	return j
}

// Fixed returns the decision if the tool's name alone decides.
func (j *Judgement) Fixed() (Decision, bool) {
	if j.fixed == nil {
		return Decision{}, false
	}
	return *j.fixed, true
}

// Verdict returns the verdict if the tool's name alone decides; empty otherwise.
func (j *Judgement) Verdict() Verdict {
	if j.fixed == nil {
		return ""
	}
	return j.fixed.Verdict
}

// Decide decides about a call of the tool. Only Args, Trusted and Annotations of the request count. The arguments are parsed at
// most once, and only if a rule has a condition.
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
	// The managed default cannot be undercut by the person's own rules.
	if j.m.floor.Verdict.strictness() > d.Verdict.strictness() {
		return j.m.floor
	}
	return d
}

// AlwaysDenied returns the decision about a tool that is denied with any arguments, and true: it need not be offered to a model.
func (j *Judgement) AlwaysDenied(trusted bool, a *messages.Annotations) (Decision, bool) {
	// open says that a rule with a condition may allow or ask about some call.
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

// conditionsMet reports whether all conditions of a rule are met. Arguments that cannot be read meet those of a deny and an ask,
// and none of an allow.
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

// decisionOf returns the decision of a rule that matches.
func decisionOf(r *Rule) Decision {
	// An unreadable rule says how to get rid of its effect.
	why := "the rule " + r.String()
	if r.unreadable {
		why = "the rule " + messages.Line(r.Text, 80) + " cannot be read, and until it can everything is denied"
	}
	return Decision{Verdict: r.Verdict, Rule: r.Text, Source: r.Source, Why: withSource(why, r.Source), ByRule: true,
		Settled: r.Verdict == Ask}
}

// withSource adds the place of a rule to a reason, if it has one.
func withSource(why string, s Source) string {
	if place := s.String(); place != "" {
		return fmt.Sprintf("%s (%s)", why, place)
	}
	return why
}

// defaultDecision returns the decision about a call that no rule matches. A default of deny is not softened by annotations that say
// "destructive", which would ask.
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

// Server returns the decision about reading what a server offers beside tools, its resources and prompts: deny if a rule denies
// everything of the server, else allow. An ask rule or a default prevents no reading.
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
