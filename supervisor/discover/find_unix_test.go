//go:build unix

package discover_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe that was merely found is not opened, which would wait for a writer for ever. A pipe that was named is read.
func TestPipes(t *testing.T) {
	w := newTree(t)
	found, named := filepath.Join(w.repo, ".mcp.json"), filepath.Join(w.root, "pipe")
	for _, path := range []string{found, named} {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(named, []byte(`{"servers": {"a": {"command": "piped"}}}`), 0) }()
	o := w.options(w.repo)
	o.Files = []string{named}
	loaded := w.load(o)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if loaded.Specs["a"].Command != "piped" || len(loaded.Problems) != 1 ||
		loaded.Problems[0].Error() != found+": it is no regular file" {
		t.Errorf("%+v", loaded)
	}
}
