package planted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"

	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// Compiles returns an error for each bug that cannot be planted, or with which its package does not compile. It builds the
// imports once and type-checks each bug's package itself, which is hundreds of times faster than a build per bug.
func (s *Source) Compiles(planned []bugs.Bug) error {
	var problems []error
	var applicable []bugs.Bug
	folders := []string{"os"} // every package with a bug reads the environment
	for _, b := range planned {
		if _, err := s.placeBug(b); err != nil {
			problems = append(problems, err)
			continue
		}
		applicable = append(applicable, b)
		if !slices.Contains(folders, "./"+b.Package) {
			folders = append(folders, "./"+b.Package)
		}
	}
	// The types of the imports come from the go command's build cache, so that only packages with bugs are checked from source.
	exports, err := s.exportFiles(folders)
	if err != nil {
		return errors.Join(append(problems, err)...)
	}
	c := checker{source: s, fset: token.NewFileSet()}
	c.importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, folder := range folders[1:] {
		packageBugs := slices.DeleteFunc(slices.Clone(applicable), func(b bugs.Bug) bool { return "./"+b.Package != folder })
		// If all bugs compile together, each compiles alone.
		if c.checkPackage(folder, packageBugs) == nil {
			continue // all of them at once
		}
		// The first check does not tell which bug is wrong, so each is checked alone.
		for _, b := range packageBugs {
			if err := c.checkPackage(folder, []bugs.Bug{b}); err != nil {
				problems = append(problems, fmt.Errorf("bug %s does not compile: %w", b.Name, err))
			}
		}
	}
	return errors.Join(problems...)
}

// exportFiles returns the files of the go command's cache that hold the types of packages and of their imports, by import path.
func (s *Source) exportFiles(folders []string) (map[string]string, error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, folders...)...)
	list.Dir = s.root
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.Bytes())
	}
	exports := map[string]string{}
	// The go command prints one JSON object after the other, without a list around them.
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return exports, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
	}
}

// A checker type-checks packages with bugs. Its importer caches the imports of all checks.
type checker struct {
	// source is the product as it was read; no check changes it.
	source   *Source
	fset     *token.FileSet
	importer types.Importer
}

// checkPackage type-checks one package with these bugs; the changed files replace those with the same path.
func (c *checker) checkPackage(folder string, planned []bugs.Bug) error {
	changed, err := c.source.changedFiles(planned)
	if err != nil {
		return err
	}
	texts := maps.Clone(c.source.packages[planned[0].Package].files)
	maps.Copy(texts, changed)
	var files []*ast.File
	for path, text := range texts {
		file, err := parser.ParseFile(c.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	var problems []error
	config := types.Config{Importer: c.importer, Error: func(err error) { problems = append(problems, err) }}
	_, _ = config.Check(folder, c.fset, files, nil) // the Error function collects all errors; Check returns the first
	return errors.Join(problems...)
}
