// Package arch holds the layer table of the module and checks it: which package may import which, what a pure package
// may use, and what stands at the top level of the repository. Each failure names what it breaks and the reason.
//
// The table is in table.go; whoever adds a package gives it a place there.
package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Package is what the checks need to know of one package. Paths of our own are relative to the module, as in the table;
// the module itself is ".".
type Package struct {
	// Imports are full import paths, tests left out, of all systems together.
	Imports []string
	// Deps are all that is reached.
	Deps []string
}

// Check returns the violations of the table by a graph of our packages, sorted. Tests check it on graphs of their own.
func Check(table []Layer, reaches []ReachLimit, graph map[string]Package) []string {
	var bad []string
	report := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	for _, path := range slices.Sorted(maps.Keys(graph)) {
		own := findLayer(table, path)
		if own == nil {
			report("%s is in no layer: add it to the table in test/arch/table.go", path)
			continue
		}
		for _, imported := range graph[path].Imports {
			ours, inside := strings.CutPrefix(imported, Module+"/")
			if inside && !own.Exempt {
				if other := findLayer(table, ours); other != nil && other.Height >= own.Height {
					report("%s (layer %d) imports %s (layer %d): an import goes to a strictly lower layer.\n\t"+
						"%s: %s\n\t%s: %s", path, own.Height, ours, other.Height, path, own.Why, ours, other.Why)
				}
			}
			for never, why := range own.Never {
				if isWithin(never, imported) {
					report("%s imports %s: %s", path, imported, why)
				}
			}
			if own.Pure {
				if why := impureImport(imported); why != "" {
					report("%s is pure and imports %s: %s", path, imported, why)
				}
			}
		}
		for _, r := range reaches {
			if slices.ContainsFunc(r.Only, func(p string) bool { _, ok := matchPattern(p, path); return ok }) {
				continue
			}
			if i := slices.IndexFunc(graph[path].Deps, func(d string) bool { return isWithin(r.To, d) }); i >= 0 {
				report("%s reaches %s: %s", path, graph[path].Deps[i], r.Why)
			}
		}
	}
	slices.Sort(bad)
	return bad
}

// findLayer gives the row of a package, nil if there is none.
func findLayer(table []Layer, path string) *Layer {
	var best *Layer
	longest := -1
	for i, l := range table {
		for _, p := range l.Packages {
			if n, ok := matchPattern(p, path); ok && n > longest {
				best, longest = &table[i], n
			}
		}
	}
	return best
}
