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
	var problems []error
	var applicable []Bug
	folders := []string{"os"} // which is read to choose a bug
	for _, b := range bugs {
		if _, err := s.placeBug(b); err != nil {
			problems = append(problems, err)
			continue
		}
		applicable = append(applicable, b)
		if !slices.Contains(folders, "./"+b.Package) {
			folders = append(folders, "./"+b.Package)
		}
	}
	exports, err := s.exportFiles(folders)
	if err != nil {
		return errors.Join(append(problems, err)...)
	}
	c := checker{source: s, fset: token.NewFileSet()}
	c.importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, folder := range folders[1:] {
		packageBugs := slices.DeleteFunc(slices.Clone(applicable), func(b Bug) bool { return "./"+b.Package != folder })
		if c.checkPackage(folder, packageBugs) == nil {
			continue // all of them at once
		}
		for _, b := range packageBugs {
			if err := c.checkPackage(folder, []Bug{b}); err != nil {
				problems = append(problems, fmt.Errorf("bug %s does not compile: %w", b.Name, err))
			}
		}
	}
	return errors.Join(problems...)
}

// exportFiles are the files in which the go command keeps what packages offer, by import path.
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
	source   *Source
	fset     *token.FileSet
	importer types.Importer
}

func (c *checker) checkPackage(folder string, bugs []Bug) error {
	changed, err := c.source.changedFiles(bugs)
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
	var problems []error
	config := types.Config{Importer: c.importer, Error: func(err error) { problems = append(problems, err) }}
	_, _ = config.Check(folder, c.fset, files, nil) // what is wrong is in wrong
	return errors.Join(problems...)
}
