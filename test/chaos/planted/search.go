package planted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// A SearchResult is the result of random days with one bug. Command search prints it as JSON.
type SearchResult struct {
	// Tried counts the seeds that were run. Seed is the first one that violated an invariant, 0 if none did.
	Tried int    `json:"tried"`
	Seed  uint64 `json:"seed,omitempty"`
	// Cut is set if the time was over before all seeds were run, and none of those that were run violated anything.
	Cut bool `json:"cut,omitempty"`
	// Violated names the invariants that the seed violated. Why is the text of one of them, of one that explains the bug if
	// there is one.
	Violated []string `json:"violated,omitempty"`
	Why      string   `json:"why,omitempty"`
	// Scenario is the shrunk scenario as YAML, and Lines counts its lines. It is empty if shrinking was off.
	Scenario string `json:"scenario,omitempty"`
	Lines    int    `json:"lines,omitempty"`
	// Crash holds the end of the process if the bug brought it down, up to 600 bytes. Hang says which seed did not end; a hang
	// alone does not count as found.
	Crash string `json:"crash,omitempty"`
	Hang  string `json:"hang,omitempty"`
	// CPU is the processor time of the search, shrinking included.
	CPU time.Duration `json:"cpu"`
}

// Detected reports whether an engineer who runs random days would have noticed the bug.
func (f SearchResult) Detected() bool { return f.Seed != 0 || f.Crash != "" }

// Bounds limit the effort for one bug.
type Bounds struct {
	// Seeds is the number of seeds to try, from First on.
	Seeds int
	First uint64
	// Limit bounds the processor time of the search, or the time of the unit tests; Seed the processor time of one seed. Shrink bounds
	// the time of shrinking after the search.
	Limit, Seed, Shrink time.Duration
}

// Search looks for a bug with random days, until the first that violates an invariant and does not violate one without the bug.
// It returns an error if a day without a bug crashes or hangs.
func (p *Programs) Search(ctx context.Context, b bugs.Bug, most Bounds) (SearchResult, error) {
	for {
		f, err := p.searchDays(ctx, b, most, most.First)
		switch {
		case err != nil:
			return f, err
		// A crash does not say which day it was, so that none may crash without the bug.
		case f.Crash != "":
			return f, p.runCleanDays(ctx, most.First, most.Seeds, most)
		case f.Seed == 0:
			return f, nil
		}
		// Only the day that was found is asked for without the bug: all of them cost more than the search.
		alarms := len(p.alarms)
		if err := p.runCleanDays(ctx, f.Seed, 1, most); err != nil || len(p.alarms) == alarms {
			return f, err
		}
	}
}

// runCleanDays runs n days without a bug from a seed on, each once for all searches, and remembers those that violate an invariant
// all the same: every later search skips them.
func (p *Programs) runCleanDays(ctx context.Context, seed uint64, n int, most Bounds) error {
	for end := seed + uint64(n); seed < end; seed++ {
		if p.cleanDays[seed] {
			continue
		}
		f, err := p.searchDays(ctx, bugs.Bug{}, Bounds{Seeds: 1, Limit: most.Limit, Seed: most.Seed}, seed)
		switch {
		case err != nil:
			return err
		case f.Crash != "" || f.Hang != "":
			return fmt.Errorf("day %d without a bug: %s%s", seed, f.Crash, f.Hang)
		case f.Seed != 0:
			p.alarms = append(p.alarms, strconv.FormatUint(seed, 10))
		}
		p.cleanDays[seed] = true
	}
	return nil
}

// Alarms returns the seeds that violate an invariant without a bug.
func (p *Programs) Alarms() []string { return p.alarms }

// searchDays starts the search program with one bug and waits for its result. A crash and an overrun of the limit are results,
// not errors.
func (p *Programs) searchDays(ctx context.Context, b bugs.Bug, most Bounds, seed uint64) (SearchResult, error) {
	// The search ends by itself once the limit is over, and its watchdog ends a day that hangs. It is killed where neither helps, after ten
	// times as long on the clock.
	end := 10*(most.Limit+most.Seed+most.Shrink) + 10*time.Second
	ctx, cancel := context.WithTimeout(ctx, end)
	defer cancel()
	run := exec.CommandContext(ctx, p.searchPath(), "-seed", strconv.FormatUint(seed, 10), "-seeds", strconv.Itoa(most.Seeds),
		"-skip", strings.Join(p.alarms, ","), "-want", strings.Join(b.Finds, ","),
		"-limit", most.Limit.String(), "-shrink", most.Shrink.String(), "-hang", most.Seed.String())
	// A child of the search may hold the output open; WaitDelay bounds the wait for it.
	run.WaitDelay = 5 * time.Second
	run.Env = append(os.Environ(), bugVariable+"="+b.Name)
	var stderr strings.Builder
	run.Stderr = &stderr
	out, err := run.Output()
	var f SearchResult
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		f.Hang = fmt.Sprintf("it had not ended after %v", end)
	case errors.As(err, &exit):
		f.Crash = cutText(stderr.String(), 600)
	case err != nil:
		return f, err
	default:
		if err := json.Unmarshal(out, &f); err != nil {
			return f, fmt.Errorf("bug %s: the search said %.200q: %w", b.Name, out, err)
		}
	}
	if s := run.ProcessState; s != nil {
		f.CPU = s.UserTime() + s.SystemTime()
	}
	return f, nil
}

// cutText returns at most the first n bytes of a text.
func cutText(text string, n int) string { return text[:min(len(text), n)] }
