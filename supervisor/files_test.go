package supervisor_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

func TestFromFilesDiscoversAsTheCommandDoes(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	project := filepath.Join(dir, "project")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(project, ".mcp.json"), `{"mcpServers":{"found":{"command":"never-started"},"bad":{}}}`)
	write(filepath.Join(dir, "config", "mcpvisor", "mcp.json"), `{"mcpServers":{"mine":{"command":"no-such-program-anywhere"}}}`)

	cfg, problems, err := supervisor.FromFiles(project)
	if err != nil || len(problems) == 0 {
		t.Fatal(problems, err)
	}
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, m)
	settled(t, m)
	want := map[string]struct {
		scope messages.Scope
		class messages.Class
	}{
		"found": {messages.ScopeProject, messages.ClassDenied}, // the person has not approved it
		"bad":   {messages.ScopeProject, messages.ClassConfig},
		"mine":  {messages.ScopeUser, messages.ClassMissing},
	}
	for name, w := range want {
		st, err := m.ServerStatus(name)
		if err != nil || st.Status != messages.Failed || st.Scope != w.scope || st.Class != w.class || st.Retry != messages.RetryNever {
			t.Errorf("%s: %+v, %v", name, st, err)
		}
	}

	write(filepath.Join(project, ".mcp.json"), `not JSON`)
	if err := os.Remove(filepath.Join(dir, "config", "mcpvisor", "mcp.json")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := supervisor.FromFiles(project); !errors.Is(err, supervisor.ErrInvalid) {
		t.Errorf("no file can be read: %v", err)
	}
}
