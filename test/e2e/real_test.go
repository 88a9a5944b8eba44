package e2e_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// Every real server at once, over stdio, SSE and streamable HTTP: connected, named, listed and callable.
func TestRealServersAreConnectedListedAndCallable(t *testing.T) {
	seeds.Shows(t, "000.3.status-server-info", "000.3.status-tools", "000.8.register", "000.11.tool-registration",
		"000.11.http-sse", "001.1.transports", "002.2.npx", "002.10.real", "004.fr1.transport-stdio",
		"004.fr1.transport-http", "004.g.local-remote", "004.e.real-servers", "004.fr6.startup",
		"004.fr6.ac-auto-connect", "004.nfr1.parallel", "000.2.type-stdio", "000.2.type-sse", "000.2.type-http",
		"000.2.url", "001.1.client", "001.1.discovery", "001.1.execution", "001.3.stdio", "001.3.http-sse",
		"001.3.streamable-http", "002.1.tools", "002.2.capability-tools", "002.3.tool", "002.8.ecosystem",
		"003.1.client", "003.1.transports", "003.4.sse", "003.4.http", "004.g.providers", "004.g.discover",
		"004.fr1.list-call", "004.fr3.ac-namespaced")
	checkLeaks(t)
	members := newFleet(t, t.TempDir())
	m := startManager(t, supervisor.Config{Servers: specsOf(members)})
	awaitSettled(t, m)
	for name, s := range members {
		t.Run(name, func(t *testing.T) {
			awaitConnected(t, m, name)
			st := statusOf(t, m, name)
			if st.ServerInfo == nil || st.ServerInfo.Name != s.instructions || st.ServerInfo.Version == "" || st.ProtocolVersion == "" {
				t.Errorf("it says of itself %+v, protocol %q; want the name %q", st.ServerInfo, st.ProtocolVersion, s.instructions)
			}
			names := toolNames(m, name)
			for _, tool := range s.tools {
				if !slices.Contains(names, tool) {
					t.Errorf("tool %s is missing in %v", tool, names)
				}
				qualified := "mcp__" + name + "__" + tool
				if e, ok := m.Tools().Lookup(qualified); !ok || e.Tool.Name != tool || e.Tool.Server != name {
					t.Errorf("%s is not registered", qualified)
				}
			}
			if len(st.Tools) != len(names) || len(st.Quarantined) != 0 {
				t.Errorf("%d tools in the status, %d in the catalog, quarantined %v", len(st.Tools), len(names), st.Quarantined)
			}
			for _, e := range m.Tools().Server(name) {
				if !json.Valid(e.Tool.InputSchema) || !json.Valid(e.Tool.Raw) || e.Tool.Description == "" {
					t.Errorf("%s: schema %s, description %q", e.Name, e.Tool.InputSchema, e.Tool.Description)
				}
			}
			if s.tool == "" {
				return
			}
			res, err := m.CallTool(testContext(t, bound), "mcp__"+name+"__"+s.tool, s.args)
			if invalid := s.answerProblem(res, err); invalid != "" {
				t.Errorf("%s: %s", s.tool, invalid)
			}
			res, err = m.CallServerTool(testContext(t, bound), name, "no-such-tool", nil)
			if !errors.Is(err, supervisor.ErrUnknownTool) || !errors.Is(err, supervisor.ErrNotSent) {
				t.Errorf("a tool that it does not have: %v, %v", res, err)
			}
		})
	}
	t.Logf("%d servers, %d tools", len(m.ConnectedServers()), m.Tools().Len())
}

