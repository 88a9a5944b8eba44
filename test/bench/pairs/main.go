// Command pairs measures what the work since an older commit costs: it builds one small probe against that commit and against
// this tree, runs the two in turns, and prints the median of the differences with its 95 % interval. A disturbance of the
// machine strikes both halves of a pair, so that pairs show a difference that two separate runs would hide.
//
//	go run ./test/bench/pairs -base REV              # everything, 20 pairs each
//	go run ./test/bench/pairs -base REV -only start  # one row
//
// Where Linux schedules by session (/proc/sys/kernel/sched_autogroup_enabled is 1), a server with a session of its own is
// switched to more often: with 64 callers of a server that costs nothing this added 11 µs per call on two cores, and nothing
// with the setting at 0.
//
// The command needs git and the history, leaves the probes and the older tree in .cache/pairs, and talks to child processes
// only.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// measurements are the rows of the table, with the arguments of the probe. A positive target is the largest median difference
// that is accepted; 0 means that the interval should contain 0.
var measurements = []struct {
	name   string
	args   []string
	target time.Duration
}{
	{"a call, 1 caller", []string{"call", "1", "8000"}, 0},
	{"a call, 64 callers", []string{"call", "64", "30000"}, 0},
	{"a start without isolation", []string{"start", "12"}, 5 * time.Millisecond},
}

func main() {
	base := flag.String("base", "", "the older `commit`")
	count := flag.Int("pairs", 20, "how many pairs of runs a row takes, 6 at least")
	only := flag.String("only", "", "only the rows whose name matches this `regexp`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := comparePairs(ctx, *base, *count, *only); err != nil {
		fmt.Fprintln(os.Stderr, "pairs:", err)
		os.Exit(1)
	}
}

// comparePairs builds the probes, measures the wanted rows and prints the table. Fewer than 6 pairs have no 95 % interval.
func comparePairs(ctx context.Context, base string, count int, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if base == "" || count < 6 {
		return errors.New("-base COMMIT is needed, and at least 6 pairs: fewer have no interval")
	}
	before, after, err := buildProbes(ctx, base)
	if err != nil {
		return err
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"what", "before", "difference, median", "95 % interval", "aim", ""})
	for _, m := range measurements {
		if !wanted.MatchString(m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s: %d pairs\n", m.name, count)
		old, differences, err := measurePairs(ctx, count, func(newer bool) (time.Duration, error) {
			if newer {
				return runProbe(ctx, after, m.args)
			}
			return runProbe(ctx, before, m.args)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		low, mid, high := intervalOfMedian(differences)
		aim, holds := "contains 0", low <= 0
		if m.target > 0 {
			aim, holds = "≤ "+m.target.String(), mid <= m.target
		}
		t.AppendRow(table.Row{m.name, medianOf(old), mid, fmt.Sprintf("%v to %v", low, high), aim, resultText(holds)})
	}
	fmt.Printf("%d alternating pairs of %s and this tree. A negative difference says that this tree is faster.\n%s\n", count, base, t.Render())
	return nil
}

// resultText says whether a row meets its aim.
func resultText(holds bool) string {
	if holds {
		return "holds"
	}
	return "misses"
}

// buildProbes builds the probe of this tree against the older commit and against this tree.
func buildProbes(ctx context.Context, base string) (before, after string, err error) {
	top, err := runCommand(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", "", fmt.Errorf("this is no checkout with its history: %w", err)
	}
	commit, err := runCommand(ctx, top, "git", "rev-parse", "--verify", base+"^{commit}")
	if err != nil {
		return "", "", fmt.Errorf("%q is no commit of this history: %w", base, err)
	}
	folder := filepath.Join(top, ".cache", "pairs")
	tree := filepath.Join(folder, commit)
	// The older tree stays in .cache, so that only the first run has to export it.
	if _, err := os.Stat(filepath.Join(tree, "go.mod")); err != nil {
		if err := exportTree(ctx, top, commit, tree); err != nil {
			return "", "", err
		}
	}
	const probe = "test/bench/pairs/probe"
	if err := os.RemoveAll(filepath.Join(tree, probe)); err != nil {
		return "", "", err
	}
	if err := os.CopyFS(filepath.Join(tree, probe), os.DirFS(filepath.Join(top, probe))); err != nil {
		return "", "", err
	}
	before, after = filepath.Join(folder, "before"), filepath.Join(folder, "after")
	if _, err := runCommand(ctx, tree, "go", "build", "-o", before, "./"+probe); err != nil {
		return "", "", fmt.Errorf("the probe cannot be built against %s: %w", base, err)
	}
	if _, err := runCommand(ctx, top, "go", "build", "-o", after, "./"+probe); err != nil {
		return "", "", err
	}
	return before, after, nil
}

// exportTree writes the files of a commit into a folder. It renames the finished folder, so that a half-written one is never
// taken for a whole one.
func exportTree(ctx context.Context, top, commit, tree string) error {
	if err := os.MkdirAll(filepath.Dir(tree), 0o755); err != nil {
		return err
	}
	half, err := os.MkdirTemp(filepath.Dir(tree), "half-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(half)
	archive := filepath.Join(half, "tree.tar")
	if _, err := runCommand(ctx, top, "git", "archive", "--output", archive, commit); err != nil {
		return err
	}
	whole := filepath.Join(half, "tree")
	if err := os.Mkdir(whole, 0o755); err != nil {
		return err
	}
	if _, err := runCommand(ctx, whole, "tar", "-xf", archive); err != nil {
		return err
	}
	return os.Rename(whole, tree)
}

// runProbe runs a probe and returns the number that it prints, in nanoseconds.
func runProbe(ctx context.Context, probe string, args []string) (time.Duration, error) {
	text, err := runCommand(ctx, ".", probe, args...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the probe printed %q, which is no number", text)
	}
	return time.Duration(n), nil
}

// runCommand returns the output of a program without the space around it; its error ends with the program's standard error.
func runCommand(ctx context.Context, dir, name string, args ...string) (string, error) {
	var out, bad bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &bad
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(bad.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
