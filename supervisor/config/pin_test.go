package config_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// TestWhatIsDoneAboutChangedTools: the nearest of the person's own files counts; those of a project and the
// organisation's set the minimum, so that a project can only ask for more, and a person for no less than the
// organisation.
func TestWhatIsDoneAboutChangedTools(t *testing.T) {
	for _, c := range []struct {
		name                                   string
		managed, user, project, local, dynamic string
		own, least                             string
		problems                               int
	}{
		{name: "nothing is said"},
		{name: "the person's", user: `"hold"`, own: "hold"},
		{name: "a named file is nearer", user: `"hold"`, dynamic: `"off"`, own: "off"},
		{name: "a project tightens", user: `"off"`, project: `"warn"`, local: `"hold"`, own: "off", least: "hold"},
		{name: "a project does not loosen", user: `"hold"`, project: `"off"`, own: "hold", problems: 1},
		{name: "nor does a local file", local: `"off"`, problems: 1},
		{name: "the organisation's", managed: `"hold"`, user: `"off"`, own: "off", least: "hold"},
		{name: "what cannot be read holds", user: `"hodl"`, own: "hold", problems: 1},
		{name: "nor does another kind of value", project: `true`, least: "hold", problems: 1},
	} {
		var files []config.Parsed
		for _, f := range []struct {
			scope messages.Scope
			word  string
		}{{messages.ScopeManaged, c.managed}, {messages.ScopeUser, c.user}, {messages.ScopeProject, c.project},
			{messages.ScopeLocal, c.local}, {messages.ScopeDynamic, c.dynamic}} {
			if f.word != "" {
				files = append(files, config.Parse(config.File{Path: string(f.scope), Scope: f.scope, Data: []byte(`{"pin": ` + f.word + `}`)}))
			}
		}
		files = append(files, config.Parse(config.File{Path: "servers", Scope: messages.ScopeUser,
			Data: []byte(`{"mcpServers": {"a": {"command": "x", "pin": "off"}}}`)}))
		set := config.Merge(files, config.Context{})
		if set.Pin.Own != c.own || set.Pin.Least != c.least || len(set.Problems) != c.problems {
			t.Errorf("%s: %+v, want %q and at least %q; %v", c.name, set.Pin, c.own, c.least, set.Problems)
		}
		if _, ok := set.Specs["a"]; !ok {
			t.Errorf("%s: the servers of the person are gone: a managed file that says what is pinned has none", c.name)
		}
	}
	set := config.Merge([]config.Parsed{config.Parse(config.File{Path: "f", Scope: messages.ScopeUser,
		Data: []byte(`{"pin": "hold", "pin": "off", "mcpServers": {"pin": {"command": "x"}}}`)})}, config.Context{})
	if set.Pin.Own != "hold" {
		t.Errorf("of two words the stricter one counts: %+v", set.Pin)
	}
	set = config.Merge([]config.Parsed{config.Parse(config.File{Path: "f", Scope: messages.ScopeUser,
		Data: []byte(`{"pin": {"command": "x"}}`)})}, config.Context{})
	if set.Pin.Own != "" || len(set.Problems) != 1 {
		t.Errorf("a server beside the servers: %+v, %v", set.Pin, set.Problems)
	}
}
