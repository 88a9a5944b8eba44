package status

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/actors/failure"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// NotConnectedError returns the error of a command that could not ask a server anything, with what the person can do about it.
// Nothing was sent, so that the outcome is OutcomeNotSent.
func NotConnectedError(st messages.Status) *messages.Error {
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
	// A fix is added only if the error does not name one already; two different pieces of advice confuse.
	if f := statusFix(st); !saysWhatToDo(st.Error) && !strings.Contains(st.Error, f) {
		e.Fix = f
	}
	return e
}

// saysWhatToDo reports whether an error of this program ends with advice, which follows a "; ". The words of the server itself
// are cut off before, because a semicolon in them means nothing.
func saysWhatToDo(text string) bool {
	for _, theirs := range []string{"; its last words: ", "the server rejected "} {
		text, _, _ = strings.Cut(text, theirs)
	}
	return strings.Contains(text, "; ")
}

// statusFix returns what a person can do about a server that is not connected, as a clause without a full stop; "" if its error
// says it already or the server is connected.
func statusFix(st messages.Status) string {
	name := terminal.ShellWord(st.Name)
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
		if st.Config.Auth != nil && st.Config.Auth.Command != "" {
			return "run the command of its credentials once in a terminal, where it can ask (mcpvisor get " + name + " names the file it stands in), then run: mcpvisor reconnect " + name
		}
		return "put a valid token into its headers or auth, then run: mcpvisor reconnect " + name
	case messages.Failed:
	}
	return failureFix(st)
}

// Advice returns what a person can do, in sentences, for the command why. withheld names the variables of the environment
// that the server does not see; running says that a running mcpvisor up keeps the server.
func Advice(st messages.Status, withheld []string, running bool) []string {
	var out []string
	if f := statusFix(st); f != "" {
		out = append(out, terminal.AsSentence(f))
	}
	if n := len(st.ChangedTools); n > 0 {
		out = append(out, "See what changed in its tools with: mcpvisor diff "+terminal.ShellWord(st.Name)+
			"; accept it with: mcpvisor approve "+terminal.ShellWord(st.Name)+".")
	}
	// A pending server with an error has failed and is between two attempts.
	failed := st.Status == messages.Failed || st.Status == messages.Pending && st.Error != ""
	if failed && len(withheld) > 0 && childEnvMatters[st.Class] {
		out = append(out, "If it needs a variable of your environment, declare it: \"env\": {\"NAME\": \"${NAME}\"}. "+
			"It does not see "+messages.Line(strings.Join(withheld, ", "), 0)+".")
	}
	if failed && st.Config != nil && st.Config.Isolation.Asks() && childEnvMatters[st.Class] {
		out = append(out, "It runs isolated: if its last words are of permissions, memory or a network, allow what it needs in "+
			"\"isolation\" of its entry. See what that is now: mcpvisor get "+terminal.ShellWord(st.Name)+".")
	}
	if running && st.Retry == messages.RetryNever && st.Status == messages.Failed {
		out = append(out, "It is not tried again by itself. After a change: mcpvisor reconnect "+terminal.ShellWord(st.Name)+".")
	}
	return out
}

// childEnvMatters holds the classes of failures that a missing variable, or a limit of isolation, can cause.
var childEnvMatters = map[messages.Class]bool{
	messages.ClassExited: true, messages.ClassTimeout: true, messages.ClassProtocol: true,
	messages.ClassUnauthorized: true,
}
