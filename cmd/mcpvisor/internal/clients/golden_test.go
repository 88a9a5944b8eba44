package clients

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/test/formtest"
)

var update = flag.Bool("update", false, "write what the code answers into testdata")

// TestTheEntryOfEveryProgram puts the entry into a file of each program as people write it. Each file of testdata has prose, the
// name of the file before, and what becomes of it. The result can be undone byte for byte, the program's reader finds the entry,
// and taking it out leaves the servers that were there.
func TestTheEntryOfEveryProgram(t *testing.T) {
	var tried []string
	names, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		stem := strings.TrimSuffix(filepath.Base(name), ".txtar")
		program, _, _ := strings.Cut(stem, "_")
		format := foreign.Format(program)
		tried = append(tried, program)
		t.Run(stem, func(t *testing.T) {
			before, path := a.Files[0].Data, a.Files[0].Name
			file := config.File{Path: path, Scope: messages.ScopeUser, Data: before}
			entry := foreign.StdioEntryFor(format, file, entryName, "/opt/mcpvisor/mcpvisor", []string{"connect"}, nil)
			after, err := putEntry(format, before, entry)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "after", Data: after})
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(a.Files) != 2 || !bytes.Equal(a.Files[1].Data, after) {
				t.Errorf("after:\n%s", after)
			}
			if text, ok := spliceOf(before, after).undo(after); !ok || !bytes.Equal(text, before) {
				t.Errorf("undone:\n%s", text)
			}
			if err := checkReadBack(foreign.Location{Format: format, Path: path}, after, "/opt/mcpvisor/mcpvisor", []string{"connect"}, nil); err != nil {
				t.Error(err)
			}
			// With variables, the program reads each of them, and the file is given back the same way.
			env := map[string]string{"XDG_STATE_HOME": `/a "b"`, "XDG_CONFIG_HOME": "/c: #d"}
			with, err := putEntry(format, before, foreign.StdioEntryFor(format, file, entryName, "/opt/mcpvisor/mcpvisor", []string{"connect"}, env))
			if err != nil {
				t.Fatal(err)
			}
			if err := checkReadBack(foreign.Location{Format: format, Path: path}, with, "/opt/mcpvisor/mcpvisor", []string{"connect"}, env); err != nil {
				t.Errorf("%v\n%s", err, with)
			}
			if text, ok := spliceOf(before, with).undo(with); !ok || !bytes.Equal(text, before) {
				t.Errorf("undone:\n%s", text)
			}
			if without, err := removeEntry(format, with, entry.Path); err != nil || bytes.Contains(without, []byte("XDG_")) {
				t.Errorf("removed: %v\n%s", err, without)
			}
			removed, err := removeEntry(format, after, entry.Path)
			if err != nil {
				t.Fatal(err)
			}
			servers := func(text []byte) (names []string) {
				p := foreign.Parse(config.File{Path: path, Scope: messages.ScopeUser, Data: text}, foreign.Context{Format: format})
				for name := range p.Servers {
					names = append(names, name)
				}
				slices.Sort(names)
				return names
			}
			if !slices.Equal(servers(before), servers(removed)) || len(servers(after)) != len(servers(before))+1 {
				t.Errorf("%v, then %v, then %v", servers(before), servers(after), servers(removed))
			}
		})
	}
	for _, f := range foreign.Formats {
		if !slices.Contains(tried, string(f)) {
			t.Errorf("%s has no golden file", f)
		}
	}
}

// TestPlacesThatTheTerminalHas: what the agent's own environment would say anyhow is left out.
func TestPlacesThatTheTerminalHas(t *testing.T) {
	for _, c := range []struct {
		system string
		has    map[string]string
		want   map[string]string
	}{
		{"linux", nil, map[string]string{}},
		{"linux", map[string]string{"XDG_CONFIG_HOME": "/home/ann/.config/", "XDG_CACHE_HOME": "", "XDG_STATE_HOME": "state", "PATH": "/bin"}, map[string]string{}},
		{"linux", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_CACHE_HOME": "/d", "XDG_STATE_HOME": "/e", "XDG_RUNTIME_DIR": "/f", "MCPVISOR_STORE": "file"},
			map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_CACHE_HOME": "/d", "XDG_STATE_HOME": "/e", "XDG_RUNTIME_DIR": "/f", "MCPVISOR_STORE": "file"}},
		{"darwin", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/e"}, map[string]string{"XDG_STATE_HOME": "/e"}},
	} {
		lookup := func(name string) (string, bool) { v, ok := c.has[name]; return v, ok }
		if env := placeVariables(foreign.Machine{OS: c.system, Home: "/home/ann", Lookup: lookup}); !maps.Equal(env, c.want) {
			t.Errorf("%s, %v: %v", c.system, c.has, env)
		}
	}
}

// TestAProgramOfAnotherNameIsSaid: its entry would not be known later, and the person can do something about it.
func TestAProgramOfAnotherNameIsSaid(t *testing.T) {
	text := []byte(`{"mcpServers": {"mcpvisor": {"command": "/x/visor-2", "args": ["connect"]}}}`)
	err := checkReadBack(foreign.Location{Format: foreign.Cursor, Path: ".cursor/mcp.json"}, text, "/x/visor-2", []string{"connect"}, nil)
	if err == nil || !strings.Contains(err.Error(), "this program is called visor-2; rename it to mcpvisor") {
		t.Errorf("%v", err)
	}
}

// TestTheGoldenStoreIsWhole checks that the golden file has every member of the form that is written.
func TestTheGoldenStoreIsWhole(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "clients_v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	formtest.Check(t, storedChanges{}, golden)
	stored, err := parseStore(golden)
	if err != nil {
		t.Fatal(err)
	}
	after := []byte("{\"mcpServers\": {\"mcpvisor\": {}}}\n")
	if before, ok := stored.Files["/home/ann/.cursor/mcp.json"].Splice.undo(after); !ok || string(before) != "{\"mcpServers\": {}}\n" {
		t.Errorf("%q, %v", before, ok)
	}
	if _, err := parseStore(bytes.Replace(golden, []byte(`"version": 1`), []byte(`"version": 2`), 1)); err == nil ||
		!strings.Contains(err.Error(), "newer mcpvisor") {
		t.Errorf("a newer store: %v", err)
	}
	if _, err := parseStore(golden[:len(golden)/2]); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("half a store: %v", err)
	}
}

// FuzzSplice checks that a difference gives back the text before, and no other.
func FuzzSplice(f *testing.F) {
	f.Add([]byte("{}"), []byte("{\"a\": 1}"))
	f.Add([]byte("aaa"), []byte("aa"))
	f.Add([]byte(""), []byte("a"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		s := spliceOf(before, after)
		if got, ok := s.undo(after); !ok || !bytes.Equal(got, before) {
			t.Fatalf("%q, %v", got, ok)
		}
		if got, ok := s.undo(append(bytes.Clone(after), 'x')); ok {
			t.Fatalf("another text: %q", got)
		}
		s.Offset = len(after) + 1
		if _, ok := s.undo(after); ok {
			t.Fatal("a damaged splice")
		}
	})
}
