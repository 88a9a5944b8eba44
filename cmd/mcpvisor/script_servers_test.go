package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// marks is a program that leaves a file behind, by which a script sees that it was started, and becomes a fixture.
func marks() {
	if err := os.WriteFile(os.Args[1], []byte("started"), 0o600); err != nil {
		panic(err)
	}
	servers.Main(os.Args[2:])
}

// model is a program in the place of a sampling command.
func model() {
	asked, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	switch os.Args[1] {
	case "good":
		text, err := json.Marshal(os.Getenv("MCPVISOR_SERVER") + " asked " + string(asked))
		if err != nil {
			panic(err)
		}
		fmt.Printf(`{"role":"assistant","model":"m","content":{"type":"text","text":%s}}`+"\n", text)
	case "fails":
		fmt.Println("a canary")
		os.Exit(3)
	case "text":
		fmt.Println("yes")
	case "empty":
		fmt.Println("{}")
	}
}

// serveScripts starts the servers that the scripts reach over HTTP, and returns the variables with their addresses. They end
// after the scripts, which run in parallel with the rest of their test.
func serveScripts(t *testing.T) []string {
	var vars []string
	for name, serve := range map[string]http.HandlerFunc{
		"PRIVATE": servePrivate, "PATIENT": servePatient, "REGISTRY": serveRegistry,
	} {
		s := httptest.NewServer(serve)
		t.Cleanup(s.Close)
		vars = append(vars, name+"="+s.URL)
	}
	return vars
}

// servePrivate asks for credentials and accepts none.
func servePrivate(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer scope="read write"`)
	w.WriteHeader(http.StatusUnauthorized)
}

// servePatient has a tool that writes the file it is given and never answers, so that a call is certain to be running.
func servePatient(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments struct{ File string } }
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	switch m.Method {
	case "initialize":
		answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"patient","version":"1"}}`)
	case "tools/list":
		answer(`{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		if err := os.WriteFile(m.Params.Arguments.File, []byte("called"), 0o600); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		<-r.Context().Done()
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// cargoHome returns the variable by which the programs of this test stand where cargo installs programs: serveRegistry has a
// crate "fixture".
func cargoHome() string {
	program, err := exec.LookPath("fixture")
	if err != nil {
		return "CARGO_HOME="
	}
	return "CARGO_HOME=" + filepath.Dir(filepath.Dir(program))
}

// serveRegistry is an MCP registry with the kinds of entries that a person meets: several of one name, a deprecated one, one
// with inputs, and one that cannot be read.
func serveRegistry(w http.ResponseWriter, r *http.Request) {
	entry := func(name, rest string) string {
		return `{"server":{"name":"` + name + `","version":"1.2.0",` + rest + `},"_meta":{` +
			`"io.modelcontextprotocol.registry/official":{"status":"active","isLatest":true}}}`
	}
	const npm = `"packages":[{"registryType":"npm","identifier":"x","version":"1.2.0","transport":{"type":"stdio"}}]`
	all := map[string]string{
		"weather":  entry("io.github.o/weather", `"description":"Forecasts","remotes":[{"type":"sse","url":"https://w.example"}],`+npm),
		"weather2": entry("com.example/weather-mcp", `"description":"Others\u001b[31m \u202eforecasts",`+npm),
		"old": strings.Replace(entry("io.github.o/old-weather", `"description":"d",`+npm), `"active"`,
			`"deprecated","statusMessage":"use weather"`, 1),
		"command": entry("io.github.o/command", `"description":"Runs","packages":[{"registryType":"cargo","identifier":"fixture",`+
			`"version":"1.2.0","transport":{"type":"stdio"},"packageArguments":[{"type":"positional","value":"mcp-fixture"},`+
			`{"type":"positional","valueHint":"kind","isRequired":true,"choices":["good","slow"]},`+
			`{"type":"named","name":"--key","valueHint":"key","isSecret":true}],"environmentVariables":[`+
			`{"name":"TOKEN","isRequired":true,"isSecret":true,"description":"a key"}]}]`),
	}
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	switch {
	case r.URL.Path == "/v0.1/servers/io.github.o/command/versions/latest":
		fmt.Fprint(w, all["command"])
	case r.URL.Path != "/v0.1/servers":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"title":"Not Found","status":404,"detail":"Server not found"}`)
	case len(q.Get("search")) < 3:
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"detail":"search must contain at least 3 characters after trimming surrounding whitespace"}`)
	case q.Get("search") == "command":
		fmt.Fprintf(w, `{"servers":[%s],"metadata":{"count":1}}`, all["command"])
	case q.Get("search") != "weather":
		fmt.Fprint(w, `{"servers":[],"metadata":{"count":0}}`)
	case q.Get("cursor") == "page 2":
		fmt.Fprintf(w, `{"servers":[%s,{"server":{"name":"nonsense"}}],"metadata":{"count":2}}`, all["old"])
	default:
		fmt.Fprintf(w, `{"servers":[%s,%s],"metadata":{"count":2,"nextCursor":"page 2"}}`, all["weather2"], all["weather"])
	}
}
