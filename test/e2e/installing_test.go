package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// smallPackage is a server of npm that is installed in half a minute at most.
const smallPackage = "@modelcontextprotocol/server-sequential-thinking@2025.12.18"

// TestAFirstNpxWithAnEmptyCache has npx install a real server, which is connected at the first attempt, however long that takes.
// Then it breaks npm's cache as an installation that was killed does: the status names the folder, and without the
// folder the server is connected again.
func TestAFirstNpxWithAnEmptyCache(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("npx is a script of the command interpreter there")
	}
	if _, err := exec.LookPath("npx"); err != nil {
		t.Skip("npm is not installed")
	}
	if err := pingRegistry(t); err != nil {
		t.Skip("npm's registry cannot be reached: ", err)
	}
	checkLeaks(t)
	home := t.TempDir()
	t.Setenv("HOME", home) // what stands in an entry's env would be hidden in what is said of its cache
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"first": {
		Command: "npx", Args: []string{"-y", smallPackage},
	}}})
	begin := time.Now()
	awaitInstalled(t, m, func(st supervisor.Status) bool { return st.Status != messages.Pending })
	st, err := m.ServerStatus("first")
	if err != nil || st.Status != messages.Connected || st.Attempts != 0 || st.Restarts != 0 {
		t.Fatalf("%v, %s: %s", err, st.Status, st.Error)
	}
	t.Logf("connected after %v", time.Since(begin).Round(time.Second))

	folders, err := filepath.Glob(filepath.Join(home, ".npm", "_npx", "*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("%v, %v", folders, err)
	}
	if err := os.Remove(filepath.Join(folders[0], "package.json")); err != nil {
		t.Fatal(err)
	}
	if err := m.Reconnect(t.Context(), "first"); err == nil {
		t.Fatal("npm repairs its cache by now")
	}
	awaitInstalled(t, m, func(st supervisor.Status) bool { return st.Status == messages.Failed })
	if st, _ := m.ServerStatus("first"); !strings.Contains(st.Error, "until its folder is deleted; delete \""+folders[0]+"\"") {
		t.Errorf("%s", st.Error)
	}
	if err := os.RemoveAll(folders[0]); err != nil {
		t.Fatal(err)
	}
	if err := m.Reconnect(t.Context(), "first"); err != nil {
		t.Errorf("without the folder: %v", err)
	}
}

// awaitInstalled waits for the server for as long as a first installation may take.
func awaitInstalled(t *testing.T, m *supervisor.Manager, ok func(supervisor.Status) bool) {
	t.Helper()
	for end := time.Now().Add(8 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if st, err := m.ServerStatus("first"); err == nil && ok(st) {
			return
		}
	}
	t.Fatal("nothing happens")
}

func pingRegistry(t *testing.T) error {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://registry.npmjs.org/-/ping", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}
