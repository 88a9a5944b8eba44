//go:build unix

package differential

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

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
	c, err := startLines(command("connect", "--project", home), modern)
	if err != nil {
		return nil, err
	}
	for _, method := range []string{"tools/list", "resources/list"} {
		if err := awaitList(c, method, modern); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// awaitList asks for a list until it has something of the mirror: an agent that lists while its server starts gets a list without it, and a
// notice later.
func awaitList(c client, method string, modern bool) error {
	q := request{method: method, id: `"ready"`}
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		e, err := c.exchange(q, q.body(view{}, modern))
		if err != nil || bytes.Contains(e.answer, []byte("mirror")) {
			return err
		}
	}
	return errors.New(method + " has nothing of the server after a minute")
}
