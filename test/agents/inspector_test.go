package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/peers"
)

// TestTheInspectorSeesTheServers has the MCP inspector's command line ask npm's server-everything, directly and in each way to the
// gateway: what it prints is the same.
func TestTheInspectorSeesTheServers(t *testing.T) {
	t.Parallel()
	inspector := peers.Inspector(t)
	node, args := peers.NPM(t).Command(peers.Everything)
	config := written(t, map[string]any{"mcpServers": map[string]any{"everything": map[string]any{"command": node, "args": args}}})
	p := newPlace(t, config)
	p.userServers(config)
	t.Cleanup(func() {
		if out, err := p.run("down"); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	// The inspector would give a server the time of a quiet machine to connect, and end with code 4.
	ask := func(target []string, request ...string) (string, error) {
		request = append(request, "--connect-timeout", "0")
		cmd := exec.Command(inspector.Node, append(append([]string{inspector.Script, "--cli"}, target...), request...)...)
		cmd.Dir, cmd.Env, cmd.Stderr = p.dir, append(p.env, "PATH="+filepath.Dir(inspector.Node)+":/usr/bin:/bin"), t.Output()
		out, err := cmd.Output()
		return string(out), err
	}
	// A gateway that has just started has no servers yet: it is asked until it prints what it must.
	awaitsAnswer := func(has string, target []string, request ...string) (string, error) {
		got, err := ask(target, request...)
		for deadline := time.Now().Add(patience); !strings.Contains(got, has) && time.Now().Before(deadline); {
			got, err = ask(target, request...)
		}
		return got, err
	}
	url := p.serve("--prefix", "never")
	// A gateway that the inspector starts is asked once, at once, and waits some seconds for its server: for one that runs already that
	// is enough on any machine.
	own := strings.TrimSuffix(url, "/mcp") + "/mcp/s/everything"
	running := filepath.Join(p.dir, "running.json")
	if err := os.WriteFile(running, []byte(written(t, map[string]any{"mcpServers": map[string]any{"everything": map[string]any{"url": own, "era": "legacy"}}})), 0o600); err != nil {
		t.Fatal(err)
	}
	direct := append([]string{node}, append(args, "stdio")...)
	ways := map[string][]string{
		"serve":         {url, "--transport", "http"},
		"the own path":  {own, "--transport", "http"},
		"serve --stdio": {command(t), "serve", "--stdio", "-c", running, "--prefix", "never"},
		"connect":       {command(t), "connect"},
	}
	for name, value := range p.own(t) { // the inspector gives a server few variables by itself
		for _, way := range []string{"serve --stdio", "connect"} {
			ways[way] = append(ways[way], "-e", name+"="+value)
		}
	}
	type request struct {
		args      []string
		has, want string
	}
	requests := []request{
		{[]string{"--method", "tools/list"}, `"name": "echo"`, ""},
		{[]string{"--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hellö"}, "Echo: hellö", ""},
		{[]string{"--method", "prompts/get", "--prompt-name", "simple-prompt"}, "simple prompt", ""},
		{[]string{"--method", "resources/read", "--uri", "demo://resource/static/document/features.md"}, "Everything Server", ""},
	}
	for i := range requests {
		r := &requests[i]
		var err error
		if r.want, err = awaitsAnswer(r.has, direct, r.args...); err != nil || !strings.Contains(r.want, r.has) {
			t.Fatalf("%v, directly: %v\n%s", r.args, err, r.want)
		}
	}
	for way, target := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for _, r := range requests {
				if way == "serve --stdio" && strings.HasPrefix(r.args[1], "tools/") {
					continue // the inspector lists as soon as it has started the gateway, and does not wait for the tools
				}
				args := append([]string(nil), r.args...)
				if way == "connect" { // its names carry that of the server
					r.has = strings.Replace(r.has, `"echo"`, `"everything__echo"`, 1)
					for i, arg := range args {
						if arg == "echo" || arg == "simple-prompt" {
							args[i] = "everything__" + arg
						}
					}
				}
				got, err := awaitsAnswer(r.has, target, args...)
				if err != nil || !strings.Contains(got, r.has) || r.args[1] != "tools/list" && got != r.want {
					t.Errorf("%v: %v\n%.600s\ndirectly:\n%.600s", args, err, got, r.want)
				}
			}
		})
	}
}
