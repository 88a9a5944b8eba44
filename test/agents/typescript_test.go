package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/peers"
)

// A step is one command of a client, and what is compared of its reply.
type step struct {
	do string
	m  members
}

func call(name string, args members) step { return step{"call", members{"name": name, "args": args}} }

// realServers are the servers of npm with what is asked of each.
func realServers(t *testing.T, folder string) map[string]struct {
	command string
	args    []string
	steps   []step
} {
	t.Helper()
	npm := peers.NPM(t)
	lists := []step{{"list", members{"what": "tools"}}}
	offers := append(lists, step{"list", members{"what": "resources"}}, step{"list", members{"what": "templates"}}, step{"list", members{"what": "prompts"}})
	type server = struct {
		command string
		args    []string
		steps   []step
	}
	all := map[string]server{}
	add := func(name, program string, args []string, steps ...step) {
		command, argv := npm.Command(program, args...)
		all[name] = server{command, argv, steps}
	}
	add("everything", peers.Everything, nil, append(offers,
		call("echo", members{"message": "é \u2028 😀"}), call("get-sum", members{"a": 0.1, "b": 2}), call("get-sum", members{"a": "x"}),
		call("get-annotated-message", members{"messageType": "error", "includeImage": true}), call("get-structured-content", members{"location": "Chicago"}),
		call("get-resource-links", members{"count": 3}), call("get-tiny-image", members{}),
		call("trigger-elicitation-request", members{}), call("trigger-sampling-request", members{"prompt": "p", "maxTokens": 5}),
		step{"read", members{"uri": "demo://resource/static/document/features.md"}}, step{"read", members{"uri": "demo://resource/static/document/none"}},
		step{"prompt", members{"name": "simple-prompt"}}, step{"prompt", members{"name": "args-prompt", "args": members{"city": "Zürich"}}},
		step{"prompt", members{"name": "args-prompt"}}, step{"prompt", members{"name": "nothing"}},
		step{"complete", members{"params": members{"ref": members{"type": "ref/prompt", "name": "completable-prompt"}, "argument": members{"name": "department", "value": "E"}}}},
		step{"ping", nil},
	)...)
	add("filesystem", peers.Filesystem, []string{folder}, append(lists,
		call("write_file", members{"path": filepath.Join(folder, "a.txt"), "content": "é\n\"b\"\n"}), call("read_text_file", members{"path": filepath.Join(folder, "a.txt")}),
		call("list_directory", members{"path": folder}), call("read_text_file", members{"path": "/etc/hostname"}), call("read_text_file", members{}),
		call("edit_file", members{"path": filepath.Join(folder, "a.txt"), "edits": []members{{"oldText": "b", "newText": "c"}}, "dryRun": true}),
	)...)
	add("memory", peers.Memory, nil, append(lists,
		call("create_entities", members{"entities": []members{{"name": "é", "entityType": "t", "observations": []string{"o"}}}}),
		call("read_graph", members{}), call("search_nodes", members{"query": "é"}), call("open_nodes", members{"names": []string{"none"}}),
		call("delete_entities", members{"entityNames": []string{"é"}}),
	)...)
	add("thinking", peers.SequentialThinking, nil, append(lists,
		call("sequentialthinking", members{"thought": "é", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2}),
		call("sequentialthinking", members{"thought": 7}),
	)...)
	return all
}

var answers = members{"elicitation": members{"action": "accept", "content": members{"name": "é", "check": true}},
	"sampling": members{"role": "assistant", "model": "m", "content": members{"type": "text", "text": "sampled é"}}, "roots": members{"roots": []string{}}}

// notSent is how the gateway says that a call has not left it.
const notSent = `"mcpvisor/outcome":"not-sent"`

// perform performs the steps and returns the replies; prefix is that of the names of tools and prompts. A gateway that has just started
// lists what its servers had in their last run, or nothing, and notifies of the rest: so a list is asked for until it is that of want,
// if there is one. And what it says not to have sent, because the server is still being connected, is asked for again.
func perform(c *foreign, steps []step, prefix string, want []string) (replies []string) {
	for i, s := range steps {
		m := members{}
		for name, value := range s.m {
			m[name] = value
		}
		if name, ok := m["name"].(string); ok {
			m["name"] = prefix + name
		}
		if params, ok := m["params"].(members); ok && prefix != "" {
			ref := params["ref"].(members)
			m["params"] = members{"ref": members{"type": ref["type"], "name": prefix + ref["name"].(string)}, "argument": params["argument"]}
		}
		reply := plain(c.t, c.text(s.do, m), prefix)
		retry := func() bool {
			return want != nil && (s.do == "list" && reply != want[i] || strings.Contains(reply, notSent))
		}
		for deadline := time.Now().Add(patience); retry() && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			reply = plain(c.t, c.text(s.do, m), prefix)
		}
		replies = append(replies, reply)
	}
	return replies
}

