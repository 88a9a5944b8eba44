package edge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/bench/row"
)

// gaps is how often the agents lose their daemon, in each way.
const gaps = 3

// measureGaps measures how long the last of many agents has no result when the daemon is killed, and when it gives way to a later program. It
// is an error if a call runs twice, if one that was answered with a result has not run, or if servers of the daemon before are left.
func measureGaps(ctx context.Context, program string) (rows []row.Row, err error) {
	home, leave, err := newHome(ctx, program, goodServer())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	ran := filepath.Join(home, "ran")
	var all []*caller
	for i := range agents {
		a, err := startAgent(ctx, program, home)
		if err != nil {
			return nil, err
		}
		defer func() {
			_ = a.in.Close()
			_ = a.cmd.Wait()
		}()
		if _, _, err := a.open(time.Now()); err != nil {
			return nil, err
		}
		all = append(all, &caller{agent: a, number: i, file: ran})
	}
	var killed, replaced []float64
	for i := range gaps {
		gap, err := loseDaemon(all, func() error { return killDaemon(home) })
		if err != nil {
			return nil, err
		}
		killed = append(killed, float64(gap)/1e6)
		gap, err = loseDaemon(all, func() error { return replaceDaemon(ctx, program, home, i) })
		if err != nil {
			return nil, err
		}
		replaced = append(replaced, float64(gap)/1e6)
		if n := countProcesses(home); n > 1 {
			return nil, fmt.Errorf("the one server has %d processes after its daemon has changed", n)
		}
	}
	if err := checkRuns(ran, all); err != nil {
		return nil, err
	}
	return []row.Row{
		{Case: "agents: the last of 50 has a result again after the daemon was killed", Unit: "ms", Value: middle(killed), Target: 2000},
		{Case: "agents: the longest wait of 50 for a result while a later program takes over", Unit: "ms", Value: middle(replaced), Target: 2000},
	}, nil
}

// caller is an agent that calls without end: each call appends a line of its own to a file.
type caller struct {
	*agent
	number, calls int
	file          string
	results       []string // the lines of the calls that have a result
}

// callOnce makes one call, and reports whether it has a result.
func (c *caller) callOnce() (bool, error) {
	c.calls++
	line := fmt.Sprintf("%d-%d", c.number, c.calls)
	text, err := c.ask(c.calls+10, "tools/call", fmt.Sprintf(`{"name":"one__append","arguments":{"file":%q,"line":%q}}`, c.file, line))
	if err != nil {
		return false, err
	}
	if !strings.Contains(text, "appended") {
		return false, nil
	}
	c.results = append(c.results, line)
	return true, nil
}

// callUntil calls until it is told to stop, and then until one more call has a result. It returns the times of all results.
func (c *caller) callUntil(stop <-chan struct{}) (times []time.Time, err error) {
	for {
		stopped := false
		select {
		case <-stop:
			stopped = true
		case <-time.After(betweenCalls):
		}
		for had := false; !had; {
			if had, err = c.callOnce(); err != nil {
				return times, err
			}
		}
		if times = append(times, time.Now()); stopped {
			return times, nil
		}
	}
}

const (
	// betweenCalls is the pause of an agent, so that the bench does not measure how fast the machine makes calls.
	betweenCalls = 50 * time.Millisecond
	// around is how long the agents call before they lose their daemon and after it.
	around = 2 * time.Second
)

// loseDaemon has all agents call, takes their daemon away in the middle, and returns the longest time from there on in which one of them had
// no result.
func loseDaemon(all []*caller, lose func() error) (longest time.Duration, err error) {
	stop := make(chan struct{})
	times, problems := make([][]time.Time, len(all)), make([]error, len(all))
	var working sync.WaitGroup
	for i, c := range all {
		working.Go(func() { times[i], problems[i] = c.callUntil(stop) })
	}
	time.Sleep(around)
	lost := time.Now()
	err = lose()
	time.Sleep(around)
	close(stop)
	working.Wait()
	for _, results := range times {
		last := lost
		for _, t := range results {
			if t.After(lost) {
				longest, last = max(longest, t.Sub(last)), t
			}
		}
	}
	return longest, errors.Join(errors.Join(problems...), err)
}

// killDaemon kills the daemon of a home.
func killDaemon(home string) error {
	text, err := os.ReadFile(filepath.Join(home, "mcpvisor", "daemon.lock"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return fmt.Errorf("the daemon's lock names no process: %q", text)
	}
	daemon, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return daemon.Kill()
}

// replaceDaemon has an agent come whose program is a later one: the same with a later time.
func replaceDaemon(ctx context.Context, program, home string, number int) error {
	later := filepath.Join(home, fmt.Sprintf("later-%d", number))
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(later, text, 0o700) //nolint:gosec // it is a program
	}
	if err != nil {
		return err
	}
	a, err := startAgent(ctx, later, home)
	if err != nil {
		return err
	}
	defer func() {
		_ = a.in.Close()
		_ = a.cmd.Wait()
	}()
	_, _, err = a.open(time.Now())
	return err
}

// checkRuns looks at what the calls of agents have appended to a file: none twice, and everything that has a result.
func checkRuns(file string, all []*caller) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	runs := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); runs[line] > 0 {
			return fmt.Errorf("the call %s has run twice", line)
		}
		runs[line]++
	}
	for _, c := range all {
		for _, line := range c.results {
			if runs[line] == 0 {
				return fmt.Errorf("the call %s has a result, and has not run", line)
			}
		}
	}
	return nil
}
