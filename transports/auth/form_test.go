package auth_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

var update = flag.Bool("update", false, "write the golden files")

// formOptions are the options of the golden stores, one for each kind of key.
func formOptions(dir, kind string) auth.Options {
	o := auth.Options{Dir: filepath.Join(dir, kind)}
	switch kind {
	case "passphrase":
		o.Passphrase = passphrase("correct horse")
	case "file":
		o.KeyFile = filepath.Join(dir, "secrets.key")
	case "plain":
		o.Plain = true
	}
	return o
}

// copyPrivate copies a folder of testdata, with the modes that a store must have.
func copyPrivate(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o600)
		if d.IsDir() {
			mode = 0o700
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestTheFormOfSecrets reads stores that a program of format 1 wrote. If this test fails, sign-ins of everybody are lost: raise
// storeFormat, and go on reading these.
func TestTheFormOfSecrets(t *testing.T) {
	golden, err := filepath.Abs(filepath.Join("testdata", "store1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"passphrase", "file", "plain"} {
		t.Run(kind, func(t *testing.T) {
			if *update {
				s, err := auth.OpenFiles(formOptions(golden, kind))
				if err == nil {
					err = s.Put(t.Context(), "oauth demo https://mcp.example.com/mcp", []byte("golden "+kind))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			s, err := auth.OpenFiles(formOptions(copyPrivate(t, golden), kind))
			if err != nil {
				t.Fatal(err)
			}
			secret, err := s.Get(t.Context(), "oauth demo https://mcp.example.com/mcp")
			if err != nil || string(secret) != "golden "+kind {
				t.Errorf("%q, %v", secret, err)
			}
		})
	}
}

// TestNewerSecretsStay: a secret that a newer program stored is not replaced, and neither is anything in a store that is newer as a
// whole. A damaged one may be.
func TestNewerSecretsStay(t *testing.T) {
	for _, c := range []struct {
		name, file, content string
		newer               bool
	}{
		{"a sealed file", "*.secret", "mcpvisor secret 2\nanother form", true},
		{"a file in the clear", "*.secret", "mcpvisor plain 7\nanother form", true},
		{"the header", "store.json", `{"format":2,"keys":[]}`, true},
		{"a damaged file", "*.secret", "mcpvisor secret x\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := formOptions(copyPrivate(t, filepath.Join("testdata", "store1")), "file")
			found, err := filepath.Glob(filepath.Join(o.Dir, c.file))
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			write(t, found[0], c.content)
			s, err := auth.OpenFiles(o)
			if err == nil {
				err = s.Put(t.Context(), "oauth demo https://mcp.example.com/mcp", []byte("mine"))
			}
			var newer *files.NewerError
			if errors.As(err, &newer) != c.newer || err != nil && !strings.HasSuffix(err.Error(), "; upgrade mcpvisor") {
				t.Error(err)
			}
			if now, err := os.ReadFile(found[0]); err != nil || (string(now) == c.content) != c.newer {
				t.Errorf("%q, %v", now, err)
			}
		})
	}
}
