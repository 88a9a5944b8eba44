package access

import (
	"fmt"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Verdict decides about a call: it is sent, refused, or the person is asked.
type Verdict string

// The verdicts. The empty one is no verdict.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// strictness orders the verdicts; the empty one is below allow.
func (v Verdict) strictness() int {
	switch v {
	case Deny:
		return 3
	case Ask:
		return 2
	case Allow:
		return 1
	}
	return 0
}

// Stricter returns the stricter of two verdicts.
func Stricter(a, b Verdict) Verdict {
	if b.strictness() > a.strictness() {
		return b
	}
	return a
}

// Source says where a rule stands. The zero value is the program itself.
type Source struct {
	File string `json:"file,omitempty"`
	// Line and Col count from 1.
	Line  int            `json:"line,omitempty"`
	Col   int            `json:"column,omitempty"`
	Scope messages.Scope `json:"scope,omitempty"`
}

// String returns the file with its line, and the scope: "mcp.json:3:14, user".
func (s Source) String() string {
	place := messages.Line(s.File, 0)
	if place != "" && s.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", place, s.Line, s.Col)
	}
	switch {
	case place == "":
		return string(s.Scope)
	case s.Scope == "":
		return place
	}
	return place + ", " + string(s.Scope)
}

// Rule is one rule that was read. Only Parse and Unreadable make one, so that its parts always agree.
type Rule struct {
	Verdict Verdict
	// Text is the rule as it was written.
	Text string
	// Source names the file and line of the rule; the code that read the rule sets it.
	Source Source

	// name has the part before the parentheses, conditions what is inside; unreadable rules have neither.
	name       toolPattern
	conditions []condition
	unreadable bool
}

// Unreadable reports whether the rule replaces one that could not be read.
func (r Rule) Unreadable() bool { return r.unreadable }

// Server returns the server that the rule names, and whether it names one: a rule with a star in its server's place does not.
func (r Rule) Server() (string, bool) {
	n := r.name
	if n.all || n.pattern != "" || strings.Contains(n.server, "*") {
		return "", false
	}
	if n.server == "" { // a name with its hash
		server, _, _ := strings.Cut(strings.TrimPrefix(n.qualified, prefix), "__")
		return server, server != ""
	}
	return n.server, true
}

// Concerns reports whether a rule that names a server can match tools of this one.
func (r Rule) Concerns(server string) bool {
	n := r.name
	if n.qualified == "" {
		return n.server == server || strings.HasPrefix(n.server+":", server+":")
	}
	return strings.HasPrefix(n.qualified+"__", prefix+server+"__") || strings.HasPrefix(n.qualified+"__", prefix+sanitizeName(server)+"__")
}

// Conditional reports whether the rule depends on arguments.
func (r Rule) Conditional() bool { return len(r.conditions) > 0 }

// String returns the rule with its verdict, fit for a terminal: "deny mcp__github".
func (r Rule) String() string { return string(r.Verdict) + " " + messages.Line(r.Text, 200) }

// MaxRule bounds the text of a rule, in bytes.
const MaxRule = 4096

// ParseError says what is wrong with a rule, and how to write it.
type ParseError struct {
	Rule, Text, Fix string
	// Foreign says that the rule is about a tool of Claude Code itself, such as Bash(rm:*), which no server offers.
	Foreign bool
}

// Error implements error.
func (e *ParseError) Error() string {
	return fmt.Sprintf("%q: %s; %s", messages.Line(e.Rule, 80), e.Text, e.Fix)
}

const howToWrite = "write mcp__github for a server, mcp__github__create_issue or github:create_issue for a tool"

// foreign are the tools of Claude Code itself, whose rules stand in the same lists as those about servers.
var foreign = map[string]bool{"Agent": true, "AskUserQuestion": true, "Bash": true, "BashOutput": true, "Edit": true,
	"EnterPlanMode": true, "ExitPlanMode": true, "Glob": true, "Grep": true, "KillBash": true, "KillShell": true, "LS": true,
	"LSP": true, "MultiEdit": true, "NotebookEdit": true, "NotebookRead": true, "PowerShell": true, "Read": true, "Skill": true,
	"SlashCommand": true, "Task": true, "TaskOutput": true, "TodoRead": true, "TodoWrite": true, "ToolSearch": true,
	"WebFetch": true, "WebSearch": true, "Write": true}

// Parse reads a rule. The error is a *ParseError. A text with unusual spaces or hidden characters is refused, because a person
// would read it as another rule.
func Parse(v Verdict, text string) (Rule, error) {
	fail := func(fault, fix string) (Rule, error) { return Rule{}, &ParseError{Rule: text, Text: fault, Fix: fix} }
	rule := Rule{Verdict: v, Text: text}
	switch {
	case v != Allow && v != Ask && v != Deny:
		return fail("unknown verdict "+fmt.Sprintf("%q", messages.Line(string(v), 40)), "it is allow, ask or deny")
	case len(text) > MaxRule:
		return fail(fmt.Sprintf("the rule is longer than %d bytes", MaxRule), "write a shorter one")
	case strings.TrimSpace(text) == "":
		return fail("the rule is empty", howToWrite)
	case foreign[strings.TrimSpace(strings.SplitN(text, "(", 2)[0])]:
		return Rule{}, &ParseError{Rule: text, Text: "it is about a tool of Claude Code itself, which no server offers",
			Fix: "remove it; " + howToWrite, Foreign: true}
	case text != strings.TrimSpace(text):
		return fail("the rule begins or ends with a space", "remove it")
	case messages.Line(text, 0) != text:
		return fail("the rule holds characters that cannot be shown, or more than one space in a row",
			"write the name as it is shown by mcpvisor tools")
	}
	pattern, conditions, fault, fix := cutConditions(text)
	if fault == "" {
		rule.conditions = conditions
		rule.name, fault, fix = parseToolPattern(v, pattern)
	}
	if fault != "" {
		return fail(fault, fix)
	}
	return rule, nil
}

// MustParse is Parse for rules that are written in a program. It panics for a rule that cannot be read.
func MustParse(v Verdict, text string) Rule {
	r, err := Parse(v, text)
	if err != nil {
		panic(err)
	}
	return r
}

// Unreadable returns a rule that takes the place of a deny or ask rule which could not be read: it denies everything,
// because the calls that the rule was to prevent are not known.
func Unreadable(text string, at Source) Rule {
	return Rule{Verdict: Deny, Text: text, Source: at, name: toolPattern{pattern: "*", all: true}, unreadable: true}
}

// Exact returns the rule, without conditions, that means this one tool and no other: server:tool if that can be read in only one
// way, else the name under which the tool is offered.
func Exact(server, tool string) string {
	display := server + ":" + tool
	if strings.Contains(tool, "*") {
		return messages.Naming{}.Tool(server, tool)
	}
	if r, err := Parse(Allow, display); err == nil && r.name.server == server && r.name.tool == tool && !r.Conditional() {
		return display
	}
	return messages.Naming{}.Tool(server, tool)
}
