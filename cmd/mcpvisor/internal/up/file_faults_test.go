package up

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// TestFaultsOfFilesAreToldOnce changes a file while another process follows it: its faults are told once it has been the same at two
// looks, once, and again when they are others.
func TestFaultsOfFilesAreToldOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".mcp.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"mcpServers": {}}`)
	reading, err := discover.Read(discover.Options{Dir: dir, Paths: discover.Paths{Home: dir}})
	if err != nil {
		t.Fatal(err)
	}
	f := newFileFaults(&reading)
	countReports := func() (n int) {
		for range looksPerReading * 3 {
			if len(f.newFaults()) > 0 {
				n++
			}
		}
		return n
	}
	if n := countReports(); n != 0 {
		t.Errorf("a good file: told %d times", n)
	}
	for _, text := range []string{`{"mcpServers": {`, `[7]`} {
		write(text)
		if n := countReports(); n != 1 {
			t.Errorf("%s: told %d times", text, n)
		}
		if n := countReports(); n != 0 {
			t.Errorf("%s, which nobody changed since: told %d times", text, n)
		}
	}
	write(`{"mcpServers": {}}`)
	if n := countReports(); n != 0 {
		t.Errorf("mended: told %d times", n)
	}
}
