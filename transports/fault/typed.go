package fault

import (
	"fmt"
	"time"
)

// An Option says of a rule which messages it is about, how often it happens and when.
type Option func(*Rule)

// Drop loses a message on its way, and its sender believes that it has arrived: by default an answer, so that the call has
// run; On(ToServer) loses the request instead. Either way the outcome of a call is unknown to its caller when its time is over.
func Drop(o ...Option) Rule { return newRule("drop", nil, o) }

// Delay makes an answer come later by d, or with On(ToServer) a request. As a text it is the fault latency.
func Delay(d time.Duration, o ...Option) Rule {
	r := newRule("latency", map[string]string{"by": d.String()}, o)
	if d == 0 {
		r.refuse("Delay(0) delays nothing: give a time")
	}
	return r
}

// Cut lets half of an answer arrive and ends the connection behind it: the call has run, and its outcome is unknown.
func Cut(o ...Option) Rule { return newRule("cut", nil, o) }

// Close ends the server's side: at once, or before a message that the options name arrives, so that a call has not been sent.
// On(ToClient) ends it in the place of an answer: then the call has run, and its outcome is unknown.
func Close(o ...Option) Rule { return newRule("close", nil, o) }

// Duplicate lets the answer of a call come twice. As a text it is the fault duplicate-response.
func Duplicate(o ...Option) Rule { return newRule("duplicate-response", nil, o) }

// Hang keeps the answer of a call back for ever: the call has run, and its outcome is unknown when its time is over. As a text
// it is the fault hang-call.
func Hang(o ...Option) Rule { return newRule("hang-call", nil, o) }

// Die runs a call and ends the server before the answer: the outcome of the call is unknown at once. As a text it is the fault
// die-mid-call.
func Die(o ...Option) Rule { return newRule("die-mid-call", nil, o) }

// Fail lets a call run, and its answer say that the tool has failed with this text. As a text it is the fault tool-error.
func Fail(text string, o ...Option) Rule {
	return newRule("tool-error", map[string]string{"text": text}, o)
}

// newRule returns the rule of a fault of the catalogue. What an option gives is checked where the rule is used, as that of a text.
func newRule(fault string, with map[string]string, options []Option) Rule {
	r := Rule{Fault: fault, With: with}
	for i, o := range options {
		if o == nil {
			r.refuse(fmt.Sprintf("option %d of the fault %s is nil", i+1, fault))
			continue
		}
		o(&r)
	}
	return r
}

// refuse keeps the first reason for which a rule cannot be used.
func (r *Rule) refuse(why string) {
	if r.problem == "" {
		r.problem = why
	}
}

// refuseUnless refuses an option without a value: in a Rule that would mean no limit.
func (r *Rule) refuseUnless(ok bool, option string) {
	if !ok {
		r.refuse(option + " limits nothing: leave it out, or give a value")
	}
}

// On limits a rule to a method, as On("tools/call"), or to a direction, as On(ToServer). A method may be a pattern or several
// with commas between, see [Rule]. Both may be given.
func On[T string | Direction](what T) Option {
	return func(r *Rule) {
		if d, ok := any(what).(Direction); ok {
			r.Direction = d
			return
		}
		r.refuseUnless(what != T(""), `On("")`)
		r.On = string(what)
	}
}

// Tool limits a rule to a tool, or to those that a pattern fits.
func Tool(name string) Option {
	return func(r *Rule) {
		r.refuseUnless(name != "", `Tool("")`)
		if r.Tool != "" && r.Tool != name {
			r.refuse(fmt.Sprintf("Tool is given twice, as %q and as %q: write Tool(%q) for both", r.Tool, name, r.Tool+","+name))
		}
		r.Tool = name
	}
}

// Nth hits every n-th message that the rule fits. The third alone is Nth(3), Times(1).
func Nth(n int) Option {
	return func(r *Rule) { r.refuseUnless(n != 0, "Nth(0)"); r.Nth = n }
}

// Times hits at most n messages in all, and n is at least 1.
func Times(n int) Option {
	return func(r *Rule) { r.refuseUnless(n != 0, "Times(0)"); r.Times = n }
}

// Chance hits each message with a probability above 0, by the seed of the control.
func Chance(p float64) Option {
	return func(r *Rule) { r.refuseUnless(p != 0, "Chance(0)"); r.Chance = p }
}

// After begins a rule some time after it was added, and For ends it after a time.
func After(d time.Duration) Option { return func(r *Rule) { r.At = Duration(d) } }

// For ends a rule some time after its begin.
func For(d time.Duration) Option {
	return func(r *Rule) { r.refuseUnless(d != 0, "For(0)"); r.For = Duration(d) }
}
