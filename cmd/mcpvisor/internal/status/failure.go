package status

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/actors/failure"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// failureFix returns what can be done about the last failure of a server, or "" if the error says it. It looks at the text of
// the error besides the class, because several causes share one class.
func failureFix(st messages.Status) string {
	local := st.Transport == messages.Stdio
	says := func(text string) bool { return strings.Contains(st.Error, text) }
	switch st.Class {
	case messages.ClassDenied:
		if says("mcpvisor approve") {
			return "look at what it would run, and approve it with: mcpvisor approve " + terminal.ShellWord(st.Name)
		}
		return "a rule of the configuration refuses it: change the rule, or ask whoever wrote it"
	case messages.ClassForbidden:
		if says("no credentials were sent") {
			return "if its words name a host or an address, write that into its url; if it wants credentials, give them in headers or auth"
		}
		return "see whether the credentials of its entry are the right ones, and ask for the right that they lack"
	case messages.ClassProtocol:
		return protocolFix(st)
	case messages.ClassTimeout:
		// failure.ExplainSilence knows programs that live and do not answer, such as one that waits for a person; its advice
		// beats a general one.
		if known := failure.ExplainSilence(st.StderrTail); known.Name != "" && says(known.Fix) {
			return known.Fix
		}
		if local {
			return "see whether it works when started by hand; a slow one needs a longer connectTimeout"
		}
		return "see whether its url answers at all, also through a proxy; a slow one needs a longer connectTimeout"
	case messages.ClassExited:
		return exitFix(st)
	case messages.ClassExhausted:
		if says("gave its place") { // its process or connection slot went to servers that were waiting
			return "disable the servers that never answer; this one is tried again by itself"
		}
	}
	return fixes[st.Class]
}

// fixes holds the advice for classes with one cause each. For a class that is missing here the error itself says what to do.
var fixes = map[messages.Class]string{
	messages.ClassConfig:      "correct its entry as the error says; mcpvisor config check shows what else is wrong in the files",
	messages.ClassMissing:     "install it, or correct the command in the configuration",
	messages.ClassUnsupported: "update the server, or mcpvisor",
	messages.ClassNetwork:     "see whether the server runs, and whether the url is right",
	messages.ClassThrottled:   "the server asks for patience: it is tried again when it said",
	messages.ClassExhausted:   "this machine has no room for more processes or files: end some, or raise the limit",
	messages.ClassPanic:       "this is a defect of mcpvisor: report it with the log of --log-level debug",
}

// protocolFix tells apart a server that rejects the handshake in words of its own, one that writes other text than JSON-RPC to
// standard output, and a URL that is no MCP endpoint.
func protocolFix(st messages.Status) string {
	says := func(text string) bool { return strings.Contains(st.Error, text) }
	switch {
	case says("the server rejected "):
		return "the server itself refuses, in the words above: give it what they ask for (env, args, headers), or ask its author"
	case says("that are no JSON-RPC messages"), says("a line that does not end"):
		return "what it writes to standard output must be MCP alone: let it log to standard error, or report it to its author"
	case st.Transport.Remote():
		return "see whether the url is that of an MCP endpoint, and of the right type (http, sse, websocket)"
	}
	return "its answers break the protocol: try another version of the server, and report the error to its author"
}

// exitFix chooses the advice by what the program wrote to standard error before it ended, and by the signal that ended it.
func exitFix(st messages.Status) string {
	if known := failure.Explain(st.StderrTail); known.Name != "" && strings.Contains(st.Error, known.Fix) {
		return known.Fix
	}
	switch {
	case strings.Contains(st.Error, "by the signal killed"):
		return "something else ended it: often the system because memory ran out, or a limit of its container or \"isolation\""
	case strings.Contains(st.Error, "by the signal segmentation fault"):
		return "it has a defect: try another version of it, or one that is made for this system"
	case strings.TrimSpace(st.StderrTail) == "":
		return "start its command by hand to see why it ends: it wrote nothing to standard error"
	}
	return "read what it wrote (mcpvisor why " + terminal.ShellWord(st.Name) + " shows it), or start its command by hand to see more"
}
