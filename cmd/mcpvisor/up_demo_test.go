//go:build unix && !nochaos

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestUpDemo checks that the demo needs only the program, shows a restart within seconds, and ends by itself.
func TestUpDemo(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.env = append(p.env, "PATH=/nowhere")
	r := p.start("up", "--demo", "--duration", "10s")
	if code := r.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	all := strings.Join(r.said, "\n")
	for _, pattern := range []string{
		`^A demo, .* Ctrl-C ends it\.\n`,
		`  clock: connected: 2 tools`, `  dice: connected: 1 tool `, `  notes: connected: 3 tools`,
		`  weather: connected: 1 tool `, `  quotes: connected: 1 tool `,
		`  missing: failed: the command .* was not found`, `  private: needs credentials \(mcpvisor login private\): .*401`,
		`  silent: failed: .*; next attempt at `,
		`  crashes: lost: .*last words: fatal: the demo's luck ran out after \d+s; next attempt at (.*\n)*` +
			`.*  crashes: connected: `,
		`  calls so far: \d+ results, `,
		`  9 servers: [56] connected, .*\n.*  calls: \d\d+ results, \d+ not sent, \d+ outcome unknown\n` +
			`.*  10s have passed; ending 9 servers\n.*ended in \S+$`,
	} {
		if !regexp.MustCompile(pattern).MatchString(all) {
			t.Errorf("it does not say %q, but:\n%s", pattern, all)
		}
	}
	if r.stderr.Len() > 0 {
		t.Errorf("standard error: %s", r.stderr.String())
	}
	if journals, _ := filepath.Glob(p.home + "/state/mcpvisor/*"); len(journals) > 0 {
		t.Errorf("the demo left a journal: %q", journals)
	}
}
