// Command report prints every feature of the seeds with what shows it, and whether that passes.
//
//	report                     runs the tests that show features
//	report -results FILE       takes their results from a file of go test -json
//	report -bind               writes the names of the tests into the list
//
// It ends with 1 if a feature is shown by no test or by one that fails. A skipped test shows nothing, and is said; with
// CI=true in the environment that counts as a failure.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

func main() {
	results := flag.String("results", "", "take the results from this `file` of go test -json")
	bind := flag.Bool("bind", false, "write the names of the tests into the list")
	flag.Parse()
	ok, err := run(*results, *bind)
	if err != nil {
		fmt.Fprintln(os.Stderr, "seeds:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run prints the table, or with bind writes the names into the list. It reports false if a feature is shown by no test, or by one that
// fails.
func run(results string, bind bool) (bool, error) {
	root, err := arch.Root()
	if err != nil {
		return false, err
	}
	sources, err := seeds.Read(root)
	if err != nil {
		return false, err
	}
	if bind {
		return true, writeNames(filepath.Join(root, "test", "seeds", "features"), sources)
	}
	list, err := seeds.Load()
	if err != nil {
		return false, err
	}
	var tests []string
	for _, f := range list {
		tests = append(tests, seeds.Tests(sources, f.ID)...)
	}
	slices.Sort(tests)
	tests = slices.Compact(tests)
	var outcomes map[string]string
	if results != "" {
		outcomes, err = readOutcomes(results)
	} else {
		outcomes, err = runTests(root, tests)
	}
	if err != nil {
		return false, err
	}
	return printTable(list, sources, outcomes), nil
}

// writeNames writes the names of the tests into each file of the list, and changes nothing else of it.
func writeNames(dir string, s *seeds.Sources) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(seeds.Bind(string(b), s)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// States of a feature, in the order of the table's columns.
const (
	passes  = "passes"
	fails   = "FAILS"
	skipped = "skipped"
	noTest  = "NO TEST"
	waits   = "waits"
)

var states = []string{passes, fails, skipped, noTest, waits}

// printTable prints a line for each feature, the sums for each document, and the works that features wait for.
func printTable(list []seeds.Feature, s *seeds.Sources, outcomes map[string]string) bool {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	count := map[string]map[string]int{}
	waiting := map[string]int{}
	var documents []string
	for _, f := range list {
		tests := seeds.Tests(s, f.ID)
		state := stateOf(f, tests, outcomes)
		document := f.ID[:3]
		if count[document] == nil {
			count[document] = map[string]int{}
			documents = append(documents, document)
		}
		count[document][state]++
		shownBy := strings.Join(tests, " ")
		if f.Waits != "" {
			waiting[f.Waits]++
			shownBy = "for: " + f.Waits
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", state, f.ID, f.Text, shownBy)
	}
	fmt.Fprintf(w, "\nseed\t%s\n", strings.Join(states, "\t"))
	total := map[string]int{}
	for _, d := range documents {
		printRow(w, d, count[d])
		for state, n := range count[d] {
			total[state] += n
		}
	}
	printRow(w, "all", total)
	_ = w.Flush() // standard output is all there is to tell it to
	var parts []string
	for _, work := range seeds.Waits {
		if n := waiting[work]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", work, n))
		}
	}
	fmt.Println("\nwaiting for:", strings.Join(parts, " · "))
	return total[fails]+total[noTest] == 0 && (total[skipped] == 0 || os.Getenv("CI") != "true")
}

// printRow prints the sums of one document in the order of states.
func printRow(w *tabwriter.Writer, name string, count map[string]int) {
	fmt.Fprint(w, name)
	for _, s := range states {
		fmt.Fprintf(w, "\t%d", count[s])
	}
	fmt.Fprintln(w)
}

// stateOf is the worst that its tests make of a feature. A test without an outcome did not run: that is a failure too.
func stateOf(f seeds.Feature, tests []string, outcomes map[string]string) string {
	if f.Waits != "" {
		return waits
	}
	if len(tests) == 0 {
		return noTest
	}
	state := passes
	for _, t := range tests {
		switch outcomes[t] {
		case "pass":
		case "skip":
			if state == passes {
				state = skipped
			}
		default:
			state = fails
		}
	}
	return state
}
