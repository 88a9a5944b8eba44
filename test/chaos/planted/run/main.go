// Command run plants the known bugs, one after the other, and prints which search finds each: random days, the unit tests of
// the bug's package, or neither. It exits with 1 if neither finds a bug that is not in bugs.Unseen, and with 2 on an error.
//
//	make planted ONLY=queue DAYS=no     # some bugs, with the unit tests alone
//
// It builds the programs once with all bugs in them, in a temporary folder, and chooses one by the environment of each run. The file
// of -results keeps what was found, so that a run that was cut off goes on with -resume.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// options are the flags of the command.
type options struct {
	only, slice      string
	days, tests      bool
	resume, scenario bool
	results, table   string
	most             planted.Bounds
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "only bugs whose name contains this `word`, or one of several with commas between")
	flag.StringVar(&o.slice, "slice", "1/1", "only every n-th bug, from the `i/n`-th on")
	flag.BoolVar(&o.days, "days", true, "look with random days")
	flag.BoolVar(&o.tests, "tests", true, "look with the unit tests of the package")
	flag.IntVar(&o.most.Seeds, "seeds", 200, "how many random days are tried for each")
	flag.Uint64Var(&o.most.First, "seed", 1, "the first of the random days")
	flag.DurationVar(&o.most.Limit, "limit", 5*time.Minute, "how much processor time the days, or how long the tests, may take for one bug")
	flag.DurationVar(&o.most.Seed, "hang", 30*time.Second, "how much processor time one day may take")
	flag.DurationVar(&o.most.Shrink, "shrink", 10*time.Second, "how long a scenario that was found may be made smaller")
	flag.StringVar(&o.results, "results", "", "a `file` that keeps what was found: what this run does not look at is told from it")
	flag.BoolVar(&o.resume, "resume", false, "do not look again at what is in the file of results")
	flag.StringVar(&o.table, "markdown", "", "write the table to this `file` as well")
	flag.BoolVar(&o.scenario, "scenario", false, "print the scenarios that were found")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	passed, err := runPlanted(ctx, o)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(2)
	case !passed:
		os.Exit(1)
	}
}

// runPlanted searches for the selected bugs and prints the table. It removes the built programs at the end. passed is false if
// a bug was found by neither and is not in bugs.Unseen.
func runPlanted(ctx context.Context, o options) (passed bool, err error) {
	root, err := arch.Root()
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "mcpvisor-planted-*")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source := planted.NewSource(root)
	// A bug that cannot be planted would count as not found, so all rows are checked first.
	if err := source.Compiles(bugs.All); err != nil {
		return false, err
	}
	programs, err := source.Build(ctx, bugs.All, dir)
	if err != nil {
		return false, err
	}
	all, err := readResults(o.results)
	if err != nil {
		return false, err
	}
	var i, n int
	if _, err := fmt.Sscanf(o.slice, "%d/%d", &i, &n); err != nil || i < 1 || n < 1 {
		return false, fmt.Errorf("-slice %s is not like 1/3", o.slice)
	}
	for at, b := range bugs.All {
		// The slices let several machines share one run.
		if !o.isSelected(b) || at%n != i%n {
			continue
		}
		r := all[b.Name]
		if o.days && (r.Days == nil || !o.resume) {
			found, err := programs.Search(ctx, b, o.most)
			if err != nil || ctx.Err() != nil {
				return false, errors.Join(err, ctx.Err())
			}
			r.Days = &found
		}
		if o.tests && (r.Tests == nil || !o.resume) {
			tested, err := programs.Test(ctx, b, o.most.Limit)
			if err != nil {
				return false, err
			}
			r.Tests = &tested
		}
		all[b.Name] = r
		fmt.Fprintln(os.Stderr, r.Line(b))
		if o.scenario && r.Days != nil {
			fmt.Fprintln(os.Stderr, r.Days.Scenario)
		}
		// The file is written after each bug, so that an interrupted run can resume.
		if err := writeResults(o.results, all); err != nil {
			return false, err
		}
	}
	if alarms := programs.Alarms(); len(alarms) > 0 {
		fmt.Println("left out, because they violate something without a bug: days", strings.Join(alarms, ", "))
	}
	t := planted.NewTable(all)
	fmt.Println(t.Text())
	if o.table != "" {
		if err := os.WriteFile(o.table, []byte(t.Markdown()), 0o644); err != nil { //nolint:gosec // a file of the repository
			return false, err
		}
	}
	return t.Passed(), nil
}

// isSelected reports whether a bug's name contains one of the words of -only. An empty -only selects all, because the empty
// word is in every name.
func (o options) isSelected(b bugs.Bug) bool {
	for word := range strings.SplitSeq(o.only, ",") {
		if strings.Contains(b.Name, word) {
			return true
		}
	}
	return false
}

// readResults reads the file of an earlier run; a missing file and an empty path mean no results.
func readResults(path string) (planted.Results, error) {
	all := planted.Results{}
	if path == "" {
		return all, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// writeResults writes all results, unless no file was named.
func writeResults(path string, all planted.Results) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
