package main

import (
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/failure"
	"github.com/mcpvisor/mcpvisor/messages"
)

// notConnectedError is why nothing can be asked of a server, as the error of a command.
func notConnectedError(st messages.Status) *messages.Error {
	e := &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: st.Class, Server: st.Name,
		Challenge: st.Challenge}
	switch st.Status {
	case messages.Disabled:
		e.Class, e.Text, e.Err = messages.ClassInvalid, "it is disabled", messages.ErrDisabled
	case messages.NeedsAuth:
		e.Class, e.Text = messages.ClassUnauthorized, "it needs credentials"
	case messages.Failed:
		e.Text = "it is not connected"
	case messages.Pending, messages.Connected:
		e.Class, e.Text = messages.ClassTimeout, "it is not connected yet ("+messages.Line(st.Reason, 100)+")"
	}
	if st.Error != "" {
		e.Text += ": " + messages.Line(st.Error, 400)
	}
	if f := statusFix(st); !saysWhatToDo(st.Error) && !strings.Contains(st.Error, f) {
		e.Fix = f
	}
	return e
}

// unreachableError is why nothing can be asked of a server, with the time until it is tried again, if a running mcpvisor up will.
func (p *project) unreachableError(st messages.Status) *messages.Error {
	e := notConnectedError(st)
	if p.up != nil && st.NextAttempt != nil {
		e.RetryAfter = max(time.Until(*st.NextAttempt), 0)
	}
	return e
}

// saysWhatToDo reports whether an error ends with what to do. What the server said of itself is no such thing.
func saysWhatToDo(text string) bool {
	for _, theirs := range []string{"; its last words: ", "the server rejected "} {
		text, _, _ = strings.Cut(text, theirs)
	}
	return strings.Contains(text, "; ")
}

// statusFix is what a person can do about a server that is not connected, in a clause; empty if its error says it already.
func statusFix(st messages.Status) string {
	name := shellWord(st.Name)
	switch st.Status {
	case messages.Connected:
		return ""
	case messages.Disabled:
		return "enable it with: mcpvisor enable " + name
	case messages.Pending:
		switch {
		case st.Step == messages.Idle:
			return "it is lazy: its first use connects it"
		case st.Error != "" && st.Class != messages.ClassTimeout:
			return failureFix(st)
		}
		if known := failure.ExplainSilence(st.StderrTail); known.Name != "" { // more time does not help
			return known.String()
		}
		return "give it more time with --wait, or a longer connectTimeout"
	case messages.NeedsAuth:
		if st.Config == nil || st.Config.AuthKind() == messages.AuthOAuth {
			return "sign in with: mcpvisor login " + name
		}
		return "put a valid token into its headers or auth, then run: mcpvisor reconnect " + name
	case messages.Failed:
	}
	return failureFix(st)
}

// statusAdvice is what a person can do, in sentences, for `why`. running says that somebody keeps the server.
func statusAdvice(st messages.Status, withheld []string, running bool) []string {
	var out []string
	if f := statusFix(st); f != "" {
		out = append(out, asSentence(f))
	}
	if n := len(st.ChangedTools); n > 0 {
		out = append(out, "See what changed in its tools with: mcpvisor diff "+shellWord(st.Name)+
			"; accept it with: mcpvisor approve "+shellWord(st.Name)+".")
	}
	failed := st.Status == messages.Failed || st.Status == messages.Pending && st.Error != ""
	if failed && len(withheld) > 0 && childEnvMatters[st.Class] {
		out = append(out, "If it needs a variable of your environment, declare it: \"env\": {\"NAME\": \"${NAME}\"}. "+
			"It does not see "+messages.Line(strings.Join(withheld, ", "), 0)+".")
	}
	if failed && st.Config != nil && st.Config.Isolation.Asks() && childEnvMatters[st.Class] {
		out = append(out, "It runs isolated: if its last words are of permissions, memory or a network, allow what it needs in "+
			"\"isolation\" of its entry. See what that is now: mcpvisor get "+shellWord(st.Name)+".")
	}
	if running && st.Retry == messages.RetryNever && st.Status == messages.Failed {
		out = append(out, "It is not tried again by itself. After a change: mcpvisor reconnect "+shellWord(st.Name)+".")
	}
	return out
}

// childEnvMatters are the classes of failures that a missing variable can cause.
var childEnvMatters = map[messages.Class]bool{
	messages.ClassExited: true, messages.ClassTimeout: true, messages.ClassProtocol: true,
	messages.ClassUnauthorized: true,
}

// asSentence begins with a capital letter and ends with a full stop.
func asSentence(clause string) string {
	if clause == "" {
		return ""
	}
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}
