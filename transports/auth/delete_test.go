package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// A secret that cannot be deleted is said to be there, as it is; one that is gone already is deleted.
func TestASecretThatCannotBeDeleted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	s, err := auth.OpenFiles(auth.Options{Dir: dir, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "none"); err != nil {
		t.Errorf("one that never was: %v", err)
	}
	if err := s.Put(t.Context(), "server", []byte(canary)); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.secret"))
	if len(files) != 1 {
		t.Fatalf("the files are %v", files)
	}
	// A folder with something in it stands for a file that the system does not let go.
	if err := errors.Join(os.Remove(files[0]), os.Mkdir(files[0], 0o700), os.WriteFile(filepath.Join(files[0], "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "server"); err == nil || !strings.Contains(err.Error(), "cannot be removed") || strings.Contains(err.Error(), canary) {
		t.Errorf("one that stays: %v", err)
	}
}
