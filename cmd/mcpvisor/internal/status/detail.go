// Package status says in words how a server fares: its phase, what it starts, what is wrong, and what a person can do about it.
//
// How it fits: the functions take a [messages.Status] or a [messages.Spec] and return text for one line. They read no file, ask no
// server and know no options, so that list, why, approve and the table of up describe a server in the same words. Texts of servers
// are cut and escaped here.
//
// Guarantees: one line, whatever a server sent, and the same words for the same state in every command. The functions are pure; the
// caller gives the time.
//
// Not promised: that the words stay. Scripts read the JSON forms.
package status

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// DetailOf returns what there is to say about a server on one line. Texts of the server are bounded and escaped.
func DetailOf(st messages.Status, now time.Time) string {
	var parts []string
	switch st.Status {
	case messages.Connected:
		if st.Reason != "" {
			parts = append(parts, messages.Line(st.Reason, 300))
		}
		if i := st.ServerInfo; i != nil {
			parts = append(parts, strings.TrimSpace(messages.Line(i.Name, 60)+" "+messages.Line(i.Version, 30)))
		}
		// With "bestEffort" a server runs although parts of its isolation are missing on this machine.
		if e := st.Isolation; e != nil && len(e.Missing) > 0 {
			parts = append(parts, "isolated without "+messages.Line(strings.Join(e.Missing, ", "), 200))
		} else if e != nil {
			parts = append(parts, "isolated")
		}
		if n := len(st.Quarantined); n > 0 {
			parts = append(parts, terminal.CountOf(n, "tool")+" quarantined")
		}
		if len(st.ChangedTools) > 0 {
			parts = append(parts, ChangedText(st))
		}
	case messages.Disabled:
		if st.Warm {
			parts = append(parts, "its connection is kept")
		}
	case messages.Failed, messages.NeedsAuth, messages.Pending:
		if st.Status == messages.Pending && st.Reason != "" {
			parts = append(parts, messages.Line(st.Reason, 200))
		}
		if st.Error != "" {
			parts = append(parts, messages.Line(st.Error, 300))
		}
		if at := st.NextAttempt; at != nil && st.Retry == messages.RetryParked {
			parts = append(parts, "parked, probe "+terminal.RelativeTime(*at, now))
		}
	}
	if st.Remark != "" {
		parts = append(parts, messages.Line(st.Remark, 300))
	}
	return strings.Join(parts, " · ")
}

// ChangedText says how many tools of a server changed, and which command shows how.
func ChangedText(st messages.Status) string {
	return terminal.CountOf(len(st.ChangedTools), "tool") + " changed since approved: mcpvisor diff " + terminal.ShellWord(st.Name)
}

// TransportText says how a server is reached, on one line and without secrets. The config of a status is redacted.
func TransportText(st messages.Status) string {
	c := st.Config
	if c == nil {
		return ""
	}
	parts := []string{string(st.Transport)}
	switch {
	case c.Command != "":
		words := []string{terminal.ShellWord(c.Command)}
		for _, a := range c.Args {
			words = append(words, terminal.ShellWord(a))
		}
		parts = append(parts, messages.Line(strings.Join(words, " "), 200))
	case c.URL != "":
		parts = append(parts, messages.Line(c.URL, 200))
	}
	if st.Scope != "" {
		parts = append(parts, string(st.Scope)+" scope")
	}
	return strings.Join(parts, " · ")
}

// IsolationText says what a running server is kept from; "" for a server that does not run or is not isolated.
func IsolationText(st messages.Status) string {
	if st.Isolation == nil {
		return ""
	}
	return "isolated: " + messages.Line(st.Isolation.String(), 600)
}

// StartText says what a spec starts or dials: without secrets, with the names of its variables, and with what it runs isolated
// from. The texts of the entry are cut and escaped, because another person may have written them.
func StartText(spec messages.Spec) string {
	spec = spec.Redacted()
	if spec.Invalid != "" {
		return "nothing: " + messages.Line(spec.Invalid, 200)
	}
	text := TransportText(messages.Status{Config: &spec, Transport: spec.Kind()})
	var env []string
	for k := range spec.Env {
		env = append(env, messages.Line(k, 60))
	}
	if slices.Sort(env); len(env) > 0 {
		text += " · env " + strings.Join(env, ", ")
	}
	if spec.Isolation.Asks() {
		text += " · isolated: " + messages.Line(isolation.WantedText(spec.Isolation), 400)
	}
	return text + authInputs(spec.Auth)
}

// authInputs says which program auth runs and which variables and files it reads. It belongs to an approval because the entry
// of a remote server may start a program on this machine, too.
func authInputs(a *messages.Auth) string {
	if a == nil {
		return ""
	}
	var text string
	if a.Command != "" {
		words := []string{a.Command}
		if a.Args != nil {
			words[0] = terminal.ShellWord(a.Command)
		}
		for _, arg := range a.Args {
			words = append(words, terminal.ShellWord(arg))
		}
		text += " · runs for its credentials: " + messages.Line(strings.Join(words, " "), 200)
	}
	for _, from := range []struct{ what, name string }{
		{"the variable", a.FromEnv}, {"the file", a.TokenPath}, {"the file", a.ClientKeyFile},
	} {
		if from.name != "" {
			text += " · reads " + from.what + " " + messages.Line(from.name, 200)
		}
	}
	return text
}
