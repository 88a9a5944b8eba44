package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// TestRulesOfFiles checks rules in files case by case: the verdict, and that its sentence names the rule with the file
// and line that decided. "managed", "user", "project" and "named" hold the permissions of the files of those names; a
// call is "server:tool" and its arguments. by holds the expected part of the sentence.
func TestRulesOfFiles(t *testing.T) {
	const deny, ask, allow = access.Deny, access.Ask, access.Allow
	for _, c := range []struct {
		managed, user, project, named string
		call, args                    string
		hints                         string
		want                          access.Verdict
		decidedBy                     string
	}{
		// Which tools a rule is about.
		{call: "github:x", want: allow, decidedBy: "no rule is about it"},
		{user: `"deny":["mcp__github"]`, call: "github:get_me", want: deny, decidedBy: "the rule deny mcp__github (user:2:"},
		{user: `"deny":["mcp__github__*"]`, call: "github:get_me", want: deny, decidedBy: "deny mcp__github__* (user:2:"},
		{user: `"deny":["mcp__github__delete_*"]`, call: "github:delete_repo", want: deny, decidedBy: "(user:2:"},
		{user: `"deny":["mcp__github__delete_*"]`, call: "github:undelete_repo", want: allow},
		{user: `"deny":["mcp__github__*_repo"]`, call: "github:delete_repo", want: deny},
		{user: `"deny":["mcp__github__d*e_*o"]`, call: "github:delete_repo", want: deny},
		{user: `"deny":["mcp__github__get_me"]`, call: "github:get_me", want: deny},
		{user: `"deny":["mcp__github__get_me"]`, call: "github:get_me2", want: allow},
		{user: `"deny":["mcp__github__get_me"]`, call: "gitlab:get_me", want: allow},
		{user: `"deny":["github:get_me"]`, call: "github:get_me", want: deny, decidedBy: "deny github:get_me (user:2:"},
		{user: `"deny":["github:*"]`, call: "github:get_me", want: deny},
		{user: `"deny":["*:delete_*"]`, call: "files:delete_all", want: deny},
		{user: `"deny":["mcp__*__delete_*"]`, call: "files:delete_all", want: deny},
		{user: `"deny":["mcp__*"]`, call: "files:read", want: deny},
		{user: `"deny":["*"]`, call: "files:read", want: deny},
		{user: `"deny":["mcp__git*"]`, call: "gitlab:x", want: deny},
		{user: `"deny":["mcp__GitHub"]`, call: "github:x", want: allow},
		{user: `"deny":["github:Get_Me"]`, call: "github:get_me", want: allow},

		// Deny beats ask beats allow, at any place and however specific.
		{user: `"deny":["mcp__github"],"allow":["mcp__github__get_me"]`, call: "github:get_me", want: deny},
		{user: `"allow":["mcp__github__get_me"],"ask":["mcp__*"]`, call: "github:get_me", want: ask, decidedBy: "the rule ask mcp__* (user:2:"},
		{user: `"deny":["mcp__github__get_*"],"ask":["mcp__github__get_me"]`, call: "github:get_me", want: deny},
		{user: `"allow":["mcp__github"],"default":"deny"`, call: "github:get_me", want: allow, decidedBy: "the rule allow mcp__github (user:2:"},
		{user: `"allow":["mcp__github"],"default":"deny"`, call: "files:read", want: deny, decidedBy: "the default is deny (user:2:"},
		{user: `"default":"ask"`, call: "files:read", want: ask, decidedBy: "the default is ask (user:2:"},
		{user: `"allow":["files:read"]`, named: `"deny":["files:read"]`, call: "files:read", want: deny, decidedBy: "(named:2:"},
		{user: `"deny":["files:read"]`, named: `"allow":["files:read"]`, call: "files:read", want: deny, decidedBy: "(user:2:"},
		{user: `"default":"deny"`, named: `"default":"allow"`, call: "files:read", want: allow, decidedBy: "the default is allow (named:2:"},

		// The organisation first.
		{managed: `"allow":["files:read"]`, user: `"deny":["*"]`, call: "files:read", want: allow, decidedBy: "(managed:2:"},
		{managed: `"deny":["mcp__files"]`, user: `"allow":["mcp__files"]`, call: "files:read", want: deny, decidedBy: "(managed:2:"},
		{managed: `"ask":["mcp__files"]`, user: `"allow":["mcp__files"]`, call: "files:read", want: ask, decidedBy: "(managed:2:"},
		{managed: `"ask":["mcp__files"]`, user: `"deny":["mcp__files"]`, call: "files:read", want: ask, decidedBy: "(managed:2:"},
		{managed: `"default":"deny"`, user: `"allow":["mcp__files"]`, call: "files:read", want: deny, decidedBy: "the managed default is deny (managed:2:"},
		{managed: `"default":"ask"`, user: `"allow":["mcp__files"]`, call: "files:read", want: ask},
		{managed: `"default":"ask"`, user: `"deny":["mcp__files"]`, call: "files:read", want: deny, decidedBy: "(user:2:"},
		{managed: `"default":"deny","allow":["mcp__files"]`, call: "files:read", want: allow, decidedBy: "(managed:2:"},
		{managed: `"default":"deny","allow":["mcp__files__read(path:docs/*)"]`, call: "files:read", args: `{"path":"docs/a"}`, want: allow},
		{managed: `"default":"deny","allow":["mcp__files__read(path:docs/*)"]`, call: "files:read", args: `{"path":"etc/a"}`, want: deny},

		// A project restricts and does not allow.
		{project: `"deny":["mcp__files"]`, call: "files:read", want: deny, decidedBy: "(project:2:"},
		{project: `"ask":["mcp__files"]`, user: `"allow":["mcp__files"]`, call: "files:read", want: ask, decidedBy: "(project:2:"},
		{project: `"allow":["mcp__files"]`, user: `"default":"deny"`, call: "files:read", want: deny, decidedBy: "(user:2:"},
		{project: `"default":"allow"`, user: `"default":"deny"`, call: "files:read", want: deny},
		{project: `"default":"deny"`, user: `"default":"allow"`, call: "files:read", want: deny, decidedBy: "the default is deny (project:2:"},
		{project: `"default":"ask"`, user: `"default":"deny"`, call: "files:read", want: deny},

		// Arguments.
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"path":"/etc/passwd"}`, want: deny, decidedBy: "deny files:write(path:/etc/*) (user:2:"},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"path":"/tmp/x"}`, want: allow},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{}`, want: allow},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"path":"/tmp/../etc/passwd"}`, want: deny},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"path":"//etc//passwd"}`, want: deny},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"path":"/./etc/passwd"}`, want: deny},
		{user: `"deny":["files:write(path:secret/*)"]`, call: "files:write", args: `{"path":"docs/../secret/x"}`, want: deny},
		{user: `"deny":["files:write(path:secret)"]`, call: "files:write", args: `{"path":"docs/../secret"}`, want: deny},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"PATH":"/etc/passwd"}`, want: deny},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"path":"/tmp/x","path":"/etc/x"}`, want: deny},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"path":["/tmp/x","/etc/x"]}`, want: deny},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"path":{"in":[{"deep":"/etc/x"}]}}`, want: deny},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"other":"/etc/x"}`, want: allow},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `not json`, want: deny},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `["/etc/x"]`, want: deny},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"path":"` + strings.Repeat("a/", 100_000) + `"}`, want: allow},
		{user: `"deny":["files:write(path:*caf` + "\u00e9" + `*)"]`, call: "files:write", args: `{"path":"/caf` + "e\u0301" + `/x"}`, want: deny},
		{user: `"deny":["files:write(path:*caf` + "e\u0301" + `*)"]`, call: "files:write", args: `{"path":"/caf` + "\u00e9" + `/x"}`, want: deny},
		{user: `"deny":["files:write(path:/etc/*)"]`, call: "files:write", args: `{"path":"` + "\uff0fetc\uff0fx" + `"}`, want: deny},
		{user: `"deny":["db:query(limit:1000*)"]`, call: "db:query", args: `{"limit":10000}`, want: deny},
		{user: `"deny":["db:query(limit:10)"]`, call: "db:query", args: `{"limit":"10"}`, want: deny},
		{user: `"deny":["db:query(force:true)"]`, call: "db:query", args: `{"force":true}`, want: deny},
		{user: `"deny":["db:query(force:true)"]`, call: "db:query", args: `{"force":false}`, want: allow},
		{user: `"deny":["db:query(where:null)"]`, call: "db:query", args: `{"where":null}`, want: deny},
		{user: `"deny":["db:query(sql:*DROP TABLE*)"]`, call: "db:query", args: `{"sql":"x; DROP TABLE y"}`, want: deny},
		{user: `"deny":["db:query(sql:a\\*b)"]`, call: "db:query", args: `{"sql":"a*b"}`, want: deny},
		{user: `"deny":["db:query(sql:a\\*b)"]`, call: "db:query", args: `{"sql":"axb"}`, want: allow},
		{user: `"deny":["db:query(sql:f\\(x\\, y\\))"]`, call: "db:query", args: `{"sql":"f(x, y)"}`, want: deny},
		{user: `"deny":["files:move(from:/a/*,to:/b/*)"]`, call: "files:move", args: `{"from":"/a/x","to":"/b/x"}`, want: deny},
		{user: `"deny":["files:move(from:/a/*,to:/b/*)"]`, call: "files:move", args: `{"from":"/a/x","to":"/c/x"}`, want: allow},
		{user: `"default":"deny","allow":["files:read(path:docs/*)"]`, call: "files:read", args: `{"path":"docs/a"}`, want: allow},
		{user: `"default":"deny","allow":["files:read(path:docs/*)"]`, call: "files:read", args: `{"path":"docs/../secret"}`, want: deny},
		{user: `"default":"deny","allow":["files:read(path:docs/*)"]`, call: "files:read", args: `{"Path":"docs/a"}`, want: deny},
		{user: `"default":"deny","allow":["files:read(path:docs/*)"]`, call: "files:read", args: `{"path":["docs/a","etc/b"]}`, want: deny},
		{user: `"default":"deny","allow":["files:read(path:docs/*)"]`, call: "files:read", args: `{"path":["docs/a","docs/b"]}`, want: allow},
		{user: `"default":"deny","allow":["files:read(path:docs/*)"]`, call: "files:read", args: `{"path":{"x":"docs/a"}}`, want: deny},
		{user: `"default":"deny","allow":["files:read(path:docs/*)"]`, call: "files:read", args: ``, want: deny},
		{user: `"default":"deny","allow":["files:read(path:docs/*)"]`, call: "files:read", args: `{"path":"docs/a"`, want: deny},

		// Two underscores or a space in the name of a server make the boundary of a rule doubtful.
		{user: `"deny":["mcp__my__server"]`, call: "my__server:x", want: deny},
		{user: `"deny":["my__server:x"]`, call: "my__server:x", want: deny},
		{user: `"allow":["mcp__my__server"],"default":"deny"`, call: "my__server:x", want: deny},
		{user: `"allow":["my__server:*"],"default":"deny"`, call: "my__server:x", want: allow},
		{user: `"deny":["mcp__my_server"]`, call: "my server:x", want: deny},
		{user: `"allow":["mcp__my_server"],"default":"deny"`, call: "my server:x", want: deny},
		{user: `"allow":["my server:*"],"default":"deny"`, call: "my server:x", want: allow},
		{user: `"deny":["` + messages.Naming{}.Tool("my server", "x") + `"]`, call: "my server:x", want: deny},
		{user: `"allow":["` + messages.Naming{}.Tool("my server", "x") + `"],"default":"deny"`, call: "my server:x", want: allow},
		{user: `"allow":["` + messages.Naming{}.Tool("my server", "x") + `"],"default":"deny"`, call: "my server:y", want: deny},

		// What servers say of themselves counts only of the trusted.
		{user: `"default":"ask"`, call: "files:read", hints: "readOnly", want: ask},
		{user: `"default":"ask"`, call: "known:read", hints: "readOnly", want: allow, decidedBy: "its trusted server calls it read-only"},
		{user: `"default":"allow"`, call: "known:rm", hints: "destructive", want: ask, decidedBy: "its trusted server calls it destructive"},
		{user: `"default":"allow"`, call: "files:rm", hints: "destructive", want: allow},
		{user: `"default":"deny"`, call: "known:rm", hints: "destructive", want: deny},
		{user: `"deny":["known:read"],"default":"ask"`, call: "known:read", hints: "readOnly", want: deny},

		// What cannot be read closes; what is about Claude Code itself is no rule about servers.
		{user: `"deny":["github"]`, call: "files:read", want: deny, decidedBy: "the rule github cannot be read, and until it can everything is denied (user:2:"},
		{user: `"dney":[]`, call: "files:read", want: deny, decidedBy: "the rule dney cannot be read"},
		{user: `"deny":"mcp__github"`, call: "files:read", want: deny, decidedBy: "the rule deny cannot be read"},
		{user: `"default":"maybe"`, call: "files:read", want: deny, decidedBy: "the rule default cannot be read"},
		{user: `"allow":["github"]`, call: "files:read", want: allow},
		{user: `"deny":["Bash(rm:*)","Read(./.env)","WebFetch"],"ask":["Bash(git push:*)"],"allow":["Bash"],"defaultMode":"plan"`,
			call: "files:read", want: allow, decidedBy: "no rule is about it"},
		{user: `"deny":["Bash(rm:*)","mcp__files"]`, call: "files:read", want: deny, decidedBy: "deny mcp__files (user:2:"},
		{user: `"allow":["mcp__github__get_*"],"default":"ask"`, call: "github:get_me", want: allow},
	} {
		var files []config.Parsed
		for _, f := range []struct {
			scope messages.Scope
			path  string
			text  string
		}{{messages.ScopeManaged, "managed", c.managed}, {messages.ScopeUser, "user", c.user}, {messages.ScopeProject, "project", c.project},
			{messages.ScopeDynamic, "named", c.named}} {
			if f.text != "" {
				files = append(files, config.Parse(config.File{Path: f.path, Scope: f.scope, Data: []byte("{\n\"permissions\": {" + f.text + "}}")}))
			}
		}
		set := config.Merge(files, config.Context{})
		server, tool, _ := strings.Cut(c.call, ":")
		yes := true
		q := access.Request{Server: server, Tool: tool, Args: json.RawMessage(c.args), Trusted: server == "known"}
		switch c.hints {
		case "readOnly":
			q.Annotations = &messages.Annotations{ReadOnly: &yes}
		case "destructive":
			q.Annotations = &messages.Annotations{Destructive: &yes}
		}
		d := access.Decide(set.Permissions, q)
		if d.Verdict != c.want || !strings.Contains(d.Why, c.decidedBy) {
			t.Errorf("managed {%s} user {%s} project {%s} named {%s}: %s with %.80s: %s, because %s; want %s, because %s", c.managed, c.user,
				c.project, c.named, c.call, c.args, d.Verdict, d.Why, c.want, c.decidedBy)
		}
		if d.ByRule && !strings.Contains(d.Why, d.Source.File+":2:") {
			t.Errorf("%s: %q does not say where its rule stands", c.call, d.Why)
		}
	}
}

