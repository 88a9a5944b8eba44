package foreign_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
)

var update = flag.Bool("update", false, "write what the code answers into testdata")

// results are the parts of a story that the code answers.
var results = []string{"program", "specs", "problems"}

// Each file of testdata has prose, then one file of a program under its path, optionally "env" (NAME=value lines) and
// "dir" (the directory in which the person works), then the results: the program, its servers, its problems.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			given, want := story(a)
			got := given.answers(t)
			if *update {
				out := &txtar.Archive{Comment: a.Comment, Files: given.parts}
				for _, k := range results {
					if len(got[k]) > 0 {
						out.Files = append(out.Files, txtar.File{Name: k, Data: got[k]})
					}
				}
				if err := os.WriteFile(name, txtar.Format(out), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for _, k := range results {
				if !bytes.Equal(bytes.TrimSpace(got[k]), bytes.TrimSpace(want[k])) {
					t.Errorf("%s:\n%s\nwant:\n%s", k, got[k], want[k])
				}
			}
		})
	}
}

type given struct {
	file  config.File
	dir   string
	env   map[string]string
	parts []txtar.File
}

func story(a *txtar.Archive) (in given, want map[string][]byte) {
	in.env, want = map[string]string{}, map[string][]byte{}
	for _, f := range a.Files {
		switch f.Name {
		case "env":
			for line := range strings.Lines(string(f.Data)) {
				k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
				in.env[k] = v
			}
		case "dir":
			in.dir = strings.TrimSpace(string(f.Data))
		case "program", "specs", "problems":
			want[f.Name] = f.Data
			continue
		default:
			in.file = config.File{Path: f.Name, Scope: messages.ScopeUser, Data: f.Data}
		}
		in.parts = append(in.parts, f)
	}
	return in, want
}

func (in given) answers(t *testing.T) map[string][]byte {
	parsed := foreign.Parse(in.file, foreign.Context{Dir: in.dir})
	set := config.Merge([]config.Parsed{parsed}, config.Context{ProjectDir: in.dir, HomeDir: "/home/p",
		Lookup: func(name string) (string, bool) { v, ok := in.env[name]; return v, ok }})
	type shown struct {
		messages.Spec
		Invalid string `json:"invalid,omitempty"`
	}
	all := map[string]shown{}
	for name, s := range set.Specs {
		all[name] = shown{s, s.Invalid}
	}
	var specs, problems bytes.Buffer
	enc := json.NewEncoder(&specs)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(all); err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Problems {
		fmt.Fprintln(&problems, p.Error())
	}
	program := parsed.Program
	if program == "" {
		program = "our own"
	}
	return map[string][]byte{"program": []byte(program + "\n"), "specs": specs.Bytes(), "problems": problems.Bytes()}
}