func TestContentOfEveryTypeReachesTheCaller(t *testing.T) {
	seeds.Shows(t, "000.6.content-types", "000.6.result", "000.11.error-propagation", "003.3.content",
		"003.3.is-error", "004.fr4.ac-results", "004.fr4.ac-arguments", "000.4.call-tool", "002.4.execute-tool",
		"004.fr4.result")
	checkLeaks(t)
	command, args := peers.NPM(t).Command(peers.Everything)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"npm": {Command: command, Args: args},
		"go":  {Command: peers.Go(t)},
	}})
	awaitConnected(t, m, "npm", "go")

	checkText(t, m, "npm", "echo", object{"message": "grüße, \"you\" \\ \u2028 🚀"}, "Echo: grüße, \"you\" \\ \u2028 🚀")
	types := func(server, tool string, args any) (types []string, parts []supervisor.Content) {
		t.Helper()
		parts, err := mustCall(t, m, server, tool, args).Content()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			types = append(types, p.Type)
		}
		return types, parts
	}
	if got, parts := types("npm", "get-tiny-image", nil); !slices.Contains(got, "image") {
		t.Errorf("an image: %v", got)
	} else if i := slices.Index(got, "image"); parts[i].MIMEType != "image/png" || len(parts[i].Data) < 100 {
		t.Errorf("an image: %s", parts[i].Raw)
	}
	if got, parts := types("npm", "get-resource-links", object{"count": 2}); !slices.Contains(got, "resource_link") {
		t.Errorf("links: %v", got)
	} else if i := slices.Index(got, "resource_link"); parts[i].URI == "" {
		t.Errorf("a link: %s", parts[i].Raw)
	}
	if got, parts := types("go", "test_embedded_resource", nil); !slices.Equal(got, []string{"resource"}) ||
		len(parts[0].Resource) == 0 {
		t.Errorf("a resource: %v", got)
	}
	if got, parts := types("go", "test_audio_content", nil); !slices.Equal(got, []string{"audio"}) || parts[0].Data == "" {
		t.Errorf("audio: %v", got)
	}
	got, _ := types("go", "test_multiple_content_types", nil)
	if !slices.Equal(got, []string{"text", "image", "resource"}) {
		t.Errorf("several parts, in order: %v", got)
	}
	res := mustCall(t, m, "npm", "get-structured-content", object{"location": "Chicago"})
	var weather struct{ Temperature, Humidity float64 }
	err := json.Unmarshal(res.Structured(), &weather)
	if err != nil || weather.Temperature != 36 || weather.Humidity != 82 {
		t.Errorf("structured content: %s, %v", res.Raw, err)
	}
	// A tool's own failure is a result that a model should read, and no error of the call.
	if res := mustCall(t, m, "go", "test_error_handling", nil); !res.IsError || res.Outcome() != messages.OutcomeToolError ||
		!containsWords(res.Text(), "intentionally returns an error") {
		t.Errorf("a tool's own error: %s", res.Raw)
	}
	// What the server's own check of the arguments says comes back, in whatever way the server says it.
	res, err = m.CallServerTool(testContext(t, bound), "npm", "get-sum", object{"a": "two"})
	if err == nil && (!res.IsError || !containsWords(res.Text(), "number")) ||
		err != nil && !errors.Is(err, supervisor.ErrRejected) {
		t.Errorf("wrong arguments: %v, %v", res, err)
	}
	// A server reports progress while it works: that ends nothing.
	res = mustCall(t, m, "npm", "trigger-long-running-operation", object{"duration": 1, "steps": 4})
	if res.IsError || !containsWords(res.Text(), "completed") {
		t.Errorf("a long operation: %s", res.Raw)
	}
	checkText(t, m, "go", "test_tool_with_progress", nil, mustCall(t, m, "go", "test_tool_with_progress", nil).Text())
}

