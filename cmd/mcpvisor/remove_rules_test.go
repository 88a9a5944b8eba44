package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// writerFunc is an output that calls the function for each write.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestRulesAreRemovedByOneEdit: permissions remove has removed all of its rules before it names the first one. Another program
// that spoils the file in between cannot make it fail behind a part, whose names an object of --json would lack.
func TestRulesAreRemovedByOneEdit(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	path := discover.DefaultPaths().User
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"permissions": {"deny": ["a:one", "a:two", "a:three"], "ask": ["a:one"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	var left string
	spoil := writerFunc(func(p []byte) (int, error) {
		if left == "" {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			left = string(text)
			if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
				t.Error(err)
			}
		}
		return out.Write(p)
	})
	code := run([]string{"permissions", "remove", "a:three", "a:one", "a:three"}, terminal.Streams{In: strings.NewReader(""), Out: spoil, Err: &errs})
	if code != exit.OK || errs.Len() > 0 {
		t.Errorf("exit %d, %s", code, errs.String())
	}
	if !strings.HasPrefix(out.String(), "removed a:three ") || strings.Count(out.String(), "removed a:") != 2 {
		t.Errorf("the output is %q", out.String())
	}
	if strings.Contains(left, "a:one") || !strings.Contains(left, "a:two") || strings.Contains(left, "a:three") {
		t.Errorf("the file held %s when the first rule was named", left)
	}
}
