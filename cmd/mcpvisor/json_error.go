package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// failureReport is how a command fails with --json: one object on one line, the last of standard error. Standard output has the
// answer, as far as there is one.
type failureReport struct {
	Schema   int          `json:"schema"`
	Error    failureEntry `json:"error"`
	ExitCode int          `json:"exitCode"`
	// More are the other failures of the command.
	More []failureEntry `json:"more,omitempty"`
}

// classFailed is the class of a failure that is only a sentence.
const classFailed messages.Class = "failed"

// failureEntry is one failure.
type failureEntry struct {
	Class   messages.Class   `json:"class"`
	Outcome messages.Outcome `json:"outcome,omitempty"`
	Server  string           `json:"server,omitempty"`
	Tool    string           `json:"tool,omitempty"`
	Text    string           `json:"text"`
	Fix     string           `json:"fix,omitempty"`
	// RetryAfterMs is when it makes sense to try again; missing if nobody knows.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
	// Code is that of the server's JSON-RPC error.
	Code      int                 `json:"code,omitempty"`
	Challenge *messages.Challenge `json:"challenge,omitempty"`
}

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
	switch codeOf(err) {
	case exitUsage:
		w.Class = messages.ClassInvalid
	case exitInterrupted:
		w.Class = messages.ClassCanceled
	}
	w.Text, w.Fix = splitAdvice(messages.Printable(err.Error()))
	return w
}

// adviceVerbs are the first words of clauses that say what to do.
var adviceVerbs = []string{"see: ", "did you mean ", "write ", "use ", "run ", "give ", "add ", "set ", "choose ", "start ", "name "}

// splitAdvice takes a sentence apart, as those of this program are written: what happened, and then what to do.
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

// failJSON writes how a command failed. err is nil, or says nothing, if its answer says it; what did not end the command is told
// all the same.
func (o *options) failJSON(err error) {
	all := o.failures.list()
	if err != nil && err.Error() != "" {
		all = append([]error{err}, all...)
	}
	if len(all) == 0 {
		return
	}
	f := failureReport{Schema: jsonSchema, Error: failureOf(all[0])}
	if err != nil {
		f.ExitCode = codeOf(err)
	}
	for _, e := range all[1:] {
		f.More = append(f.More, failureOf(e))
	}
	line, fault := json.Marshal(f)
	if fault != nil {
		line = []byte(fmt.Sprintf(`{"schema":%d,"error":{"class":"failed","text":"it cannot be written as JSON"},"exitCode":%d}`, jsonSchema, f.ExitCode))
	}
	fmt.Fprintln(o.err, escapeUnsafe(string(line)))
}

// wantsJSON reports whether a command line that was not understood asks for JSON.
func wantsJSON(cmd *cobra.Command, args []string) bool {
	if f := cmd.Flags().Lookup("json"); f != nil && f.Changed {
		return f.Value.String() == "true"
	}
	if at := slices.Index(args, "--"); at >= 0 {
		args = args[:at]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "-j")
}
