package supervisor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

func TestAnAgentListsAndReadsResourcesWithItsOwnTools(t *testing.T) {
	seeds.Shows(t, "000.0.agent-tools", "000.11.resource-access")
	eachEra(t, func(t *testing.T, era messages.Era) {
		m, _ := libraries(t, era, supervisor.Config{})
		tools := map[string]supervisor.AgentTool{}
		for _, tool := range m.ResourceTools() {
			tools[tool.Declaration().Name] = tool
		}
		list, read := tools["ListMcpResources"], tools["ReadMcpResource"]
		if list == nil || read == nil {
			t.Fatalf("%v", tools)
		}
		for _, c := range []struct {
			tool   supervisor.AgentTool
			params map[string]any
			want   []string
			not    string
		}{
			{list, nil, []string{`"server":"a"`, `"uri":"book:///b"`, `"mimeType":"text/plain"`}, ""},
			{list, map[string]any{"server": "b"}, []string{`"uri":"book:///b"`}, `"server":"a"`},
			{read, map[string]any{"server": "a", "uri": "book:///a"}, []string{"a has book:///a"}, ""},
			{read, map[string]any{"uri": "page://b/12"}, []string{"b has page://b/12"}, ""},
		} {
			res, err := c.tool.Handler()(t.Context(), c.params)
			if err != nil {
				t.Fatalf("%v: %v", c.params, err)
			}
			text := c.tool.FormatOutput(res)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%v: %s, want %s", c.params, text, want)
				}
			}
			if c.not != "" && strings.Contains(text, c.not) {
				t.Errorf("%v: %s", c.params, text)
			}
		}
		for _, params := range []map[string]any{nil, {"uri": 7}, {"server": 1, "uri": "x:///"}, {"uri": "x:///"}, {"server": "x", "uri": "x:///"}} {
			var e *supervisor.Error
			if _, err := read.Handler()(t.Context(), params); !errors.As(err, &e) || e.Outcome != messages.OutcomeNotSent {
				t.Errorf("%v: %v", params, err)
			}
		}
	})
}
