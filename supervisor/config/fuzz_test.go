package config_test

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
)

// Any bytes give an answer: places inside of the file, an entry for each error of a server, and one order of problems.
func FuzzParse(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(b).Files {
			f.Add(file.Data)
		}
	}
	for _, s := range []string{
		"", "{", "\ufeff{}", "{} //", `{"servers":[{"name":"a"}]}`, "\xff\xfe", `{"mcpServers":{"\ud800":{}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := config.Parse(config.File{Path: "f", Scope: messages.ScopeProject, Data: data})
		ctx := config.Context{Lookup: func(s string) (string, bool) { return s, len(s)%2 == 0 }}
		set := config.Merge([]config.Parsed{p}, ctx)
		p = config.Parse(config.File{Path: "f", Scope: messages.ScopeProject, Data: data})
		second := config.Merge([]config.Parsed{p}, ctx)
		lines := bytes.Split(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\n"))
		failing := map[string]bool{}
		for i, problem := range set.Problems {
			if problem != second.Problems[i] {
				t.Fatalf("problem %d: %v, then %v", i, problem, second.Problems[i])
			}
			if problem.Line < 1 || problem.Line > len(lines) || problem.Col < 1 ||
				problem.Col > utf8.RuneCount(lines[problem.Line-1])+1 {
				t.Fatalf("no such place: %v", problem)
			}
			if s := problem.Error(); messages.Printable(s) != s && !strings.Contains(s, "\ufffd") || strings.Contains(s, "\n") {
				t.Fatalf("not fit for a terminal: %q", s)
			}
			failing[problem.Server] = failing[problem.Server] || !problem.Warning
		}
		for name, spec := range set.Specs {
			if (spec.Invalid != "") != failing[name] && !spec.Disabled {
				t.Fatalf("server %q: invalid %q, failing %v", name, spec.Invalid, failing[name])
			}
			if spec.Trusted || spec.Source != "f" || spec.Scope != messages.ScopeProject {
				t.Fatalf("%+v", spec)
			}
			if spec.Invalid == "" && spec.Type == messages.Stdio == (spec.Command == "") {
				t.Fatalf("a valid server that cannot be: %+v", spec)
			}
		}
	})
}

// Any flag gives a server or an error, never both and never neither.
func FuzzParseFlag(f *testing.F) {
	for _, s := range []string{
		"a=b", "a=b 'c d' \\ e", "a={}", `a={"command":"x"}`, "a=https://h", "=", "a=\"", `a=C:\x\"`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, e, err := config.ParseFlag(s)
		if err == nil && (name == "" || !strings.HasPrefix(s, name+"=") || e.Spec.Kind() == "" || e.Spec.Invalid != "") {
			t.Fatalf("%q: %q %+v", s, name, e)
		}
	})
}

// Quoting every word and splitting gives the words back.
func FuzzFlagWords(f *testing.F) {
	f.Add("a", "b c")
	f.Add(`it's`, `C:\x\`)
	f.Add("", "\"")
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = strings.ToValidUTF8(a, "?"), strings.ToValidUTF8(b, "?") // a command line is text
		quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }
		_, e, err := config.ParseFlag("n=cmd " + quote(a) + "\t" + quote(b))
		if err != nil || len(e.Spec.Args) != 2 || e.Spec.Args[0] != a || e.Spec.Args[1] != b {
			t.Fatalf("%q %q: %q, %v", a, b, e.Spec.Args, err)
		}
	})
}

// Expansion ends, never shows what a variable holds in a fault, and leaves text without "${" alone.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{
		"", "${A}", "${A:-b}", "${B:-${A}}", "${", "${}", "$${A}", "${A:-${B:-${C:-d}}}", "${env:A}", "${x:y}",
	} {
		f.Add(s)
	}
	f.Add(strings.Repeat("${X:-", 1000) + strings.Repeat("}", 1000))
	const canary = "kanarien\x01vogel"
	f.Fuzz(func(t *testing.T, s string) {
		flag, err := config.Flags([]string{"n=x"})
		if err != nil {
			t.Fatal(err)
		}
		e := flag.Servers["n"]
		e.Spec.Args = []string{s}
		flag.Servers["n"] = e
		lookup := func(n string) (string, bool) { return canary, n == "A" }
		set := config.Merge([]config.Parsed{flag}, config.Context{Lookup: lookup})
		spec := set.Specs["n"]
		for _, p := range set.Problems {
			if strings.Contains(p.Text+p.Fix, "vogel") && !strings.Contains(s, "vogel") {
				t.Fatalf("%q: %v", s, p)
			}
		}
		if !strings.Contains(s, "${") && !strings.Contains(s, "\x00") && (spec.Invalid != "" || spec.Args[0] != s) {
			t.Fatalf("%q became %q, %s", s, spec.Args[0], spec.Invalid)
		}
		if spec.Invalid != "" && spec.Args[0] != s && !strings.Contains(spec.Invalid, "NUL") {
			t.Fatalf("a fault changed %q to %q", s, spec.Args[0])
		}
	})
}
