package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/peers"
)

// TestConversationsOfTheTypeScriptSDK has clients of both versions, in both eras, do through each way to the gateway what an agent
// does in a day: progress, questions, a call that is cancelled, what changes, and a server that is killed.
func TestConversationsOfTheTypeScriptSDK(t *testing.T) {
	node, everything := peers.NPM(t).Command(peers.Everything)
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"npm": map[string]any{"command": node, "args": everything}, "go": map[string]any{"command": peers.Go(t)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"serve", "serve --stdio", "connect"} {
		for _, client := range []struct {
			name, era string
			sdk       int
		}{{"version 1", "legacy", 1}, {"version 2", "legacy", 2}, {"version 2, modern", "auto", 2}} {
			t.Run(way+"/"+client.name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t, string(config))
				where := members{"sdk": client.sdk, "era": client.era, "answers": answers, "timeoutMs": 60_000}
				switch way {
				case "serve":
					where["url"] = p.serve()
				case "serve --stdio":
					where["command"], where["args"] = command(t), []string{"-C", p.dir, "-c", "c.json", "serve", "--stdio"}
					where["env"] = p.own(t)
				default:
					where["command"], where["args"] = command(t), []string{"-C", p.dir, "connect"}
					where["env"] = p.own(t)
					p.userServers(string(config))
					t.Cleanup(func() {
						if out, err := p.run("down"); err != nil {
							t.Errorf("down: %v\n%s", err, out)
						}
					})
				}
				c := newForeign(t, p.dir)
				c.do("connect", where)
				if client.sdk == 1 {
					takeOverTasks(c)
				}
				converse(c, p, client.era != "legacy")
				c.do("close", nil)
			})
		}
	}
}

// takeOverTasks runs a tool as a task, which asks a question on its way, and cancels another one. Version 2 of the SDK knows no tasks.
func takeOverTasks(c *foreign) {
	t := c.t
	t.Helper()
	const research = "npm__simulate-research-query"
	c.awaits("list", members{"what": "tools"}, `"`+research+`"`)
	got := c.do("task", members{"name": research, "args": members{"topic": "é", "ambiguous": true}})
	for _, part := range []string{`"working"`, `"input_required"`, `"result"`, "# Research Report: é", `"status":"completed"`} {
		if !strings.Contains(got, part) {
			t.Errorf("there is no %s in the task %s", part, got)
		}
	}
	if strings.Contains(got, `"listed":false`) {
		t.Errorf("the task is not in the list: %s", got)
	}
	got = c.do("task", members{"name": research, "args": members{"topic": "é"}, "cancel": true})
	if strings.Count(got, `"status":"cancelled"`) != 2 {
		t.Errorf("the cancelled task is %s", got)
	}
}

// awaits repeats a command until its reply has a text.
func (c *foreign) awaits(do string, m members, text string) string {
	c.t.Helper()
	got := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if got = c.text(do, m); strings.Contains(got, text) {
			return got
		}
	}
	c.t.Fatalf("%s %v never has %q, but %.2000s", do, m, text, got)
	return ""
}

func converse(c *foreign, p *place, modern bool) {
	t := c.t
	t.Helper()
	tools := members{"what": "tools"}
	c.awaits("list", tools, `"npm__echo"`)
	c.awaits("list", tools, `"go__test_simple_text"`)
	if modern {
		c.do("listen", members{"filter": members{"toolsListChanged": true, "resourceSubscriptions": []string{"demo://resource/static/document/features.md"}}})
	}

	// Progress comes before the answer, with the client's own token.
	c.do("call", members{"name": "go__test_tool_with_progress", "args": members{}, "progress": true})
	c.hears("progress", "100")

	// A question of a server reaches this client, and its answer the server. A modern client is asked by a legacy server in parked calls only.
	if !modern {
		if got := c.do("call", members{"name": "npm__trigger-elicitation-request", "args": members{}}); !strings.Contains(got, "Name: é") {
			t.Errorf("the elicitation ended with %s", got)
		}
		if got := c.do("call", members{"name": "npm__trigger-sampling-request", "args": members{"prompt": "p"}}); !strings.Contains(got, "sampled é") {
			t.Errorf("the sampling ended with %s", got)
		}
	}
	if got := c.do("call", members{"name": "go__test_input_required_result_elicitation", "args": members{}}); !strings.Contains(got, "é") {
		t.Errorf("the input of a server of the modern era ended with %s", got)
	}

	// A call that is cancelled ends at once, and the conversation goes on.
	long := c.begin("call", members{"name": "npm__trigger-long-running-operation", "args": members{"duration": 3600, "steps": 3600}, "key": "long", "progress": true})
	c.forget()
	c.hears("progress", "progress")
	c.do("cancel", members{"key": "long"})
	if r := c.await(long); r.Error == nil {
		t.Errorf("the cancelled call ended with %s", r.Value)
	}
	if got := c.do("call", members{"name": "npm__echo", "args": members{"message": "still here"}}); !strings.Contains(got, "still here") {
		t.Errorf("after the cancellation echo says %s", got)
	}

	// What a client watches, it hears of.
	if !modern {
		c.do("subscribe", members{"uri": "demo://resource/static/document/features.md"})
	}
	c.forget()
	c.do("call", members{"name": "npm__toggle-subscriber-updates", "args": members{}})
	c.hears("notifications/resources/updated", "features.md")

	if runtime.GOOS != "linux" {
		t.Log("NOT TESTED: the server's process is found on Linux only")
		return
	}
	// A server that is killed comes back, and the client is told of both.
	c.forget()
	killed := p.pids("server-everything")
	if len(killed) != 1 {
		t.Fatalf("server-everything runs as %v", killed)
	}
	if server, err := os.FindProcess(killed[0]); err != nil || server.Kill() != nil {
		t.Fatalf("process %d of the server cannot be killed: %v", killed[0], err)
	}
	c.hears("notifications/tools/list_changed", "")
	c.awaits("call", members{"name": "npm__echo", "args": members{"message": "back"}}, "Echo: back")
	c.awaits("list", tools, `"npm__echo"`)
	if back := p.pids("server-everything"); len(back) != 1 || back[0] == killed[0] {
		t.Errorf("server-everything runs as %v", back)
	}
}

// userServers writes the configuration of the user, which needs no approval.
func (p *place) userServers(config string) {
	p.t.Helper()
	file := filepath.Join(p.home, "config", "mcpvisor", "mcp.json")
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(config), 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// pids returns the processes of the place whose command line has a word. The test's own client runs in the place's folder, but has
// another home.
func (p *place) pids(word string) (pids []int) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		line, _ := os.ReadFile(folder + "/cmdline") // a process that has ended has none
		env, _ := os.ReadFile(folder + "/environ")
		if strings.Contains(string(line), word) && strings.Contains(string(env), "HOME="+p.home+"\x00") {
			if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
