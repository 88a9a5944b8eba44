package reload

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
)

// TestAFolderThatAppearsIsReadOnceMore: between the reading of a file that is not there and the watch of the folder that has just
// appeared, the file may have come, of which no event tells. The watch says that it is new, and the files are read again.
func TestAFolderThatAppearsIsReadOnceMore(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := newWatch(zap.NewNop(), time.Hour)
	defer w.close()
	if w.system == nil {
		t.Fatal("the system has no watcher")
	}
	places := []string{filepath.Join(dir, "config", "mcpvisor", "mcp.json")}
	for i, folder := range []string{"", "config", filepath.Join("config", "mcpvisor")} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if !w.watchPaths(places) {
			t.Errorf("step %d: %q is watched from here on, and nobody is told", i, folder)
		}
		if w.watchPaths(places) {
			t.Errorf("step %d: the files would be read for ever", i)
		}
		if !w.watched[filepath.Join(dir, folder)] {
			t.Errorf("step %d: watched are %v", i, w.watched)
		}
	}
}
