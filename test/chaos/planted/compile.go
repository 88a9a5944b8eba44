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
)

// Compiles returns an error for each bug that cannot be planted, or with which its package does not compile. The packages that
// they need are built once, and each bug's own is checked as the compiler checks it, which is hundreds of times faster.
func (s *Source) Compiles(bugs []Bug) error {
	var wrong []error
	var there []Bug
	folders := []string{"os"} // which is read to choose a bug
	for _, b := range bugs {
		if _, err := s.place(b); err != nil {
			wrong = append(wrong, err)
			continue
		}
		there = append(there, b)
		if !slices.Contains(folders, "./"+b.Package) {
			folders = append(folders, "./"+b.Package)
		}
	}
	exports, err := s.exports(folders)
	if err != nil {
		return errors.Join(append(wrong, err)...)
	}
	c := checker{source: s, fset: token.NewFileSet()}
	c.known = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, folder := range folders[1:] {
		of := slices.DeleteFunc(slices.Clone(there), func(b Bug) bool { return "./"+b.Package != folder })
		if c.check(folder, of) == nil {
			continue // all of them at once
		}
		for _, b := range of {
			if err := c.check(folder, []Bug{b}); err != nil {
				wrong = append(wrong, fmt.Errorf("bug %s does not compile: %w", b.Name, err))
			}
		}
	}
	return errors.Join(wrong...)
}

// exports are the files in which the go command keeps what packages offer, by import path.
func (s *Source) exports(folders []string) (map[string]string, error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, folders...)...)
	list.Dir = s.root
	var complaint bytes.Buffer
	list.Stderr = &complaint
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, complaint.Bytes())
	}
	exports := map[string]string{}
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

// checker checks packages with bugs.
type checker struct {
	source *Source
	fset   *token.FileSet
	known  types.Importer
}

func (c *checker) check(folder string, bugs []Bug) error {
	changed, err := c.source.changed(bugs)
	if err != nil {
		return err
	}
	texts := maps.Clone(c.source.packages[bugs[0].Package].files)
	maps.Copy(texts, changed)
	var files []*ast.File
	for path, text := range texts {
		file, err := parser.ParseFile(c.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	var wrong []error
	config := types.Config{Importer: c.known, Error: func(err error) { wrong = append(wrong, err) }}
	_, _ = config.Check(folder, c.fset, files, nil) // what is wrong is in wrong
	return errors.Join(wrong...)
}
