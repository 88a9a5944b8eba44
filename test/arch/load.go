package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Systems are those that must build. What a package imports on any of them counts.
var Systems = []string{"linux", "darwin", "windows"}

// Load asks the go command for our packages, with what they import on all systems.
func Load(root string) (map[string]Package, error) {
	// A build constraint hides files of other systems from one run, so that the graph is the union over the systems.
	graph := map[string]Package{}
	for _, system := range Systems {
		cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w\n%s", system, err, stderr.String())
		}
		// The go command prints one JSON object after the other, without a list around them.
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				ImportPath    string
				Imports, Deps []string
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			// The module's own path is cut off, as in the table.
			path := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, Module), "/")
			if path == "" {
				path = "."
			}
			known := graph[path]
			graph[path] = Package{sortedUnion(known.Imports, p.Imports), sortedUnion(known.Deps, p.Deps)}
		}
	}
	return graph, nil
}

// sortedUnion returns the elements of both lists, each once.
func sortedUnion(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Root is the folder of the module's go.mod.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// TopLevel lists what stands at the top of the repository and may not, dot-files and what git ignores left out.
func TopLevel(root string) ([]string, error) {
	may := []string{
		"go.mod", "go.sum", "actors", "messages", "supervisor", "transports", "cmd", "test", "Makefile", "README.md",
	}
	// What git ignores may lie about in a working copy: caches, and binaries of a build.
	ignored, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Fields(string(ignored)) {
		may = append(may, strings.Trim(line, "/"))
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var bad []string
	for _, e := range entries {
		ok := strings.HasPrefix(e.Name(), ".") || slices.ContainsFunc(may, func(pattern string) bool {
			match, err := filepath.Match(pattern, e.Name())
			return err == nil && match
		})
		if !ok {
			bad = append(bad, e.Name())
		}
	}
	return bad, nil
}
