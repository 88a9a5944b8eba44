// Command run runs the official conformance suite against the client of package conformance and prints a table.
//
//	run [-only REGEXP] [-j N] [-binary PATH]
//
// The scenarios for servers are played to the servers of test/chaos/score, one after the other, before those for clients.
//
// It ends with 1 if something failed that may not, or passed that was expected to fail, and with 2 if nothing could be
// run. Without npm or its registry there is no suite: that is said, and ends with 0 unless CI=true is in the
// environment.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/conformance"
	"github.com/mcpvisor/mcpvisor/test/peers"
)

func main() {
	only := flag.String("only", "", "run only what matches this `regexp` of VERSION/SCENARIO")
	parallel := flag.Int("j", 2, "how many at a time")
	binary := flag.String("binary", "", "test this `program` instead of building the client")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, *only, *parallel, *binary)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run plays the selected runs and reports whether everything is as expected. Without the suite it reports true, except in CI, where
// silence would hide that nothing was tested.
func run(ctx context.Context, only string, parallel int, binary string) (bool, error) {
	begin := time.Now()
	pattern, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	root, err := arch.Root()
	if err != nil {
		return false, err
	}
	known, err := conformance.ReadExpected()
	if err != nil {
		return false, err
	}
	expected, throughGateway := conformance.SplitExpected(known)
	installed, err := peers.Conformance(os.Stdout)
	if err != nil {
		fmt.Println("conformance: NOT TESTED, because the suite cannot be had:", err)
		return os.Getenv("CI") != "true", nil
	}
	folder := filepath.Join(root, ".cache", "conformance")
	s := &conformance.Suite{Suite: installed, Client: binary, Output: filepath.Join(folder, "out")}
	if binary == "" {
		if s.Client, err = buildClient(ctx, root, folder); err != nil {
			return false, err
		}
	} else if s.Client, err = filepath.Abs(binary); err != nil {
		return false, err
	}
	plan, err := conformance.Plan(s.Requirements)
	if err != nil {
		return false, err
	}
	if err := checkCoverage(ctx, s, plan); err != nil {
		return false, err
	}
	var runs []conformance.Run
	for _, r := range plan {
		if pattern.MatchString(r.String()) {
			runs = append(runs, r)
		}
	}
	serversPass, played := runServers(ctx, s, pattern)
	gatewayPass, through, err := runGateway(ctx, s, pattern, parallel, throughGateway)
	if err != nil {
		return false, err
	}
	played += through
	if len(runs) == 0 && played == 0 {
		return false, fmt.Errorf("nothing matches %q", only)
	}
	outcomes := s.All(ctx, runs, parallel, func(o conformance.Outcome) { fmt.Println(conformance.Line(o, expected)) })
	if ctx.Err() != nil {
		return false, errors.New("interrupted: what it had started is ended")
	}
	conformance.Report(os.Stdout, outcomes, expected)
	j := conformance.Judge(plan, outcomes, expected)
	fmt.Printf("\n%d runs in %s\n", len(outcomes), time.Since(begin).Round(time.Second))
	for _, r := range j.Unexpected {
		fmt.Println("failed and may not:", r)
	}
	for _, entry := range j.Stale {
		fmt.Println("expected-failures.yaml is stale:", entry)
	}
	return j.OK() && serversPass && gatewayPass, nil
}

// runServers plays the suite's scenarios for servers to those that judge clients, and reports whether all pass, and how many there
// were. Their names begin with "server/".
func runServers(ctx context.Context, s *conformance.Suite, pattern *regexp.Regexp) (pass bool, played int) {
	pass = true
	for _, r := range conformance.ServerRuns {
		if !pattern.MatchString("server/" + r.String()) {
			continue
		}
		o := s.OneServer(ctx, r)
		fmt.Println("server", conformance.Line(o, nil))
		if played++; !o.Passed() {
			pass = false
			fmt.Println("  " + strings.Join(o.Reasons(), "\n  "))
		}
	}
	return pass, played
}

// runGateway plays the suite's sets for servers through the gateway, so many cases at a time, and reports whether all pass that may not
// fail, and how many there were. Their names begin with "gateway/".
func runGateway(
	ctx context.Context, s *conformance.Suite, pattern *regexp.Regexp, parallel int, expected []conformance.ExpectedFailure,
) (pass bool, played int, err error) {
	everything, err := peers.EverythingServer(os.Stdout)
	if err != nil {
		fmt.Println("conformance: NOT TESTED through the gateway, because the Go SDK's everything-server cannot be had:", err)
		return os.Getenv("CI") != "true", 0, nil
	}
	var mu sync.Mutex // guards what the cases report
	pass = true
	var all sync.WaitGroup
	turns := make(chan struct{}, max(parallel, 1))
	for _, c := range conformance.GatewayCases {
		runs, err := c.Runs(s.Requirements)
		if err != nil {
			return false, played, err
		}
		runs = slices.DeleteFunc(runs, func(r conformance.Run) bool { return !pattern.MatchString("gateway/" + c.String() + "/" + r.Scenario) })
		if len(runs) == 0 {
			continue
		}
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			lines, ok := playThrough(ctx, s, c, runs, everything, expected)
			mu.Lock()
			defer mu.Unlock()
			played += len(runs)
			pass = pass && ok
			fmt.Println(strings.Join(lines, "\n"))
		})
	}
	all.Wait()
	return pass, played, nil
}

// playThrough plays one case, and reports it in lines.
func playThrough(
	ctx context.Context, s *conformance.Suite, c conformance.GatewayCase, runs []conformance.Run, everything string,
	expected []conformance.ExpectedFailure,
) (lines []string, ok bool) {
	stand, err := conformance.OpenGateway(ctx, c, everything)
	if err != nil {
		return []string{fmt.Sprintf("gateway %s: %v", c, err)}, false
	}
	defer stand.Close()
	passed, ok := 0, true
	for _, o := range s.AllThrough(ctx, stand, runs) {
		if o.Passed() {
			passed++
		}
		for i, line := range c.JudgeOutcome(o, expected) {
			ok = false
			lines = append(lines, strings.Repeat("  ", min(i, 1)+1)+line)
		}
	}
	return append([]string{fmt.Sprintf("gateway %s: %d of %d", c, passed, len(runs))}, lines...), ok
}

// buildClient compiles the client. Its path is the same each time, so that the folder holds one.
func buildClient(ctx context.Context, root, folder string) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(folder, "client")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, arch.Module+"/test/conformance/client")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the client: %w\n%s", err, out)
	}
	return path, nil
}

// checkCoverage fails if the suite has a scenario that is neither planned nor left out on purpose.
func checkCoverage(ctx context.Context, s *conformance.Suite, plan []conformance.Run) error {
	scenarios, err := s.Scenarios(ctx)
	if err != nil {
		return err
	}
	unplanned, obsolete := conformance.Missing(plan, scenarios)
	switch {
	case len(unplanned) > 0:
		return fmt.Errorf("the suite has scenarios that are neither run nor in NotRun: %v", unplanned)
	case len(obsolete) > 0:
		return fmt.Errorf("NotRun names scenarios that the suite does not have: %v", obsolete)
	}
	return nil
}
