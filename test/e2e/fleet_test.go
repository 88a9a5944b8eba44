package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
)

// fleetServer is one of the real servers of a fleet, and one call that shows that it works.
type fleetServer struct {
	spec supervisor.Spec
	// instructions is what the server says of itself.
	instructions string
	// tools are some of its tools.
	tools []string
	// tool is called with args, and its answer contains answer.
	tool   string
	args   object
	answer string
}

// newFleet is one of each: every server that package peers knows, over every transport that it speaks, in every form in
// which people configure it. dir is a folder that the servers of files may use.
func newFleet(t *testing.T, dir string) map[string]fleetServer {
	t.Helper()
	npm, sdk := peers.NPM(t), peers.Go(t)
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdio := func(command string, args []string) supervisor.Spec {
		return supervisor.Spec{Type: messages.Stdio, Command: command, Args: args}
	}
	all := fleetServer{
		instructions: "mcp-servers/everything", tools: []string{"echo", "get-env", "get-sum", "get-tiny-image"},
		tool: "get-sum", args: object{"a": 2, "b": 40}, answer: "The sum of 2 and 40 is 42.",
	}
	conformance := fleetServer{
		instructions: "mcp-conformance-test-server", tools: []string{"test_simple_text", "json_schema_2020_12_tool"},
		tool: "test_simple_text", answer: "This is a simple text response for testing.",
	}
	at := func(m fleetServer, spec supervisor.Spec) fleetServer { m.spec = spec; return m }

	sse := startServer(t, everythingServer(npm, "sse"))
	streamable := startServer(t, everythingServer(npm, "streamableHttp"))
	sessions := startServer(t, goSDKServer(sdk, "false"))
	stateless := startServer(t, goSDKServer(sdk, "true"))

	return map[string]fleetServer{
		"everything-stdio": at(all, stdio(npm.Command(peers.Everything))),
		"everything-npx":   at(all, stdio(npm.NPX(peers.Everything))),
		"everything-sse":   at(all, supervisor.Spec{Type: messages.SSE, URL: sse.url("/sse")}),
		"everything-http":  at(all, supervisor.Spec{Type: messages.HTTP, URL: streamable.url("/mcp")}),
		// A URL without a type is what most people write, also for the older kind.
		"everything-untyped": at(all, supervisor.Spec{URL: sse.url("/sse"), FallbackSSE: true}),
		"files": {
			spec: stdio(npm.Command(peers.Filesystem, dir)), instructions: "secure-filesystem-server",
			tools: []string{"read_text_file", "write_file", "list_directory"},
			tool:  "read_text_file", args: object{"path": filepath.Join(dir, "hello.txt")}, answer: "hello from a file",
		},
		"memory": {
			spec: changeSpec(stdio(npm.Command(peers.Memory)), func(s *supervisor.Spec) {
				s.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")}
			}),
			instructions: "memory-server", tools: []string{"create_entities", "read_graph", "search_nodes"},
			tool: "read_graph", answer: `"entities"`,
		},
		"thinking": {
			spec: stdio(npm.Command(peers.SequentialThinking)), instructions: "sequential-thinking-server",
			tools: []string{"sequentialthinking"}, tool: "sequentialthinking",
			args:   object{"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1},
			answer: `"thoughtNumber": 1`,
		},
		// It starts without its database, and its tool says that there is none.
		"postgres": {
			spec:         stdio(npm.Command(peers.Postgres, "postgresql://e2e:"+databasePassword+"@127.0.0.1:1/none")),
			instructions: "example-servers/postgres", tools: []string{"query"},
		},
		"gosdk-stdio":     at(conformance, stdio(sdk, nil)),
		"gosdk-http":      at(conformance, supervisor.Spec{Type: messages.HTTP, URL: sessions.url("/")}),
		"gosdk-stateless": at(conformance, supervisor.Spec{Type: messages.HTTP, URL: stateless.url("/")}),
	}
}

const databasePassword = "canary-database-51c0de"

func specsOf(members map[string]fleetServer) map[string]supervisor.Spec {
	specs := map[string]supervisor.Spec{}
	for name, m := range members {
		specs[name] = m.spec
	}
	return specs
}

// answerProblem reports what is wrong with a member's answer to its call; empty if nothing is.
func (m fleetServer) answerProblem(res *supervisor.Result, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case res.IsError || !containsWords(res.Text(), m.answer):
		return "answers " + res.Text()
	case !json.Valid(res.Raw):
		return "is no JSON: " + string(res.Raw)
	}
	return ""
}
