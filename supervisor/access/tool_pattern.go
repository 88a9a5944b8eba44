package access

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// toolPattern is the part of a rule that names the tools that it concerns.
type toolPattern struct {
	// server and tool are the two parts. server is literal in an allow; tool may hold a star, and is "*" for a whole server.
	server, tool string
	// qualified is the text of a rule that begins with mcp__: it may also be the name under which a tool is offered.
	qualified string
	// pattern, if not empty, is a pattern for the whole of mcp__server__tool; server and tool are empty then.
	pattern string
	// all says that the rule concerns every tool.
	all bool
	// matchesAllReadings is set for a deny and an ask, which match every way to read a name.
	matchesAllReadings bool
}

const (
	// prefix begins every qualified name; literal is the reason why a wider allow is refused.
	prefix  = "mcp__"
	literal = "an allow may have a * only after a literal server"
)

// parseToolPattern reads the part of a rule before the parentheses. fault and fix are empty for one that can be read.
func parseToolPattern(v Verdict, text string) (n toolPattern, fault, fix string) {
	n.matchesAllReadings = v != Allow
	switch {
	case text == "*" || text == "*:*" || text == prefix+"*":
		if v == Allow {
			return n, literal, "write mcp__github__* for each server, or set the default to allow"
		}
		n.pattern, n.all = prefix+"*", true
		return n, "", ""
	case strings.HasPrefix(text, prefix):
		return readQualified(v, n, text)
	case text == "mcp" || strings.HasPrefix(text, "mcp_"):
		return n, "a name of a tool begins with mcp and two underscores", howToWrite
	}
	// The tool is what follows the last colon, since server ids may have colons.
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return n, "it names no server and no tool", howToWrite
	}
	n.server, n.tool = text[:i], text[i+1:]
	switch {
	case strings.TrimSpace(n.server) == "":
		return n, "the server before the colon is missing", howToWrite
	case strings.TrimSpace(n.tool) == "":
		return n, "the tool after the colon is missing", "write " + n.server + ":* for the whole server"
	case v == Allow && strings.Contains(n.server, "*"):
		return n, literal, "write " + prefix + "github__* for each server"
	}
	return n, "", ""
}

// readQualified reads a rule that begins with mcp__.
func readQualified(v Verdict, n toolPattern, text string) (toolPattern, string, string) {
	n.qualified = text
	rest := text[len(prefix):]
	if strings.Contains(rest, ":") {
		return n, "a name that begins with mcp__ holds no colon", howToWrite
	}
	if rest == "" {
		return n, "the server after mcp__ is missing", howToWrite
	}
	// The first two underscores end the server; an id with such underscores needs the other form.
	server, tool, two := strings.Cut(rest, "__")
	switch {
	case server == "":
		return n, "the server after mcp__ is missing", howToWrite
	case two && tool == "":
		return n, "the tool after the last two underscores is missing", "write " + prefix + server + "__* for the whole server"
	case v == Allow && strings.Contains(server, "*"):
		return n, literal, "write mcp__github__* for each server"
	case strings.Contains(server, "*"):
		n.pattern = text
		return n, "", ""
	}
	n.server, n.tool = server, tool
	// Without a tool the rule means the whole server.
	if !two {
		n.tool = "*"
	}
	if v == Allow && two && !strings.Contains(tool, "*") && nameOnly(text) {
		// The text may be the name, with its hash, under which another tool is offered: then it means that tool.
		if _, _, plain := (messages.Naming{}).Split(text); !plain {
			n.server = ""
		}
	}
	return n, "", ""
}

// nameOnly reports whether text has only the characters of a name under which a tool is offered.
func nameOnly(text string) bool { return sanitizeName(text) == text }

// matchesTool reports whether a rule concerns a tool. qualified is the name under which the tool is offered.
func (n *toolPattern) matchesTool(server, tool, qualified string) bool {
	switch {
	case n.all:
		return true
	case n.pattern != "":
		return messages.MatchPattern(n.pattern, prefix+server+"__"+tool) || messages.MatchPattern(n.pattern, qualified) || n.coversServer(server)
	case n.qualified != "" && qualified != "" && n.qualified == qualified:
		return true
	case !n.matchesAllReadings:
		return n.server == server && messages.MatchPattern(n.tool, tool)
	}
	// A colon may belong to the tool's own name as well, so the rule is compared with both parts joined.
	if n.qualified == "" {
		return messages.MatchPattern(n.server+":"+n.tool, server+":"+tool) || n.coversServer(server)
	}
	// Two underscores may belong to the server's name, and the person may have seen a name in which characters were replaced:
	// a deny that was meant for one spelling must not be evaded by another.
	return n.coversServer(server) || messages.MatchPattern(n.qualified, prefix+server+"__"+tool) ||
		messages.MatchPattern(n.qualified, prefix+sanitizeName(server)+"__"+sanitizeName(tool)) || messages.MatchPattern(n.qualified, qualified)
}

// coversServer reports whether a rule without conditions concerns every tool of a server, under all names.
func (n *toolPattern) coversServer(server string) bool {
	switch {
	case n.all:
		return true
	case n.pattern != "":
		return coversWholeServer(n.pattern, server) || coversWholeServer(n.pattern, sanitizeName(server))
	case !n.matchesAllReadings:
		return n.tool == "*" && n.server == server
	case n.qualified != "":
		return coversWholeServer(n.qualified, server) || coversWholeServer(n.qualified, sanitizeName(server))
	}
	return onlyStars(n.tool) && messages.MatchPattern(n.server, server)
}

// coversWholeServer reports whether a pattern is mcp__server, or matches any name that begins with mcp__server__.
func coversWholeServer(pattern, server string) bool {
	return messages.MatchPattern(pattern, prefix+server) || strings.HasSuffix(pattern, "*") && messages.MatchPattern(pattern, prefix+server+"__")
}

func onlyStars(s string) bool { return s != "" && strings.Trim(s, "*") == "" }

// sanitizeName returns a part of a name as messages.Naming writes it in qualified names.
func sanitizeName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
}

// offeredAs returns the name under which a tool is offered if the configuration gives no other.
func offeredAs(server, tool string) string { return messages.Naming{}.Tool(server, tool) }
