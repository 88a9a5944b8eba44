package agents

import (
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
	ask := func(target []string, request ...string) (string, error) {
		cmd := exec.Command(inspector.Node, append(append([]string{inspector.Script, "--cli"}, target...), request...)...)
		cmd.Dir, cmd.Env = p.dir, append(p.env, "PATH="+filepath.Dir(inspector.Node)+":/usr/bin:/bin")
		out, err := cmd.Output()
		return string(out), err
	}
	url := p.serve("--prefix", "never")
	direct := append([]string{node}, append(args, "stdio")...)
	ways := map[string][]string{
		"serve":         {url, "--transport", "http"},
		"the own path":  {strings.TrimSuffix(url, "/mcp") + "/mcp/s/everything", "--transport", "http"},
		"serve --stdio": {command(t), "serve", "--stdio", "-c", filepath.Join(p.dir, "c.json"), "--prefix", "never"},
		"connect":       {command(t), "connect"},
	}
	for name, value := range p.own(t) { // the inspector gives a server few variables by itself
		for _, way := range []string{"serve --stdio", "connect"} {
			ways[way] = append(ways[way], "-e", name+"="+value)
		}
	}
	for _, c := range []struct {
		request []string
		has     string
	}{
		{[]string{"--method", "tools/list"}, `"name": "echo"`},
		{[]string{"--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hellö"}, "Echo: hellö"},
		{[]string{"--method", "prompts/get", "--prompt-name", "simple-prompt"}, "simple prompt"},
		{[]string{"--method", "resources/read", "--uri", "demo://resource/static/document/features.md"}, "Everything Server"},
	} {
		want, err := ask(direct, c.request...)
		if err != nil || !strings.Contains(want, c.has) {
			t.Fatalf("%v, directly: %v\n%s", c.request, err, want)
		}
		for way, target := range ways {
			request := append([]string(nil), c.request...)
			has := c.has
			if way == "connect" { // its names carry that of the server
				has = strings.Replace(has, `"echo"`, `"everything__echo"`, 1)
				for i, arg := range request {
					if arg == "echo" || arg == "simple-prompt" {
						request[i] = "everything__" + arg
					}
				}
			}
			got, err := ask(target, request...)
			for deadline := time.Now().Add(patience / 4); !strings.Contains(got, has) && time.Now().Before(deadline); { // the server may just start
				got, err = ask(target, request...)
			}
			if err != nil || !strings.Contains(got, has) || c.request[1] != "tools/list" && got != want {
				t.Errorf("%s, %v: %v\n%.600s\ndirectly:\n%.600s", way, c.request, err, got, want)
			}
		}
	}
}
