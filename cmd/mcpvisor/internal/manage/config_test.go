package manage

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// TestConfigCheckNamesWhatAPolicyRefuses checks that config check names a refused server with the line that would allow it.
func TestConfigCheckNamesWhatAPolicyRefuses(t *testing.T) {
	s := &project.Setup{Configuration: discover.Configuration{Set: config.Set{
		Specs: map[string]messages.Spec{
			"old": {Command: "npx", Args: []string{"-y", "@acme/x@1.0.0"}, Source: "/home/me/mcp.json"}, "good": {Command: "npx", Args: []string{"-y", "@acme/x"}},
		},
		Policies: []config.Policy{{AllowCommands: []string{"npx -y @acme/*"}, Source: "/etc/m.json"}},
	}}}
	all := policyProblems(s)
	if len(all) != 1 || !all[0].Warning || all[0].Server != "old" || all[0].File != "/home/me/mcp.json" ||
		!strings.HasSuffix(all[0].Text, `"allowCommands": ["npx -y @acme/x@1.0.0"]`) {
		t.Errorf("%+v", all)
	}
}
