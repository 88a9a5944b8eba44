//go:build unix && !nochaos

package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestUpDemo checks that the demo needs only the program and shows what it promises: servers of each state, and a restart.
func TestUpDemo(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.env = append(p.env, "PATH=/nowhere")
	r := p.start("up", "--demo")
	shown := []string{
		`^A demo, .* Ctrl-C ends it\.\n`,
		`  clock: connected: 2 tools`, `  dice: connected: 1 tool `, `  notes: connected: 3 tools`,
		`  weather: connected: 1 tool `, `  quotes: connected: 1 tool `,
		`  missing: failed: the command .* was not found`, `  private: needs credentials \(mcpvisor login private\): .*401`,
		`  silent: failed: .*; next attempt at `,
		`  crashes: lost: .*last words: fatal: the demo's luck ran out after \d+s; next attempt at (.*\n)*` +
			`.*  crashes: connected: `,
		`  calls so far: \d\d+ results, `,
	}
	missing := func(pattern string) bool { return !regexp.MustCompile(pattern).MatchString(strings.Join(r.said, "\n")) }
	for deadline := time.Now().Add(2 * patience); slices.ContainsFunc(shown, missing); r.says("") { // any line
		if time.Now().After(deadline) {
			t.Fatalf("it does not say %q, but:\n%s", shown[slices.IndexFunc(shown, missing)], strings.Join(r.said, "\n"))
		}
	}
	r.signal(syscall.SIGINT)
	if code := r.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if end := `  9 servers: [56] connected, .*\n.*  calls: \d\d+ results, \d+ not sent, \d+ outcome unknown\n` +
		`.*  interrupted; ending 9 servers\n.*ended in \S+$`; missing(end) {
		t.Errorf("it does not say %q, but:\n%s", end, strings.Join(r.said, "\n"))
	}
	if r.stderr.Len() > 0 {
		t.Errorf("standard error: %s", r.stderr.String())
	}
	if journals, _ := filepath.Glob(p.home + "/state/mcpvisor/*"); len(journals) > 0 {
		t.Errorf("the demo left a journal: %q", journals)
	}
}
