package foreign_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
)

// Any bytes under any name give an answer: places inside of the file, sentences fit for a terminal, the same twice, and a
// server that is valid can be started.
func fuzz(f *testing.F, ctx foreign.Context, path string, seeds ...string) {
	names, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(b).Files {
			if filepath.Ext(file.Name) == filepath.Ext(path) || filepath.Ext(path) == "" {
				f.Add(file.Data)
			}
		}
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := config.File{Path: path, Scope: messages.ScopeUser, Data: data}
		read := func() config.Set {
			return config.Merge([]config.Parsed{foreign.Parse(file, ctx)},
				config.Context{Lookup: func(s string) (string, bool) { return s, len(s)%2 == 0 }})
		}
		set, second := read(), read()
		lines := bytes.Split(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\n"))
		for i, p := range set.Problems {
			if p != second.Problems[i] {
				t.Fatalf("problem %d: %v, then %v", i, p, second.Problems[i])
			}
			if p.Line < 1 || p.Line > len(lines) || p.Col < 1 || p.Col > utf8.RuneCount(lines[p.Line-1])+1 {
				t.Fatalf("no such place: %v", p)
			}
			if s := p.Error(); messages.Printable(s) != s && !strings.Contains(s, "\ufffd") || strings.Contains(s, "\n") {
				t.Fatalf("not fit for a terminal: %q", s)
			}
		}
		for _, spec := range set.Specs {
			if spec.Invalid == "" && spec.Type == messages.Stdio == (spec.Command == "") {
				t.Fatalf("a valid server that cannot be: %+v", spec)
			}
		}
	})
}

func FuzzAny(f *testing.F) {
	fuzz(f, foreign.Context{Dir: "/p"}, "file", "", "{", "[", "a: b", "\xff\xfe")
}

func FuzzTOML(f *testing.F) {
	fuzz(f, foreign.Context{}, "config.toml", "[mcp_servers.a]\nx=[[[[1]]]]", "mcp_servers={a={b={}}}", "a.b.c=1", "[[a]]\n[a.b]",
		"[mcp_servers.a]\nenv_vars=[1,{},{name='A'}]", "mcp_servers=1979-05-27")
}

func FuzzYAML(f *testing.F) {
	fuzz(f, foreign.Context{}, "config.yaml", "extensions: &a {x: *a}", "extensions:\n  ? a\n  : b", "- - - a", "a: !!binary x",
		"extensions:\n  <<: [*a]", "--- 1\n--- 2", "extensions: {a: {cmd: .inf, args: [.nan, 0x1, 1_0]}}")
}

func FuzzVSCode(f *testing.F) {
	fuzz(f, foreign.Context{Format: foreign.VSCode}, "mcp.json",
		`{"inputs":[{"id":"a","default":"${b"}],"servers":{"s":{"command":"${input:a}"}}}`)
}

func FuzzOpenCode(f *testing.F) {
	fuzz(f, foreign.Context{Format: foreign.OpenCode}, "opencode.json", `{"mcp":{"s":{"type":"local","command":["{env:}","{file:x}"]}}}`)
}

func FuzzGemini(f *testing.F) {
	fuzz(f, foreign.Context{Format: foreign.Gemini}, "settings.json", `{"mcpServers":{"s":{"command":"$","args":["$$A","${A:-$B}"]}}}`)
}

func FuzzZed(f *testing.F) {
	fuzz(f, foreign.Context{Format: foreign.Zed}, "settings.json", `{"context_servers":{"s":{"command":{"path":{}}}}}`)
}

func FuzzClaudeCode(f *testing.F) {
	fuzz(f, foreign.Context{Format: foreign.ClaudeCode, Dir: "/p"}, ".claude.json", `{"projects":{"/p":{"mcpServers":[]}}}`)
}

// The programs that share mcpServers are one reader.
func FuzzShared(f *testing.F) {
	fuzz(f, foreign.Context{Format: foreign.Roo}, "mcp.json", `{"mcpServers":{"s":{"timeout":1e999,"tools":["*"],"auth":{"CLIENT_ID":1}}}}`)
}
