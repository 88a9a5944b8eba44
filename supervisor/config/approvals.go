package config

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// Approval holds what another client's file says about asking a person before calls to a server. That client asks about every
// tool that the file does not approve; mcpvisor follows the default of its permissions instead, so an Approval never takes
// effect by itself and only becomes rules through an import.
type Approval struct {
	// Verdict is access.Allow for tools that the other client calls without a question, access.Ask for those before which it
	// asks a person.
	Verdict access.Verdict
	// Tools holds the names of the tools as the server gives them; "*" stands for all.
	Tools []string
}

// Rules returns the access rules that say the same of the server under the name server. It returns nil if the name of one tool
// cannot stand in a rule, because rules about the other tools alone would say something else.
func (a Approval) Rules(server string) []string {
	var rules []string
	for _, tool := range a.Tools {
		rule := ruleFor(server, tool)
		if rule == "" {
			return nil
		}
		rules = append(rules, rule)
	}
	return rules
}

// replacementHint returns the permissions that the person can write in the place of the foreign key. It is empty if no rules
// say the same, or if more than maxApprovals were needed.
func (a Approval) replacementHint(server string) string {
	rules := a.Rules(server)
	if len(rules) == 0 || len(rules) > maxApprovals {
		return ""
	}
	list, err := json.Marshal(rules)
	if err != nil {
		return ""
	}
	text := `"` + string(a.Verdict) + `": ` + messages.Line(string(list), 0)
	// Rules that allow change nothing under the usual default, which allows everything: the other client asked about all other
	// tools.
	if a.Verdict == access.Allow {
		text = `"default": "ask", ` + text
	}
	return `write into a file of your own: "permissions": {` + text + "}"
}

// importHint stands in the place of replacementHint for a file in another program's form, whose reader is not going to edit it
// for mcpvisor.
const importHint = "mcpvisor import --with-permissions makes rules of it"

// approvalOf reads the value of a key of another client: a list of approved tools, or a word for all tools of the server. ok is
// false if the value has another form, which then counts as any unknown key does.
func approvalOf(key string, v value) (a Approval, ok bool) {
	switch key {
	case "autoApprove", "alwaysAllow":
		list, isList := v.Value.Value.(*hujson.Array)
		// An empty list approves nothing, and needs no rules.
		if !isList || len(list.Elements) == 0 {
			return a, false
		}
		a.Verdict = access.Allow
		for _, el := range list.Elements {
			// One element that is no text makes the whole list doubtful.
			l, ok := literalOf(el)
			if !ok || l.Kind() != '"' {
				return a, false
			}
			a.Tools = append(a.Tools, l.String())
		}
		return a, true
	// Gemini's trust: true skips the question for every tool of the server.
	case "trust":
		l, isLiteral := literalOf(v.Value)
		return Approval{access.Allow, []string{"*"}}, isLiteral && l.Kind() == 't'
	// Of Codex's modes only prompt has an equal among the rules.
	case "default_tools_approval_mode", "approval_mode":
		l, isLiteral := literalOf(v.Value)
		return Approval{access.Ask, []string{"*"}}, isLiteral && l.Kind() == '"' && l.String() == "prompt"
	}
	return a, false
}

// maxApprovals bounds how many rules replacementHint writes into one sentence.
const maxApprovals = 40

// plainName matches names that can stand in the form mcp__server__tool. Two underscores in a row would shift the boundary
// between server and tool, so the expression refuses them.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`) })

// ruleFor returns the rule about one tool of a server, or about the whole server for the tool "*". It prefers
// mcp__server__tool, which other clients know, and falls back to server:tool. The result is empty if access.Parse refuses it or
// if it could not be printed unchanged.
func ruleFor(server, tool string) string {
	rule := server + ":" + tool
	switch {
	case plainName().MatchString(server) && tool == "*":
		rule = "mcp__" + server
	case plainName().MatchString(server) && plainName().MatchString(tool):
		rule = "mcp__" + server + "__" + tool
	}
	if _, err := access.Parse(access.Allow, rule); err != nil || strings.ContainsAny(rule, "\n\r") || messages.Printable(rule) != rule {
		return ""
	}
	return rule
}
