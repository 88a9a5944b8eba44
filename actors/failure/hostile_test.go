package failure

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"

	"github.com/mcpvisor/mcpvisor/actors/failure/internal/known"
)

// Everything that comes out is one short line that acts on no terminal, whatever went in.
func check(t *testing.T, stderr string) {
	t.Helper()
	for _, c := range []Cause{Explain(stderr), ExplainSilence(stderr)} {
		for _, s := range []string{c.Line, c.Reason, c.Fix, c.String()} {
			if s != messages.Line(s, 0) || utf8.RuneCountInString(s) > 1200 {
				t.Errorf("%q comes out of %q", s, stderr)
			}
		}
		if utf8.RuneCountInString(c.Line) > shownRunes || (c.Name == "") != (c.Reason == "") || (c.Name == "") != (c.Fix == "") {
			t.Errorf("%+v comes out of %q", c, stderr)
		}
	}
}

func FuzzExplain(f *testing.F) {
	for _, s := range []string{
		"", "\n\n", "}\n", "\x1b[31mError: \x1b[0mCannot find module '\x1b]0;x\a'\n", "KeyError: 'A_B'\n", "npm error\n", "Usage: x\n  -a\n",
		"npm error enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/a/_npx/0123456789abcdef/package.json'\n",
		"Error: listen EADDRINUSE: address already in use \u202e:::3000\n", "thread 'main' panicked at x\n", "panic: \xff\xfe\n", "Error: {\n  message: 'x'\n",
	} {
		f.Add(s)
	}
	f.Fuzz(check)
}

func TestExplainIsNotMisled(t *testing.T) {
	for _, c := range []struct{ what, stderr, name, line string }{
		{"nothing was written", "", "", ""},
		{"only braces", "{\n}\n", "", ""},
		{"colours", "\x1b[31mError:\x1b[0m no licence\n", "", "Error: no licence"},
		{"colours that were made harmless before", "\ufffd[31mError:\ufffd[0m no licence\n", "", "Error: no licence"},
		{"a progress bar", "loading 10%\rloading 100%\rready\n", "", "ready"},
		{"a passing trouble long before the end", "connect ECONNREFUSED 127.0.0.1:6379, I try again\n" + strings.Repeat("request\n", 20) +
			"fatal: the licence has ended\n", "", "fatal: the licence has ended"},
		{"an error that was survived, then another one", "Error: Cannot find module 'fsevents'\n    at x\nTypeError: x is not a function\n    at y\n",
			"", "TypeError: x is not a function"},
		{"an error that was survived, then an ordinary end", "Error: slow\n    at x\n" + strings.Repeat("request served\n", 9) + "bye\n", "", "Error: slow"},
		{"a key that the program does without", "no TAVILY_API_KEY set; running in keyless mode\n" + strings.Repeat("request served\n", 9) +
			"ValueError: bad page\n", "", "ValueError: bad page"},
		{"a folder of npx that is no folder of npx", "npm error enoent Could not read package.json: Error: ENOENT: no such file or directory, open " +
			"'/home/user; rm -rf x/_npx/0123456789abcdef/package.json'\n", "npm-no-package-json", ""},
		{"another folder", "npm error enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/a/_npx/../../etc/package.json'\n",
			"npm-no-package-json", ""},
		{"npx's cache on Windows", `npm ERR! enoent Could not read package.json: Error: ENOENT: no such file or directory, open 'C:\npm\_npx\cd4394af9034e104\package.json'` + "\n",
			"npx-cache-broken", ""},
	} {
		got := Explain(c.stderr)
		if got.Name != c.name || c.line != "" && got.Line != c.line || c.stderr == "" && got != (Cause{}) {
			t.Errorf("%s: %+v", c.what, got)
		}
		check(t, c.stderr)
	}
}

// A server that writes what every row looks for, as much of it as is kept, costs no more than milliseconds.
func TestExplainIsBounded(t *testing.T) {
	var signs strings.Builder
	for _, table := range known.Tables {
		for _, k := range table.Rows {
			signs.WriteString(k.Sign + " ")
		}
	}
	for _, stderr := range []string{
		strings.Repeat(signs.String()+"\n", 64<<10/signs.Len()), strings.Repeat("Error: A_B ", 6<<10), strings.Repeat("\n", 64<<10), strings.Repeat("a_A_", 16<<10),
		strings.Repeat("Error: [\n", 8<<10), strings.Repeat("panic: x\n", 8<<10),
	} {
		start := time.Now()
		check(t, stderr)
		t.Log(time.Since(start))
	}
}

func BenchmarkExplain(b *testing.B) {
	long := strings.Repeat("2026-11-22 12:00:00 INFO served a request of the client in 12 ms\n", 1000) +
		"Error: listen EADDRINUSE: address already in use 127.0.0.1:3005\n    at Server.listen (node:net:1:2)\n\nNode.js v20.20.2\n"
	for b.Loop() {
		Explain(long)
	}
}
