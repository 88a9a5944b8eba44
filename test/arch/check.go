// Package arch holds the layer table of the module and checks it: which package may import which, what a pure package
// may use, and what stands at the top level of the repository. Each failure names what it breaks and the reason.
//
// The table is in table.go; a new package needs a place there.
//
//	go test ./test/arch
//
//	table.go     the layers, a row for each package or family of packages, and what must never be reached, with reasons
//	check.go     imports against the table, and the table against the packages that there are
//	load.go      what the go command says of all packages, for every system; and the root of the repository
//	pure.go      what a pure package may not use: the clock, global randomness, goroutines, input and output
//	lean.go      what the command links that is built without the test bench
//	families.go  files of one folder that share a first word
//	routes.go    the files to read to follow a call, or a change of tools, from end to end
//	surface.go   what the library promises, and how many names that are
//	words.go     the dictionary of names
//
// # How it fits
//
// The checks are functions of a graph, of sources and of names, and know no test; the tests give them this repository, and graphs
// with planted faults, so that a check that finds nothing would fail as well. No other package imports this one.
//
// Not promised: that a design is good. The table says which way imports go, and a person decided that.
package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Package holds the facts that the checks need about one package. Paths of our own are relative to the module, as in the table;
// the module itself is ".".
type Package struct {
	// Imports are full import paths, tests left out, of all systems together.
	Imports []string
	// Deps are all that is reached.
	Deps []string
}

// Check returns the violations of the table by a graph of our packages, sorted. Tests check it on graphs of their own.
func Check(table []Row, reaches []ReachLimit, graph map[string]Package) []string {
	var bad []string
	report := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	for _, path := range slices.Sorted(maps.Keys(graph)) {
		own := findRow(table, path)
		if own == nil {
			report("%s is in no layer: add it to the table in test/arch/table.go", path)
			continue
		}
		for _, imported := range graph[path].Imports {
			ours, inside := strings.CutPrefix(imported, Module+"/")
			if inside && !own.Exempt {
				if other := findRow(table, ours); other != nil && other.Height >= own.Height {
					report("%s (%s) imports %s (%s): an import goes to a strictly lower layer, or to a lower step of its own.\n\t"+
						"%s: %s\n\t%s: %s", path, own.place(), ours, other.place(), path, own.Why, ours, other.Why)
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

// place names the layer of a row, with its step if it stands above others of its layer.
func (r *Row) place() string {
	layer := LayerOf(r.Height)
	if step := r.Height - layer.Height; step > 0 {
		return fmt.Sprintf("layer %s, step %d", layer.Number, step)
	}
	return "layer " + layer.Number
}

// Reached returns the packages that reach what they are kept apart from, and separations that name no package, sorted.
func Reached(separations []Separation, graph map[string]Package) (bad []string) {
	for _, s := range separations {
		for _, pattern := range s.Packages {
			exists := false
			for path, p := range graph {
				if _, ok := matchPattern(pattern, path); !ok {
					continue
				}
				exists = true
				if i := slices.IndexFunc(p.Deps, func(d string) bool { return isWithin(Module+"/"+s.Never, d) }); i >= 0 {
					bad = append(bad, fmt.Sprintf("%s reaches %s: %s", path, p.Deps[i], s.Why))
				}
			}
			if !exists {
				bad = append(bad, pattern+" does not exist: take it out of NeverReached")
			}
		}
	}
	slices.Sort(bad)
	return bad
}

// Dead returns what is wrong with the table itself: a package of a row that neither exists nor is planned, or one that is planned
// and exists.
func Dead(table []Row, planned []string, graph map[string]Package) []string {
	var bad []string
	for _, row := range table {
		for _, pattern := range row.Packages {
			exists := false
			for path := range graph {
				_, matches := matchPattern(pattern, path)
				exists = exists || matches
			}
			switch isPlanned := slices.Contains(planned, pattern); {
			case exists && isPlanned:
				bad = append(bad, pattern+" exists: it is no longer planned, so take it out of Planned")
			case !exists && !isPlanned:
				bad = append(bad, pattern+" does not exist: take it out of the table, or name it in Planned")
			}
		}
	}
	for _, path := range planned {
		if findRow(table, path) == nil || !slices.Contains(findRow(table, path).Packages, path) {
			bad = append(bad, path+" is planned and has no row")
		}
	}
	slices.Sort(bad)
	return bad
}

// findRow returns the row of a package, nil if there is none.
func findRow(table []Row, path string) *Row {
	// The longest pattern decides, so that a row for one package stands beside a row for all below its folder.
	var best *Row
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
