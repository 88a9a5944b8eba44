package remote_test

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/remote"
)

// Agents may read all servers, call those for issues, and add one for a repository of their choice. One person may do
// everything.
func ExampleRights() {
	cfg := remote.Config{
		Rights: map[string]remote.Rights{
			"mcpvisor://cluster/agent/*": {
				Servers:   []string{"issues", "repo-*"},
				Commands:  append(remote.ReadingCommands(), "CallTool", "AddServer"),
				Templates: []string{"repository"},
			},
			"mcpvisor://cluster/admin/ann": remote.Everything(),
		},
		Templates: map[string]remote.Template{
			"repository": {
				Spec:       supervisor.Spec{Command: "/usr/local/bin/repo-server", Args: []string{"--repo", "/srv/git/{repo}"}},
				Parameters: map[string]string{"repo": "[a-z0-9-]+"},
			},
		},
	}
	// On the agent's machine:
	add := &messages.AddServer{Name: "repo-site", Spec: &messages.ServerSpec{
		Template: "repository", Parameters: map[string]string{"repo": "site"}}}
	fmt.Println(len(cfg.Rights["mcpvisor://cluster/agent/*"].Commands), add.GetSpec().GetTemplate())
	// Output: 11 repository
}
