package planted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SearchResult is what random days brought to light of a bug.
type SearchResult struct {
	// Tried is how many seeds were run; Seed the one that violated something, 0 if none did.
	Tried int    `json:"tried"`
	Seed  uint64 `json:"seed,omitempty"`
	// Violated are the invariants that it violated, and Why is what the first of them says, of those that explain the bug if there
	// is one.
	Violated []string `json:"violated,omitempty"`
	Why      string   `json:"why,omitempty"`
	// Scenario is the shrunk scenario that shows it, and Lines how long that is.
	Scenario string `json:"scenario,omitempty"`
	Lines    int    `json:"lines,omitempty"`
	// Crash is how the process ended if the bug brought it down; Hang, on which seed it hung.
	Crash string `json:"crash,omitempty"`
	Hang  string `json:"hang,omitempty"`
	// CPU is the processor time of the search.
	CPU time.Duration `json:"cpu"`
}

// Detected reports whether somebody who runs random days would know of a bug.
func (f SearchResult) Detected() bool { return f.Seed != 0 || f.Crash != "" }

// Explained reports whether it was found by an invariant that explains it.
func (b Bug) Explained(f SearchResult) bool {
	return slices.ContainsFunc(b.Finds, func(want string) bool { return slices.Contains(f.Violated, want) })
}

// Bounds are how much may be spent on one bug.
type Bounds struct {
	// Seeds is how many are tried.
	Seeds int
	// Limit is how long the search, or the unit tests, may take; Seed how long one seed may; Shrink how long of it the scenario
	// that was found may be made smaller.
	Limit, Seed, Shrink time.Duration
}

// Search looks for a bug with random days, until the first that violates anything. A day that violates something without a bug is
// left out.
func (p *Programs) Search(ctx context.Context, b Bug, most Bounds) (SearchResult, error) {
	for p.cleanDays < most.Seeds {
		f, err := p.searchDays(ctx, Bug{}, Bounds{Seeds: most.Seeds - p.cleanDays, Limit: 10 * most.Limit, Seed: most.Seed}, p.cleanDays+1)
		switch {
		case err != nil:
			return f, err
		case f.Crash != "" || f.Hang != "":
			return f, fmt.Errorf("without a bug: %s%s", f.Crash, f.Hang)
		case f.Seed != 0:
			p.alarms = append(p.alarms, strconv.FormatUint(f.Seed, 10))
		}
		p.cleanDays += f.Tried
	}
	return p.searchDays(ctx, b, most, 1)
}

// Alarms are the days that violate something without a bug.
func (p *Programs) Alarms() []string { return p.alarms }

func (p *Programs) searchDays(ctx context.Context, b Bug, most Bounds, seed int) (SearchResult, error) {
	ctx, cancel := context.WithTimeout(ctx, most.Limit)
	defer cancel()
	run := exec.CommandContext(ctx, p.searchPath(), "-seed", strconv.Itoa(seed), "-seeds", strconv.Itoa(most.Seeds),
		"-skip", strings.Join(p.alarms, ","), "-want", strings.Join(b.Finds, ","),
		"-shrink", most.Shrink.String(), "-hang", most.Seed.String())
	run.WaitDelay = 5 * time.Second
	run.Env = append(os.Environ(), bugVariable+"="+b.Name)
	var stderr strings.Builder
	run.Stderr = &stderr
	out, err := run.Output()
	var f SearchResult
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		f.Hang = fmt.Sprintf("it had not ended after %v", most.Limit)
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

func cutText(text string, n int) string { return text[:min(len(text), n)] }
