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

// OpenFamily is a family that is larger and is to be taken apart: it may shrink and must not grow.
type OpenFamily struct {
	// Folder and Word name the family, Files is how many files it has now.
	Folder, Word string
	Files        int
	// Why says what keeps the family from being a folder.
	Why string
}

// OpenFamilies are the exceptions of today.
var OpenFamilies = []OpenFamily{
	{"transports", "stdio", 8, "the kinds of transports still share one folder, and with it what a process and a request need"},
	{"transports", "process", 10, "the kinds of transports still share one folder, and with it what a process and a request need"},
	{"transports", "http", 26, "the kinds of transports still share one folder, and with it what a process and a request need"},
}

// Families returns the families of production files that are larger than MaxFamily and not open, by the files of each folder.
//
// A family is all files of one folder with the same first word, which ends at the first underscore. Variants for systems
// (process_linux.go) count like others: six of them are a package that hides its systems. A number belongs to its word, so that
// i06_single.go and i07_envelope.go are no family: the number names one thing of a numbered list, as a word does.
func Families(files map[string][]string, open []OpenFamily) []string {
	var bad []string
	for _, folder := range slices.Sorted(maps.Keys(files)) {
		families := map[string][]string{}
		for _, name := range files[folder] {
			word, _, _ := strings.Cut(strings.TrimSuffix(name, ".go"), "_")
			families[word] = append(families[word], name)
		}
		for _, word := range slices.Sorted(maps.Keys(families)) {
			most := MaxFamily
			if i := slices.IndexFunc(open, func(o OpenFamily) bool { return o.Folder == folder && o.Word == word }); i >= 0 {
				most = open[i].Files
			}
			if names := families[word]; len(names) > most {
				slices.Sort(names)
				bad = append(bad, fmt.Sprintf("%s: %d files begin with %q, more than %d (%s): make a folder of what stands apart, or name each file after its own idea",
					folder, len(names), word, most, strings.Join(names, " ")))
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
