// Command run counts what random days try, builds the program with counters, runs the days, and says which statements none of
// them has run. It exits with 1 if too few were.
//
//	make days                                   # 1,000 days; writes test/chaos/reach/README.md
//	go run ./test/chaos/reach/run -days 100     # prints the tables only
//
// Package reach counts and writes; this command builds the program with Go's coverage counters, runs "mcpvisor chaos sim" with it in
// a temporary folder, and joins the counters.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/chaos/campaign"
	"github.com/mcpvisor/mcpvisor/test/chaos/reach"
)

// options are the flags of the command.
type options struct {
	first  uint64
	days   int
	jobs   int
	least  float64
	readme bool
}

func main() {
	var o options
	flag.Uint64Var(&o.first, "seed", 1, "the first seed")
	flag.IntVar(&o.days, "days", 1000, "how many days are run")
	flag.IntVar(&o.jobs, "jobs", 0, "how many processes run at a time; one for each processor if 0")
	flag.Float64Var(&o.least, "least", 0, "exit with 1 if fewer per cent of the statements were run")
	flag.BoolVar(&o.readme, "readme", false, "write test/chaos/reach/README.md as well")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	enough, err := runReach(ctx, o)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "reach:", err)
		os.Exit(2)
	case !enough:
		os.Exit(1)
	}
}

// runReach counts the words of the scenarios, runs the days with counters, and prints the tables. enough is false if fewer
// statements were run than the flag asks for.
func runReach(ctx context.Context, o options) (enough bool, err error) {
	root, err := arch.Root()
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "mcpvisor-reach-*")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f := reach.Findings{First: o.first, Days: o.days, Words: reach.Count(o.first, o.days)}
	program := filepath.Join(dir, "mcpvisor")
	if err := buildProgram(ctx, root, program); err != nil {
		return false, err
	}
	if f.Fired, err = runCampaign(ctx, dir, program, o); err != nil {
		return false, err
	}
	if f.Profile, err = readProfile(ctx, dir); err != nil {
		return false, err
	}
	f.Table(os.Stdout)
	if o.readme {
		var page bytes.Buffer
		f.Markdown(&page)
		if err := os.WriteFile(filepath.Join(root, "test", "chaos", "reach", "README.md"), page.Bytes(), 0o644); err != nil {
			return false, err
		}
	}
	_, total := f.Reached()
	if total.Percent() < o.least {
		fmt.Printf("%.1f %% were run, and %.1f %% are asked for\n", total.Percent(), o.least)
		return false, nil
	}
	return true, nil
}

// buildProgram makes the program with counters in the packages that count. Without the command itself among them nothing is written.
func buildProgram(ctx context.Context, root, program string) error {
	packages := []string{reach.Module + "cmd/mcpvisor"}
	for _, p := range reach.Packages {
		packages = append(packages, reach.Module+p)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-cover", "-coverpkg", strings.Join(packages, ","), "-o", program, "./cmd/mcpvisor")
	cmd.Dir = root
	return runQuietly(cmd)
}

// runCampaign runs the days, and says in how many each fault had an effect. That some are violated is not its matter.
func runCampaign(ctx context.Context, dir, program string, o options) (map[string]int, error) {
	counters := filepath.Join(dir, "counters")
	if err := os.Mkdir(counters, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "chaos", "sim", "--seed", fmt.Sprint(o.first), "--seeds", fmt.Sprint(o.days),
		"--jobs", fmt.Sprint(o.jobs), "--no-shrink", "--json", "--out", filepath.Join(dir, "reports"))
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+counters)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var found struct{ Summary campaign.Summary }
	if decodeErr := json.Unmarshal(out, &found); decodeErr != nil {
		return nil, errors.Join(decodeErr, err)
	}
	if n := len(found.Summary.Failed); n > 0 {
		fmt.Printf("%d days are violated: see make chaos\n", n)
	}
	fired := map[string]int{}
	for _, t := range found.Summary.Checks {
		if name, isFault := strings.CutPrefix(t.ID, "sometimes fault "); isFault {
			fired[name] = t.Held
		}
	}
	return fired, nil
}

// readProfile joins the counters of all processes, and leaves out the command, which is built with counters only so that they are
// written.
func readProfile(ctx context.Context, dir string) (reach.Profile, error) {
	name := filepath.Join(dir, "profile.txt")
	if err := runQuietly(exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i="+filepath.Join(dir, "counters"), "-o="+name)); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	p, err := reach.Read(f)
	for file := range p {
		if strings.HasPrefix(file, "cmd/") {
			delete(p, file)
		}
	}
	return p, err
}

// runQuietly runs a command whose words count only if it fails.
func runQuietly(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[:min(3, len(cmd.Args))], " "), err, out)
	}
	return nil
}
