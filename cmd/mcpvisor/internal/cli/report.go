package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// failureReport is the JSON object that a failing command prints with --json, on one line, the last of standard error. Standard
// output has the answer, as far as there is one.
type failureReport struct {
	Schema   int          `json:"schema"`
	Error    failureEntry `json:"error"`
	ExitCode int          `json:"exitCode"`
	// More lists the other failures of the command, in the order in which they happened.
	More []failureEntry `json:"more,omitempty"`
}

// classFailed is the class of a failure that is only known as a sentence.
const classFailed messages.Class = "failed"

// failureEntry is one failure of the report. Empty fields are left out.
type failureEntry struct {
	Class   messages.Class   `json:"class"`
	Outcome messages.Outcome `json:"outcome,omitempty"`
	Server  string           `json:"server,omitempty"`
	Tool    string           `json:"tool,omitempty"`
	Text    string           `json:"text"`
	Fix     string           `json:"fix,omitempty"`
	// RetryAfterMs is the time in milliseconds until another attempt makes sense; 0, and missing, if that is not known.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
	// Code is that of the server's JSON-RPC error; 0 without one.
	Code      int                 `json:"code,omitempty"`
	Challenge *messages.Challenge `json:"challenge,omitempty"`
}

// failureOf converts an error to its entry. A messages.Error and a config.Problem have fields for it; the class of any other
// error follows from its exit code, and its text is split at the advice.
func failureOf(err error) failureEntry {
	var e *messages.Error
	var p config.Problem
	switch {
	case errors.As(err, &e):
		return failureEntry{e.Class, e.Outcome, e.Server, e.Tool, messages.Printable(e.Text), messages.Printable(e.Fix),
			e.RetryAfter.Milliseconds(), e.Code, e.Challenge}
	case errors.As(err, &p):
		w := failureEntry{Class: messages.ClassConfig, Server: p.Server, Fix: messages.Printable(p.Fix)}
		p.Fix = ""
		w.Text = messages.Printable(p.Error())
		return w
	}
	w := failureEntry{Class: classFailed}
	switch exit.CodeOf(err) {
	case exit.Usage:
		w.Class = messages.ClassInvalid
	case exit.Interrupted:
		w.Class = messages.ClassCanceled
	}
	w.Text, w.Fix = splitAdvice(messages.Printable(err.Error()))
	return w
}

// adviceVerbs lists the beginnings of clauses that say what to do, in this program's own sentences.
var adviceVerbs = []string{"see: ", "did you mean ", "write ", "use ", "run ", "give ", "add ", "set ", "choose ", "start ", "name "}

// splitAdvice splits a sentence of this program at the last "; " before a clause of advice. Without one todo is empty.
func splitAdvice(text string) (happened, todo string) {
	for end := len(text); ; {
		at := strings.LastIndex(text[:end], "; ")
		if at < 0 {
			return text, ""
		}
		clause := text[at+len("; "):]
		if slices.ContainsFunc(adviceVerbs, func(words string) bool { return strings.HasPrefix(clause, words) }) {
			return text[:at], clause
		}
		end = at
	}
}

// failJSON prints the report of a failing run. err may be nil or say nothing, if the answer on standard output says it;
// failures that did not end the command are reported all the same.
func (o *Options) failJSON(err error) {
	all := o.failures.list()
	if err != nil && err.Error() != "" {
		all = append([]error{err}, all...)
	}
	if len(all) == 0 {
		return
	}
	f := failureReport{Schema: terminal.JSONSchema, Error: failureOf(all[0])}
	if err != nil {
		f.ExitCode = exit.CodeOf(err)
	}
	for _, e := range all[1:] {
		f.More = append(f.More, failureOf(e))
	}
	line, fault := json.Marshal(f)
	if fault != nil {
		line = []byte(fmt.Sprintf(`{"schema":%d,"error":{"class":"failed","text":"it cannot be written as JSON"},"exitCode":%d}`, terminal.JSONSchema, f.ExitCode))
	}
	fmt.Fprintln(o.Err, terminal.EscapeUnsafe(string(line)))
}

// wantsJSON reports whether a command line that was not understood asks for JSON. It looks at the words themselves, because
// flags behind the error were not parsed.
func wantsJSON(cmd *cobra.Command, args []string) bool {
	if f := cmd.Flags().Lookup("json"); f != nil && f.Changed {
		return f.Value.String() == "true"
	}
	if at := slices.Index(args, "--"); at >= 0 {
		args = args[:at]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "-j")
}