// plain returns a reply with its members sorted, without the prefix of names, and lists in the order of their texts: the SDK orders members
// by the era, and the gateway tools by their names. execution belongs to the legacy era, and the SDK takes it out in the other one.
func plain(t *testing.T, text, prefix string) string {
	t.Helper()
	if strings.HasPrefix(text, "error") {
		return strings.ReplaceAll(text, prefix, "")
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	list, ok := v.([]any)
	if !ok {
		if o, ok := v.(map[string]any); ok { // the modern era demands hints for caches
			delete(o, "ttlMs")
			delete(o, "cacheScope")
		}
		return strings.ReplaceAll(written(t, v), prefix, "")
	}
	var all []string
	for _, item := range list {
		o := item.(map[string]any)
		delete(o, "execution")
		if name := fmt.Sprint(o["name"]); o["uri"] == "memory://knowledge-graph" || o["uri"] == nil && o["uriTemplate"] == nil && !strings.HasPrefix(name, prefix) {
			continue // it belongs to another server; nothing asks for the resource of memory alone
		}
		all = append(all, strings.ReplaceAll(written(t, o), prefix, ""))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func written(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return count.ReplaceAllString(string(b), "")
}

// count is what the server counts over all its clients.
var count = regexp.MustCompile(`\\?"thoughtHistoryLength\\?": ?\d+`)

// TestRealServersAnswerAsWithoutTheGateway compares what the TypeScript SDK gets from servers of npm with what it gets through the
// gateway, in each way to it.
func TestRealServersAnswerAsWithoutTheGateway(t *testing.T) {
	folder := t.TempDir()
	servers := realServers(t, folder)
	graphs := t.TempDir() // not in folder, which is listed meanwhile
	config := map[string]any{}
	for name, s := range servers {
		config[name] = map[string]any{"command": s.command, "args": s.args, "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(graphs, "through.json")}}
	}
	p := newPlace(t, written(t, map[string]any{"mcpServers": config}))
	url := p.serve("--prefix", "never")
	prefixed := p.serve()
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alone := filepath.Join(p.dir, name+".json")
			if err := os.WriteFile(alone, []byte(written(t, map[string]any{"mcpServers": map[string]any{name: config[name]}})), 0o600); err != nil {
				t.Fatal(err)
			}
			direct := map[int][]string{}
			for _, sdk := range []int{1, 2} {
				c := newForeign(t, p.dir)
				c.do("connect", members{"sdk": sdk, "era": "legacy", "command": s.command, "args": s.args, "answers": answers,
					"env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(graphs, fmt.Sprintf("direct%d.json", sdk))}})
				direct[sdk] = perform(c, s.steps, "", nil)
				c.do("close", nil)
			}
			lines := members{"command": command(t), "args": []string{"-C", p.dir, "-c", alone, "serve", "--stdio", "--server", name}, "env": p.own(t)}
			for _, way := range []struct {
				name, era, prefix string
				sdk               int
				where             members
			}{
				{"its own path", "legacy", "", 1, members{"url": strings.TrimSuffix(url, "/mcp") + "/mcp/s/" + name}},
				{"all servers", "legacy", name + "__", 1, members{"url": prefixed}},
				{"on lines", "legacy", "", 1, lines},
				{"its own path", "legacy", "", 2, members{"url": strings.TrimSuffix(url, "/mcp") + "/mcp/s/" + name}},
				{"its own path, modern", "auto", "", 2, members{"url": strings.TrimSuffix(url, "/mcp") + "/mcp/s/" + name}},
				{"on lines, modern", "auto", "", 2, lines},
			} {
				way.where["sdk"], way.where["era"], way.where["answers"] = way.sdk, way.era, answers
				c := newForeign(t, p.dir)
				c.do("connect", way.where)
				got := perform(c, s.steps, way.prefix, direct[way.sdk])
				for i, step := range s.steps {
					if got[i] != direct[way.sdk][i] && !differs(step, way.era, way.prefix) {
						t.Errorf("SDK %d, %s, %s %v:\ndirect  %.1500s\nthrough %.1500s", way.sdk, way.name, step.do, step.m, direct[way.sdk][i], got[i])
					}
				}
				c.do("close", nil)
			}
		})
	}
}

// differs reports whether a step may have another answer through the gateway: where several servers have resources, a URI that none of
// them lists is asked of none; the modern era has no ping, and a server of the legacy era can ask its agents by parked calls only, which the
// clients of this test do not take part in.
func differs(s step, era, prefix string) bool {
	name := fmt.Sprint(s.m["name"])
	return prefix != "" && s.do == "read" && strings.HasSuffix(fmt.Sprint(s.m["uri"]), "/none") ||
		era != "legacy" && (s.do == "ping" || strings.HasPrefix(name, "trigger-"))
}

// own returns the environment of a place for a client that starts the command.
func (p *place) own(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, pair := range p.env[len(os.Environ()):] {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}
