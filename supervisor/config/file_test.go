package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

func parse(data string) config.Parsed {
	return config.Parse(config.File{Path: "f.json", Scope: messages.ScopeUser, Data: []byte(data)})
}

// What is no JSON object at all is one problem of the file, with the place.
func TestBrokenFiles(t *testing.T) {
	const (
		cut    = `the file ends in the middle; close what is open: a quote, a bracket or a comment`
		escape = "this text has a line break or a wrong escape in it; " +
			`write \n for a line break and \\ for a backslash`
	)
	for name, c := range map[string]struct{ data, want string }{
		"empty":            {"", `f.json:1:1: the file is empty; write {"mcpServers": {}}`},
		"blank":            {" \n\t\n", `f.json:1:1: the file is empty; write {"mcpServers": {}}`},
		"mark only":        {"\ufeff", `f.json:1:1: the file is empty; write {"mcpServers": {}}`},
		"UTF-16":           {"\xff\xfe{\x00}\x00", `f.json:1:1: the file is UTF-16; save it as UTF-8`},
		"Latin-1":          {"{\"a\": \"b\",\n \"caf\xe9\": 1}", `f.json:2:6: the file is not UTF-8 text; save it as UTF-8`},
		"list":             {"\n  []", `f.json:2:3: found a list instead of an object; write {"mcpServers": {}}`},
		"text":             {`"x"`, `f.json:1:1: found text instead of an object; write {"mcpServers": {}}`},
		"null":             {"null", `f.json:1:1: found null instead of an object; write {"mcpServers": {}}`},
		"cut off":          {"{\"mcpServers\": {\n\"a\": {", `f.json:2:7: ` + cut},
		"open text":        {`{"mcpServers": {"a`, `f.json:1:19: ` + cut},
		"open comment":     {"{} /* x", `f.json:1:8: ` + cut},
		"no comma":         {"{\n\"a\": 1\n\"b\": 2}", `f.json:3:1: a comma or a closing brace is missing before this`},
		"no comma in list": {`{"a": [1 2]}`, `f.json:1:10: a comma or a closing bracket is missing before this`},
		"no colon":         {`{"a" 1}`, `f.json:1:6: a colon is missing before this`},
		"bare key":         {`{a: 1}`, `f.json:1:2: this is no JSON value; text stands in double quotes`},
		"number key":       {`{1: 1}`, `f.json:1:2: a key in double quotes is expected here`},
		"no value":         {`{"a": }`, `f.json:1:7: a value is expected here; text stands in double quotes`},
		"single quotes":    {`{'a': 1}`, `f.json:1:2: a value is expected here; text stands in double quotes`},
		"wide characters":  {`{"größe": "ü" x}`, `f.json:1:15: a comma or a closing brace is missing before this`},
		"two objects":      {`{} {}`, `f.json:1:4: the file goes on after its closing brace; a file holds one object`},
		"CRLF":             {"{\r\n  \"a\": x\r\n}", `f.json:2:8: this is no JSON value; text stands in double quotes`},
		"bad escape":       {`{"a": "C:\tools\server"}`, `f.json:1:7: ` + escape},
		"line break":       {"{\"a\": \"b\nc\"}", `f.json:1:7: ` + escape},
		"deep":             {strings.Repeat("[", 200000), `f.json:1:65: more than 64 brackets are open`},
		"deep after text":  {`{"[[[\"[": ` + strings.Repeat(`{"a":`, 70), `f.json:1:327: more than 64 brackets are open`},
		"large":            {strings.Repeat(" ", 5<<20), `f.json:1:1: the file is larger than 4 MiB`},
	} {
		t.Run(name, func(t *testing.T) {
			p := parse(c.data)
			if !p.Broken || len(p.Servers) != 0 || len(p.Problems) != 1 {
				t.Fatalf("broken %v, %d servers, problems %v", p.Broken, len(p.Servers), p.Problems)
			}
			if got := p.Problems[0].Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// What editors leave in a file does not break it.
func TestLenientFiles(t *testing.T) {
	for name, data := range map[string]string{
		"plain":               `{"mcpServers": {"a": {"command": "x"}}}`,
		"byte order mark":     "\ufeff" + `{"mcpServers": {"a": {"command": "x"}}}`,
		"comment, no newline": `{"mcpServers": {"a": {"command": "x"}}} // end`,
		"CRLF":                "{\r\n\"mcpServers\": {\r\n\"a\": {\"command\": \"x\"}}}\r\n",
		"trailing commas":     `{"mcpServers": {"a": {"command": "x",},},}`,
		"brackets in a comment": `{/*` + strings.Repeat("[", 100) + "*/ // " + strings.Repeat("{", 100) + "\n" +
			`"servers": {"a": {"command": "x"}}}`,
		"unknown neighbours": `{"theme": {"a": [1, {"b": null}]}, "servers": {"a": {"command": "x"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := parse(data)
			if a, ok := p.Servers["a"]; p.Broken || !ok || a.Spec.Command != "x" || a.Spec.Invalid != "" {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestNoServersIsFine(t *testing.T) {
	for _, data := range []string{`{}`, `{"mcpServers": {}}`, `{"servers": []}`} {
		if p := parse(data); p.Broken || len(p.Problems) != 0 || len(p.Servers) != 0 {
			t.Errorf("%s: %+v", data, p)
		}
	}
}

// A byte order mark takes no column, and a column is a character, not a byte.
func TestPositions(t *testing.T) {
	p := parse("\ufeff{\"mcpServers\": {\r\n\t\"größe\": {\"kommando\": 1, \"command\": 2}}}")
	e := p.Servers["größe"]
	if want := (config.Pos{Line: 2, Col: 2}); e.Pos != want {
		t.Errorf("name at %v, want %v", e.Pos, want)
	}
	if want := `command: found a number instead of text (f.json:2:38)`; e.Spec.Invalid != want {
		t.Errorf("got %s, want %s", e.Spec.Invalid, want)
	}
}

func TestUnreadableFile(t *testing.T) {
	p := config.Parse(config.File{Path: "f.json", Scope: messages.ScopeDynamic, Err: "permission denied"})
	if !p.Broken || len(p.Problems) != 1 || p.Problems[0].Error() != "f.json: permission denied" {
		t.Errorf("%+v", p)
	}
	good := parse(`{}`)
	if set := config.Merge([]config.Parsed{p}, config.Context{}); !set.Unreadable() {
		t.Error("one unreadable file alone: not reported as unreadable")
	}
	if set := config.Merge([]config.Parsed{p, good}, config.Context{}); set.Unreadable() {
		t.Error("one of two files is readable")
	}
	if set := config.Merge(nil, config.Context{}); set.Unreadable() {
		t.Error("no file is no unreadable file")
	}
}

// What a Spec prints of itself is a configuration again: `list --json` may be pasted into a file.
func TestSpecRoundTrip(t *testing.T) {
	yes := true
	for name, s := range map[string]messages.Spec{
		"stdio": {Type: messages.Stdio, Command: "c", Args: []string{"a", ""}, Env: map[string]string{"A": "b"}, Cwd: "/",
			InheritEnv: &yes, Disabled: true, Connect: messages.Lazy, IdleTimeout: 1e9, ConnectTimeout: 2e9, CallTimeout: -1,
			StopGrace: 3e9, MaxMessage: 4096, AllowedTools: []string{}, DeniedTools: []string{"x"}, Trusted: true},
		"http": {Type: messages.HTTP, URL: "https://example.com/", Headers: map[string]string{"A": "b"},
			Auth: &messages.Auth{Type: "api_key", HeaderName: "X-Key", APIKey: "k"}, FallbackSSE: true, CallTimeout: 7e9},
		"explicit": {Type: messages.HTTP, URL: "https://example.com/"},
		"sse":      {Type: messages.SSE, URL: "https://example.com/"},
		"sdk":      {Type: messages.SDK, Name: "n"},
		"ws":       {Type: messages.WebSocket, URL: "wss://example.com/"},
		"proxy":    {Type: messages.ClaudeAIProxy, URL: "https://example.com/", ID: "i"},
	} {
		b, err := json.Marshal(map[string]any{"mcpServers": map[string]any{name: s}})
		if err != nil {
			t.Fatal(err)
		}
		set := config.Merge([]config.Parsed{parse(string(b))}, config.Context{})
		if got := set.Specs[name]; !got.Equal(s) || len(set.Problems) != 0 {
			t.Errorf("%s:\ngot  %+v\nwant %+v\nproblems %v", name, got, s, set.Problems)
		}
	}
}
