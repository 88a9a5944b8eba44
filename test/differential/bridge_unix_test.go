//go:build unix

package differential

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers/built"
)

// The command connect is one more way: a bridge, a daemon that it starts, and the gateway in that.
func init() {
	views = append(views, view{prefix: "mirror__", lines: true, bridge: true})
	openBridge = startBridge
}

// program is the path of the command, built for all bridges of one test.
var program string

// startBridge starts the command connect in a home of its own, in which the mirror is a server of the user. The daemon that it starts ends
// with the test.
func startBridge(t *testing.T, spec supervisor.Spec, modern bool) (client, error) {
	t.Helper()
	if _, err := os.Stat(program); err != nil { // it is gone with the test that has built it
		program = built.Program(t, "cmd/mcpvisor")
	}
	home := t.TempDir()
	short, err := os.MkdirTemp("", "d") // the other one is too deep for a socket
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"mirror": spec}})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(home, "config", "mcpvisor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Stderr = home, t.Output()
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "XDG_CACHE_HOME="+filepath.Join(home, "cache"),
			"XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_RUNTIME_DIR="+short)
		return cmd
	}
	t.Cleanup(func() {
		if out, err := command("down").Output(); err != nil {
			t.Errorf("down: %v: %s", err, out)
		}
	})
	// The bridge asks an agent for its roots unless it is told the project, and a server's questions are compared.
	return startLines(command("connect", "--project", home), modern)
}
