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

// Approval says what another client is told about asking a person before calls to a server. There, what is not approved is
// asked about; here that is what the default of the permissions says.
type Approval struct {
	// Verdict is access.Allow for tools that are called without a question, access.Ask for those before which a person is
	// asked.
	Verdict access.Verdict
	// Tools are the names of the tools; "*" are all.
	Tools []string
}

// Rules are those that say the same of the server under a name of ours; nil if one of them cannot be written.
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

// replacementHint says what to write in the place of the key that said it; empty if no rule says the same.
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
	if a.Verdict == access.Allow {
		text = `"default": "ask", ` + text
	}
	return `write into a file of your own: "permissions": {` + text + "}"
}

// importHint says what to do about an approval of another program's file, where the rules would fill the page.
const importHint = "mcpvisor import --with-permissions makes rules of it"

// approvalOf reads a list of approved tools, or a word for all tools of the server.
func approvalOf(key string, v value) (a Approval, ok bool) {
	switch key {
	case "autoApprove", "alwaysAllow":
		list, isList := v.Value.Value.(*hujson.Array)
		if !isList || len(list.Elements) == 0 {
			return a, false
		}
		a.Verdict = access.Allow
		for _, el := range list.Elements {
			l, ok := literalOf(el)
			if !ok || l.Kind() != '"' {
				return a, false
			}
			a.Tools = append(a.Tools, l.String())
		}
		return a, true
	case "trust":
		l, isLiteral := literalOf(v.Value)
		return Approval{access.Allow, []string{"*"}}, isLiteral && l.Kind() == 't'
	case "default_tools_approval_mode", "approval_mode":
		l, isLiteral := literalOf(v.Value)
		return Approval{access.Ask, []string{"*"}}, isLiteral && l.Kind() == '"' && l.String() == "prompt"
	}
	return a, false
}

// maxApprovals bounds the rules that are written into a sentence.
const maxApprovals = 40

var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`) })

// ruleFor is the rule about a tool of a server, or about all for "*"; empty if none can be written.
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