// TestARuleAboutAServerThatIsNotThere: nearly its name is a mistake, and said with its place; another name may be about a server
// of another project.
func TestARuleAboutAServerThatIsNotThere(t *testing.T) {
	set := config.Merge([]config.Parsed{config.Parse(config.File{Path: "user", Scope: messages.ScopeUser, Data: []byte(`{
		"mcpServers": {"github": {"command": "x"}, "a__b": {"command": "x"}, "my server": {"command": "x"}},
		"permissions": {"deny": [
			"mcp__githb__delete_*",
			"GitHub:x", "mcp__github", "mcp__sentry", "a__b:c", "mcp__a__b", "mcp__my_server__x", "my server:x", "mcp__*"]}}`)})}, config.Context{})
	var got []string
	for _, p := range set.Problems {
		got = append(got, p.Error())
	}
	want := []string{
		`user:4:4: warning: permissions.deny: the rule mcp__githb__delete_* names a server "githb", and none is configured so; did you mean "github"?`,
		`user:5:4: warning: permissions.deny: the rule GitHub:x names a server "GitHub", and none is configured so; did you mean "github"?`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A view with a misspelt server showed nothing of it, and config check found no fault.
func TestAViewOfAServerThatIsNotThere(t *testing.T) {
	set := config.Merge([]config.Parsed{config.Parse(config.File{Path: "user", Scope: messages.ScopeUser, Data: []byte(`{
		"mcpServers": {"github": {"command": "x"}},
		"gateway": {"views": {"v": {
			"servers": ["github", "githb", "sentry"],
			"allow": ["mcp__GitHub__x", "mcp__sentry__x", "mcp__github"]}}}}`)})}, config.Context{})
	var got []string
	for _, p := range set.Problems {
		got = append(got, p.Error())
	}
	want := []string{
		`user:4:15: warning: gateway.views.v.servers: the list names a server "githb", and none is configured so; did you mean "github"?`,
		`user:5:14: warning: gateway.views.v.allow: the rule mcp__GitHub__x names a server "GitHub", and none is configured so; did you mean "github"?`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
