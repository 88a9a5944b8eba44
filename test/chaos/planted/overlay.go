package planted

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Overlay writes what `go build -overlay` needs to plant the bug into the module at root: the changed file and the overlay
// that names it, both in dir. It returns the overlay's path. It is an error if Old does not stand in the file exactly once:
// the source has moved on, and the bug must follow it.
func (b Bug) Overlay(root, dir string) (string, error) {
	path := filepath.Join(root, filepath.FromSlash(b.File))
	source, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("bug %s: %w", b.Name, err)
	}
	if n := strings.Count(string(source), b.Old); n != 1 || b.Old == "" {
		return "", fmt.Errorf("bug %s: what it replaces stands in %s %d times, not once; change the bug as the file was changed",
			b.Name, b.File, n)
	}
	changed := filepath.Join(dir, b.Name+".go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), b.Old, b.New, 1)), 0o600); err != nil {
		return "", fmt.Errorf("bug %s: %w", b.Name, err)
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", fmt.Errorf("bug %s: %w", b.Name, err)
	}
	overlay := filepath.Join(dir, b.Name+".json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", fmt.Errorf("bug %s: %w", b.Name, err)
	}
	return overlay, nil
}
