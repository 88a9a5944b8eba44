package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/peers"
)

const (
	// clientTime is the time for which the suite waits for a client; the client of this package gives up before.
	clientTime = 30 * time.Second
	// runTime bounds a whole run: the suite's own start and end, and clientTime.
	runTime = 60 * time.Second
	// setTime bounds all scenarios of a set together.
	setTime = 5 * time.Minute
)

// Suite runs scenarios.
type Suite struct {
	*peers.Suite
	// Client is the path of the client program.
	Client string
	// Output is the folder for what runs write, a folder for each.
	Output string
}

// Scenarios are those that the suite has for clients.
func (s *Suite) Scenarios(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, s.Node, s.Script, "list", "--client").Output()
	if err != nil {
		return nil, fmt.Errorf("the suite does not list its scenarios: %w", err)
	}
	return scenariosIn(string(out)), nil
}

// listedPattern matches a line such as "  - tools_call [2025-06-18,2025-11-25]".
var listedPattern = regexp.MustCompile(`(?m)^\s+- (\S+)`)

// scenariosIn returns the names in the suite's own list.
func scenariosIn(list string) (scenarios []string) {
	for _, m := range listedPattern.FindAllStringSubmatch(list, -1) {
		scenarios = append(scenarios, m[1])
	}
	return scenarios
}

// All runs everything in runs, so many at a time, and gives the outcomes in that order. done is called for each as it
// ends, one at a time. When ctx ends, what has not begun does not begin.
func (s *Suite) All(ctx context.Context, runs []Run, parallel int, done func(Outcome)) []Outcome {
	outcomes := make([]Outcome, len(runs))
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan int)
	for range max(parallel, 1) {
		wg.Go(func() {
			for i := range next {
				outcomes[i] = s.One(ctx, runs[i])
				mu.Lock()
				done(outcomes[i])
				mu.Unlock()
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	wg.Wait()
	return outcomes
}

// One runs one scenario. Everything that it started has ended when it returns.
func (s *Suite) One(ctx context.Context, r Run) Outcome {
	begin := time.Now()
	o := Outcome{Run: r, Folder: filepath.Join(s.Output, r.Version, filepath.FromSlash(r.Scenario))}
	// The suite cuts the command at its blanks and gives it to a shell: a relative path has none.
	command := "./" + filepath.Base(s.Client)
	if filepath.Separator == '\\' {
		command = filepath.Base(s.Client)
	}
	o.Checks, o.Problem = s.runScenario(ctx, o.Folder, filepath.Dir(s.Client), "client", "--command", command,
		"--scenario", r.Scenario, "--spec-version", r.Version, "--force", "--timeout", strconv.FormatInt(clientTime.Milliseconds(), 10))
	o.Took = time.Since(begin)
	return o
}

// runScenario plays one scenario in a process of its own in dir, whose group is ended with it. problem says why the checks do not
// count, empty if they do.
func (s *Suite) runScenario(ctx context.Context, folder, dir string, args ...string) (checks []Check, problem string) {
	e := s.runSuite(ctx, runTime, folder, dir, args...)
	checks, unread := readChecks(folder)
	switch {
	case e.problem != "":
		return checks, e.problem
	case unread != nil:
		return checks, unread.Error() + ": " + lastLine(e.output)
	case e.failed && len(Outcome{Checks: checks}.Failed()) == 0:
		return checks, clientProblem(e.output, folder)
	}
	return checks, ""
}

// An execution is what a process of the suite left behind beside the files in its folder.
type execution struct {
	output string
	// failed says that it ended with another exit code than 0; problem why nothing of it counts, empty if it does.
	failed  bool
	problem string
}

// runSuite runs the suite's command in dir for limit at most, and ends its process group with it. The folder is emptied before.
func (s *Suite) runSuite(ctx context.Context, limit time.Duration, folder, dir string, args ...string) execution {
	if err := ctx.Err(); err != nil {
		return execution{problem: "not run: " + err.Error()}
	}
	if err := os.RemoveAll(folder); err != nil {
		return execution{problem: err.Error()}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return execution{problem: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Node, append([]string{s.Script}, append(args, "--output-dir", folder)...)...)
	cmd.Dir = dir
	// Half of a scenario's time is Node reading the suite; this keeps what it made of it for the next run.
	cmd.Env = append(os.Environ(), "NODE_COMPILE_CACHE="+filepath.Join(s.Output, "node"))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	survived, err := runGroup(cmd)
	_ = os.WriteFile(filepath.Join(folder, "suite.txt"), output.Bytes(), 0o644) // it is only for who looks into a failure
	e := execution{output: output.String(), failed: err != nil}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		e.problem = "ended by us: " + ctx.Err().Error()
	case survived:
		e.problem = "processes were left behind, and killed"
	case err != nil && !errors.As(err, &exit):
		e.problem = "the suite cannot be run: " + err.Error()
	}
	return e
}

// clientProblem says what was wrong with the client when no check was.
func clientProblem(output, folder string) string {
	if strings.Contains(output, "CLIENT TIMED OUT") {
		return "the client did not end within " + clientTime.String()
	}
	stderr, err := findFile(folder, "stderr.txt")
	if err != nil || len(bytes.TrimSpace(stderr)) == 0 {
		return "the suite failed: " + lastLine(output)
	}
	return "the client failed: " + lastLine(string(stderr))
}