func TestFilesAreWrittenAndReadBackInTheAllowedFolder(t *testing.T) {
	seeds.Shows(t, "000.7.stdio-spawn", "004.fr2.stdio-fields", "004.fr1.ac-call")
	checkLeaks(t)
	dir := t.TempDir()
	command, args := peers.NPM(t).Command(peers.Filesystem, dir)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"files": {Command: command, Args: args, Cwd: dir},
	}})
	awaitConnected(t, m, "files")
	path := filepath.Join(dir, "größe.txt")
	text := "first line\nzweite Zeile\n"
	if res := mustCall(t, m, "files", "write_file", object{"path": path, "content": text}); res.IsError {
		t.Fatal(res.Text())
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != text {
		t.Errorf("on disk: %q, %v", raw, err)
	}
	checkText(t, m, "files", "read_text_file", object{"path": path}, text)
	if res := mustCall(t, m, "files", "list_directory", object{"path": dir}); !containsWords(res.Text(), "größe.txt") {
		t.Errorf("the folder: %s", res.Text())
	}
	res := mustCall(t, m, "files", "read_text_file", object{"path": filepath.Join(filepath.Dir(dir), "outside.txt")})
	if !res.IsError || !containsWords(res.Text(), "outside allowed directories") {
		t.Errorf("a file outside: %s", res.Raw)
	}
}

func TestAGraphIsRememberedOverAReconnect(t *testing.T) {
	seeds.Shows(t, "000.2.env", "000.4.reconnect", "000.11.reconnect")
	checkLeaks(t)
	file := filepath.Join(t.TempDir(), "graph.jsonl")
	command, args := peers.NPM(t).Command(peers.Memory)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"memory": {Command: command, Args: args, Env: map[string]string{"MEMORY_FILE_PATH": file}},
	}})
	awaitConnected(t, m, "memory")
	before := statusOf(t, m, "memory")
	mustCall(t, m, "memory", "create_entities", object{"entities": []object{
		{"name": "mcpvisor", "entityType": "program", "observations": []string{"keeps servers connected"}},
		{"name": "memory", "entityType": "server", "observations": []string{}},
	}})
	mustCall(t, m, "memory", "create_relations", object{"relations": []object{
		{"from": "mcpvisor", "to": "memory", "relationType": "supervises"},
	}})
	if err := m.Reconnect(testContext(t, bound), "memory"); err != nil {
		t.Fatal(err)
	}
	after := statusOf(t, m, "memory")
	if after.Epoch <= before.Epoch || after.PID == before.PID || after.Restarts != 1 {
		t.Errorf("epoch %d, process %d, then %d, %d, %d restarts", before.Epoch, before.PID, after.Epoch, after.PID,
			after.Restarts)
	}
	if res := mustCall(t, m, "memory", "read_graph", nil); !containsWords(res.Text(), "keeps servers connected", "supervises") {
		t.Errorf("the graph: %s", res.Text())
	}
}

func TestAnnotationsAreExposedByTheirOwnNames(t *testing.T) {
	seeds.Shows(t, "000.3.tool-info", "000.3.annotation-names", "000.11.annotations-exposed")
	checkLeaks(t)
	npm := peers.NPM(t)
	command, args := npm.Command(peers.Filesystem, t.TempDir())
	query, queryArgs := npm.Command(peers.Postgres, "postgresql://127.0.0.1:1/none")
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"files": {Command: command, Args: args}, "db": {Command: query, Args: queryArgs},
	}})
	awaitConnected(t, m, "files", "db")
	yes, no := true, false
	for tool, want := range map[string]struct {
		annotations messages.Annotations
		status      string
	}{
		"read_text_file": {messages.Annotations{ReadOnly: &yes, OpenWorld: &no}, `{"readOnly":true,"openWorld":false}`},
		"write_file": {messages.Annotations{ReadOnly: &no, Destructive: &yes, Idempotent: &yes, OpenWorld: &no},
			`{"readOnly":false,"destructive":true,"idempotent":true,"openWorld":false}`},
	} {
		e, ok := m.Tools().LookupTool("files", tool)
		if !ok || e.Tool.Annotations == nil {
			t.Errorf("%s: %+v", tool, e)
			continue
		}
		if got, want := asJSON(t, e.Tool.Annotations), asJSON(t, want.annotations); got != want {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
		if !containsWords(asJSON(t, statusOf(t, m, "files")), `"annotations":`+want.status) {
			t.Errorf("%s: the status does not show %s", tool, want.status)
		}
	}
	if e, ok := m.Tools().LookupTool("db", "query"); !ok || e.Tool.Annotations != nil {
		t.Errorf("annotations that the server did not give: %+v", e)
	}
}

