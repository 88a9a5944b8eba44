package status

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestAdviceIsTrue checks that advice follows the cause and not only the class: each row would get advice that is wrong if the
// class alone decided.
func TestAdviceIsTrue(t *testing.T) {
	missing := "node:internal/modules/cjs/loader:1210\n\nError: Cannot find module '/home/user/dist/index.js'\n    at x\n\nNode.js v20.20.2\n"
	for _, c := range []struct {
		what    string
		st      messages.Status
		want    string
		mustNot string
	}{
		{"the server refuses the handshake", messages.Status{Class: messages.ClassProtocol, Transport: messages.Stdio,
			Error: "the server rejected initialize: no API key; see the manual (code -32000)"}, "The server itself refuses", "standard output"},
		{"it writes noise", messages.Status{Class: messages.ClassProtocol, Transport: messages.Stdio,
			Error: "the server wrote more than 100 lines in a second that are no JSON-RPC messages; make the server log to standard error instead of standard output"},
			"standard output must be MCP alone", "refuses"},
		{"a web page answers", messages.Status{Class: messages.ClassProtocol, Transport: messages.HTTP, Error: "x answered with a redirect (302)"},
			"url is that of an MCP endpoint", "standard output"},
		{"its answer names no version", messages.Status{Class: messages.ClassProtocol, Transport: messages.Stdio,
			Error: "the server's answer to initialize names no protocol version"}, "break the protocol", "standard output"},
		{"403 and nothing was sent", messages.Status{Class: messages.ClassForbidden, Transport: messages.HTTP,
			Error: "localhost forbids this (403 Forbidden): Access is only allowed at localhost:3005; no credentials were sent: …"}, "name a host or an address", "the right that they lack"},
		{"403 and a token was sent", messages.Status{Class: messages.ClassForbidden, Transport: messages.HTTP,
			Error: "x forbids this (403 Forbidden); the credentials that were sent do not suffice: …"}, "the right that they lack", "standard output"},
		{"it waits for approval", messages.Status{Class: messages.ClassDenied, Error: "not approved; look at .mcp.json and run `mcpvisor approve x`"}, "approve", "rule"},
		{"a rule refuses it", messages.Status{Class: messages.ClassDenied, Error: "deniedServers refuses it"}, "change the rule", "approve"},
		{"a silent program", messages.Status{Class: messages.ClassTimeout, Transport: messages.Stdio, Error: "no answer"}, "started by hand", "url"},
		{"a silent address", messages.Status{Class: messages.ClassTimeout, Transport: messages.HTTP, Error: "no answer"}, "url", "by hand"},
		{"a known end", messages.Status{Class: messages.ClassExited, Transport: messages.Stdio, StderrTail: missing,
			Error: `the process ended with exit status 1; node finds no file "/home/user/dist/index.js"; correct the path in "args"; if it is a result of a build, build it (npm install, npm run build)`},
			`orrect the path in "args"`, "by hand"},
		{"an older end is known", messages.Status{Class: messages.ClassExited, Transport: messages.Stdio, StderrTail: missing,
			Error: "the process was ended by the signal killed"}, "memory ran out", "args"},
		{"an unknown end", messages.Status{Class: messages.ClassExited, Transport: messages.Stdio, StderrTail: "bye\n",
			Error: "the process ended with exit status 1; its last words: bye"}, "mcpvisor why x", "memory"},
		{"an end without a word", messages.Status{Class: messages.ClassExited, Transport: messages.Stdio,
			Error: "the process ended with exit status 1"}, "wrote nothing", "mcpvisor why"},
		{"its place was given away", messages.Status{Class: messages.ClassExhausted, Error: "the attempt gave its place to servers that had none"},
			"never answer", "this machine"},
	} {
		c.st.Name, c.st.Status = "x", messages.Failed
		got := strings.Join(Advice(c.st, nil, false), " ")
		if !strings.Contains(got, c.want) || strings.Contains(got, c.mustNot) {
			t.Errorf("%s: %q, want %q and not %q", c.what, got, c.want, c.mustNot)
		}
	}
}

// TestAPendingServerThatSpeaksToOthersNeedsNoMoreTime checks the advice about a program that lives and will never answer: its
// standard error names the cause, and more time would not help.
func TestAPendingServerThatSpeaksToOthersNeedsNoMoreTime(t *testing.T) {
	st := messages.Status{Name: "x", Status: messages.Pending, Step: messages.Handshaking, Transport: messages.Stdio}
	if got := statusFix(st); !strings.Contains(got, "more time") {
		t.Error(got)
	}
	st.StderrTail = "Server listening on http://localhost:3000\n"
	if got := statusFix(st); !strings.Contains(got, "seems to be an HTTP server") || strings.Contains(got, "more time") {
		t.Error(got)
	}
}

// TestNotConnectedSaysOnceWhatToDo checks that the error of a call to a failed server has advice exactly once.
func TestNotConnectedSaysOnceWhatToDo(t *testing.T) {
	for text, want := range map[string]string{
		"the process ended with exit status 1; its last words: bye":           "start its command by hand",
		"the server rejected initialize: no key; see the manual (code -1)":    "",
		`the command "x" does not exist; install it, or give its full path`:   "",
		`the process ended with exit status 1; node finds no file "a"; do it`: "",
	} {
		e := NotConnectedError(messages.Status{Name: "x", Status: messages.Failed, Class: messages.ClassExited, Error: text})
		if !strings.Contains(e.Fix, want) || want == "" && saysWhatToDo(text) && e.Fix != "" {
			t.Errorf("%s: fix %q", text, e.Fix)
		}
	}
}

// TestAdviceForEveryClass checks that there is advice for every class of failures that has no error text with advice of its
// own.
func TestAdviceForEveryClass(t *testing.T) {
	own := map[messages.Class]bool{ // they do not make a server fail, or never without a text of their own
		messages.ClassNone: true, messages.ClassCanceled: true, messages.ClassInvalid: true, messages.ClassRejected: true,
		messages.ClassSession: true, messages.ClassUnauthorized: true, // needs-auth has its own
	}
	for _, class := range messages.Classes {
		st := messages.Status{Name: "x", Status: messages.Failed, Class: class, Error: "e"}
		if got := Advice(st, nil, false); len(got) == 0 && !own[class] {
			t.Errorf("no advice for class %q", class)
		}
	}
	for _, phase := range messages.Phases {
		st := messages.Status{Name: "x", Status: phase, Class: messages.ClassUnauthorized}
		if got := Advice(st, nil, true); (len(got) == 0) != (phase == messages.Connected || phase == messages.Failed) {
			t.Errorf("%s: %v", phase, got)
		}
	}
}
