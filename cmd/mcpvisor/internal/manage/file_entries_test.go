package manage

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// TestManagedServersAreNotChanged checks that beside the servers of an organisation none is added, removed or switched, and
// that a managed file with rules alone leaves the servers to the person.
func TestManagedServersAreNotChanged(t *testing.T) {
	managed := func(text string) *project.Setup {
		files := []config.Parsed{
			config.Parse(config.File{Path: "/etc/m.json", Scope: messages.ScopeManaged, Data: []byte(text)}),
			config.Parse(config.File{Path: "/home/u.json", Scope: messages.ScopeUser, Data: []byte(`{"mcpServers": {"a": {"command": "x"}}}`)}),
		}
		return &project.Setup{Configuration: discover.Configuration{Set: config.Merge(files, config.Context{})}}
	}
	s := managed(`{"mcpServers": {"m": {"command": "x"}}}`)
	err := checkMayManage(s, "added")
	if exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "nothing is added: the servers are managed by /etc/m.json") {
		t.Error(err)
	}
	e := fileEntry{scope: messages.ScopeManaged, file: "/etc/m.json", entry: config.Entry{Name: "m", Path: []string{"mcpServers", "m"}}}
	if err := e.checkEditable("disabled"); exit.CodeOf(err) != exit.Usage ||
		!strings.Contains(err.Error(), `server "m" is managed by /etc/m.json and cannot be disabled`) {
		t.Error(err)
	}
	if err := checkMayManage(managed(`{"permissions": {"deny": ["mcp__a"]}}`), "added"); err != nil {
		t.Error(err)
	}
}