func TestSchemasAreTheServersOwn(t *testing.T) {
	seeds.Shows(t, "004.fr3.ac-schema", "004.fr3.definition")
	checkLeaks(t)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"go": {Command: peers.Go(t)}}})
	awaitConnected(t, m, "go")
	e, ok := m.Tools().LookupTool("go", "json_schema_2020_12_tool")
	if !ok {
		t.Fatal(toolNames(m, "go"))
	}
	for _, kept := range []string{`"$schema":"https://json-schema.org/draft/2020-12/schema"`, `"$anchor":"addressDef"`,
		`"$ref":"#/$defs/address"`, `"allOf"`, `"if"`, `"then"`, `"else"`, `"additionalProperties":false`} {
		if !strings.Contains(strings.ReplaceAll(string(e.Tool.InputSchema), " ", ""), kept) {
			t.Errorf("%s is lost in %s", kept, e.Tool.InputSchema)
		}
	}
}

func TestAChildSeesWhatIsDeclaredAndNoSecretOfItsParent(t *testing.T) {
	seeds.Shows(t, "001.5.command-args-env", "000.2.command-args")
	checkLeaks(t)
	command, args := peers.NPM(t).Command(peers.Everything)
	declared := map[string]string{"E2E_DECLARED": "on purpose"}
	yes := true
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"short": {Command: command, Args: args, Env: declared},
		"whole": {Command: command, Args: args, Env: declared, InheritEnv: &yes},
	}})
	awaitConnected(t, m, "short", "whole")
	for name, inherits := range map[string]bool{"short": false, "whole": true} {
		var env map[string]string
		if err := json.Unmarshal([]byte(mustCall(t, m, name, "get-env", nil).Text()), &env); err != nil {
			t.Fatal(err)
		}
		if env["E2E_DECLARED"] != "on purpose" || env["PATH"] == "" {
			t.Errorf("%s: what was declared, and PATH, are missing: %d variables", name, len(env))
		}
		if got := env[parentSecretName] != ""; got != inherits {
			t.Errorf("%s: it sees a variable of its parent: %v", name, got)
		}
	}
}

func TestAServerThatFailsItsOwnCallsStaysConnected(t *testing.T) {
	seeds.Shows(t, "000.9.error", "004.fr4.ac-errors", "002.10.integration")
	checkLeaks(t)
	command, args := peers.NPM(t).Command(peers.Postgres, "postgresql://e2e:"+databasePassword+"@127.0.0.1:1/none")
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"db": {Command: command, Args: args}}})
	awaitConnected(t, m, "db")
	for range 3 {
		res, err := m.CallServerTool(testContext(t, bound), "db", "query", object{"sql": "select 1"})
		var e *supervisor.Error
		switch {
		case err == nil && !res.IsError:
			t.Errorf("a query without a database: %s", res.Raw)
		case err != nil && (!errors.As(err, &e) || e.Outcome != messages.OutcomeRejected ||
			e.Class != messages.ClassRejected):
			t.Errorf("a query without a database: %v", err)
		case err != nil && !containsWords(err.Error(), "db", "query", "ECONNREFUSED"):
			t.Errorf("the server's own words are lost: %v", err)
		}
	}
	if st := statusOf(t, m, "db"); st.Status != messages.Connected || st.Restarts != 0 || st.Attempts != 0 {
		t.Errorf("a call that failed changed its server: %s, %d restarts, %d attempts", st.Status, st.Restarts, st.Attempts)
	}
}
