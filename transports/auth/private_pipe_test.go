//go:build unix

package auth_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// TestPipeInPlaceOfAFile: nothing waits for what stands where a stored secret was.
func TestPipeInPlaceOfAFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	store, err := auth.OpenFiles(auth.Options{Dir: dir, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), "key", []byte("secret")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		for name, put := range map[string]func() error{
			"a pipe": func() error { return syscall.Mkfifo(path, 0o600) },
			"a link": func() error { return os.Symlink("/dev/zero", path) },
		} {
			kept, err := os.ReadFile(path)
			if err != nil {
				continue // the lock, or a directory
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := put(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				second, err := auth.OpenFiles(auth.Options{Dir: dir, Plain: true})
				if err == nil {
					_, err = second.Get(context.Background(), "key")
				}
				ended <- err
			}()
			if err := <-ended; err == nil && filepath.Ext(path) != ".lock" {
				t.Errorf("%s in place of %s: no error", name, filepath.Base(path))
			}
			_ = os.Remove(path)
			if err := os.WriteFile(path, kept, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
