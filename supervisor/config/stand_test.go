package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// Each row is a text, what is set, and which variables it needs besides.
func TestUnset(t *testing.T) {
	ctx := config.Context{Lookup: func(name string) (string, bool) { return "x", name == "SET" }}
	long := strings.Repeat("A", 58) // a problem cuts it behind "env:" and not before
	for _, row := range []struct {
		text string
		want []string
	}{
		{"plain", nil},
		{"${SET} ${A} ${env:B} ${A}", []string{"A", "B"}},
		{"${A:-x} ${B:-${C}}", []string{"C"}},
		{"${A:-x} ${input:t}", nil},
		{"${A", nil},
		{"${A} ${", []string{"A"}},
		{"${env:" + long + "} ${B}", []string{long, "B"}},
	} {
		if got := ctx.Unset(row.text); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, not %q", row.text, got, row.want)
		}
	}
}

// A new server belongs beside the others, an entry is found where it stands, and so is the key that switches it off.
func TestWhereServersStand(t *testing.T) {
	for _, row := range []struct {
		text, under, path, written string
	}{
		{`{}`, "mcpServers", "", ""},
		{`{"servers": {"a": {"command": "x", "enabled": false}}}`, "servers", "servers a", "enabled"},
		{`{"servers": {"a": {"command": "x", "disabled": true}}, "mcpServers": {}}`, "mcpServers", "servers a", "disabled"},
		{`{"mcpServers": [{"name": "a", "command": "x"}]}`, "", "", ""},
		{`{"mcpServers": [], "servers": {"a": {"command": "x"}}}`, "servers", "servers a", ""},
	} {
		p := config.Parse(config.File{Path: "f", Data: []byte(row.text)})
		under, ok := p.Under()
		e := p.Servers["a"]
		if under != row.under || ok != (under != "") || strings.Join(e.Path, " ") != row.path || e.Written("disabled") != row.written {
			t.Errorf("%s: under %q, %v; path %q; written %q", row.text, under, ok, e.Path, e.Written("disabled"))
		}
	}
}

// The same as rules for a person who imports the file, under the name that the server has there.
func TestApprovalsAsRules(t *testing.T) {
	p := config.Parse(config.File{Path: "f", Scope: messages.ScopeUser,
		Data: []byte(`{"mcpServers": {"s": {"command": "x", "autoApprove": ["a", "b c"]}, "t": {"command": "x", "trust": true},
			"u": {"command": "x", "approval_mode": "prompt"}, "v": {"command": "x", "alwaysAllow": ["\u001b"]}}}`)})
	for name, want := range map[string]string{"s": "allow mcp__new__a, new:b c", "t": "allow mcp__new", "u": "ask mcp__new", "v": ""} {
		got := ""
		for _, a := range p.Servers[name].Approvals {
			got += string(a.Verdict) + " " + strings.Join(a.Rules("new"), ", ")
		}
		if got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
}

// What another client's file approves is told as the rules that mean it here, and they can be read.
func TestApprovalsOfOtherClients(t *testing.T) {
	for _, row := range []struct{ entry, want string }{
		{`"autoApprove": ["a", "b_c"]`, `{"default": "ask", "allow": ["mcp__s__a","mcp__s__b_c"]}`},
		{`"alwaysAllow": ["*"]`, `{"default": "ask", "allow": ["mcp__s"]}`},
		{`"autoApprove": ["a.b"]`, `{"default": "ask", "allow": ["s:a.b"]}`},
		{`"trust": true`, `{"default": "ask", "allow": ["mcp__s"]}`},
		{`"approval_mode": "prompt"`, `{"ask": ["mcp__s"]}`},
		{`"approval_mode": "writes"`, `{"default": "ask", "allow": ["mcp__server__tool"]}`},
		{`"autoApprove": [1]`, `{"default": "ask", "allow": ["mcp__server__tool"]}`},
		{`"autoApprove": ["\u001b[31m"]`, `{"default": "ask", "allow": ["mcp__server__tool"]}`},
	} {
		p := config.Parse(config.File{Path: "f", Scope: messages.ScopeUser,
			Data: []byte(`{"mcpServers": {"s": {"command": "x", ` + row.entry + `}}}`)})
		if len(p.Problems) != 1 || !strings.HasSuffix(p.Problems[0].Fix, `"permissions": `+row.want) || !p.Problems[0].Warning {
			t.Errorf("%s: %v", row.entry, p.Problems)
			continue
		}
		read := config.Parse(config.File{Path: "f", Scope: messages.ScopeUser, Data: []byte(`{"permissions": ` + row.want + `}`)})
		if len(read.Problems) > 0 {
			t.Errorf("%s cannot be read: %v", row.want, read.Problems)
		}
	}
}
