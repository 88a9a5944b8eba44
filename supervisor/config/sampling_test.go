package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// What runs for a server that asks for the model is said by the person, and never by a file of the project.
func TestSamplingCommand(t *testing.T) {
	parse := func(scope messages.Scope, text string) config.Parsed {
		return config.Parse(config.File{Path: string(scope) + ".json", Scope: scope, Data: []byte(text)})
	}
	user := parse(messages.ScopeUser, `{"samplingCommand": "ask-model --fast 'two words'"}`)
	named := parse(messages.ScopeDynamic, `{"mcpServers": {}, "samplingCommand": ["other", "model"]}`)
	managed := parse(messages.ScopeManaged, `{"samplingCommand": "managed"}`)
	project := parse(messages.ScopeProject, `{"samplingCommand": "evil"}`)
	local := parse(messages.ScopeLocal, `{"samplingCommand": "evil"}`)
	for _, c := range []struct {
		files []config.Parsed
		want  []string
	}{
		{nil, nil},
		{[]config.Parsed{user}, []string{"ask-model", "--fast", "two words"}},
		{[]config.Parsed{named, user}, []string{"other", "model"}},
		{[]config.Parsed{user, project, local}, []string{"ask-model", "--fast", "two words"}},
		{[]config.Parsed{project, local}, nil},
		{[]config.Parsed{managed, user, named}, []string{"managed"}},
		{[]config.Parsed{parse(messages.ScopeManaged, `{}`), user}, nil},
	} {
		if got := config.Merge(c.files, config.Context{}).SamplingCommand; !slices.Equal(got, c.want) {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
	for text, want := range map[string]string{
		`{"samplingCommand": 1}`:         "a number",
		`{"samplingCommand": ""}`:        "no program",
		`{"samplingCommand": []}`:        "no program",
		`{"samplingCommand": [1]}`:       "a number",
		`{"samplingCommand": "a 'b"}`:    "a quote is not closed",
		`{"samplingcommand": "program"}`: "samplingCommand",
	} {
		if p := parse(messages.ScopeUser, text); len(p.Problems) != 1 || p.SamplingCommand != nil ||
			!strings.Contains(p.Problems[0].Error(), want) {
			t.Errorf("%s: %v", text, p.Problems)
		}
	}
	if p := project.Problems; len(p) != 1 || !p[0].Warning || p[0].Line != 1 {
		t.Errorf("a project file: %v", p)
	}
}
