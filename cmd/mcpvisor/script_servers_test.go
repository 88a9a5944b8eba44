package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// marks leaves a file behind, for a script to see that it has been started, and becomes a fixture.
func marks() {
	if err := os.WriteFile(os.Args[1], []byte("started"), 0o600); err != nil {
		panic(err)
	}
	servers.Main(os.Args[2:])
}

// model stands in for a program that asks a language model.
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

// serveScripts starts the servers that the scripts reach over HTTP and returns the variables with their addresses. They
// end after the scripts, which run in parallel with the rest of their test.
func serveScripts(t *testing.T) []string {
	var vars []string
	for name, serve := range map[string]http.HandlerFunc{"PRIVATE": servePrivate, "PATIENT": servePatient} {
		s := httptest.NewServer(serve)
		t.Cleanup(s.Close)
		vars = append(vars, name+"="+s.URL)
	}
	return vars
}

// servePrivate demands credentials and takes none.
func servePrivate(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer scope="read write"`)
	w.WriteHeader(http.StatusUnauthorized)
}

// servePatient has a tool that writes the file it is given and does not answer.
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
