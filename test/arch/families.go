package arch

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// MaxFamily is the largest number of files of one folder that may share their first word. Beyond it the word is a folder that
// the files do without: a reader of the listing cannot see what stands apart, and nothing keeps the files from using all of each
// other.
const MaxFamily = 5

// Families returns the families of production files that are larger than MaxFamily, by the files of each folder.
//
// A family is all files of one folder with the same first word, which ends at the first underscore. Variants for systems
// (process_linux.go) count like others: six of them are a package that hides its systems. A number belongs to its word, so that
// i06_single.go and i07_envelope.go are no family: the number names one thing of a numbered list, as a word does.
func Families(files map[string][]string) []string {
	var bad []string
	for _, folder := range slices.Sorted(maps.Keys(files)) {
		// The first word of a file is its family; a file without an underscore is a family of its own.
		families := map[string][]string{}
		for _, name := range files[folder] {
			word, _, _ := strings.Cut(strings.TrimSuffix(name, ".go"), "_")
			families[word] = append(families[word], name)
		}
		for _, word := range slices.Sorted(maps.Keys(families)) {
			if names := families[word]; len(names) > MaxFamily {
				slices.Sort(names)
				bad = append(bad, fmt.Sprintf("%s: %d files begin with %q, more than %d (%s): make a folder of what stands apart, or name each file after its own idea",
					folder, len(names), word, MaxFamily, strings.Join(names, " ")))
			}
		}
	}
	return bad
}

// ProductionFiles lists the Go files of each folder below root that are no tests. Folders are relative to root. What git and the
// caches keep is left out, and so are the folders that the go command does not build.
func ProductionFiles(root string) (map[string][]string, error) {
	files := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		files[folder] = append(files[folder], name)
		return nil
	})
	return files, err
}
