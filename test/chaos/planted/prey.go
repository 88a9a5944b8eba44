package planted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Prey is what a hunt brought home.
type Prey struct {
	// Tried is how many seeds were run; Seed the one that found something, 0 if none did.
	Tried int    `json:"tried"`
	Seed  uint64 `json:"seed,omitempty"`
	// Violated are the invariants that were violated until then, in the order in which they were found; Why is what the one
	// says that was wanted.
	Violated []string `json:"violated,omitempty"`
	Why      string   `json:"why,omitempty"`
	// Before and After are the sizes of the scenario as it was generated and as it was shrunk to; Scenario is the shrunk one.
	Before   Size   `json:"before"`
	After    Size   `json:"after"`
	Scenario string `json:"scenario,omitempty"`
	// Crash is how the process ended if the bug brought it down or made it hang.
	Crash string `json:"crash,omitempty"`
}

// Size is how much there is in a scenario.
type Size struct {
	Servers  int `json:"servers"`
	Faults   int `json:"faults"`
	Commands int `json:"commands"`
	Load     int `json:"load"`
}

// SizeOf counts.
func SizeOf(s scenario.Scenario) Size {
	size := Size{Faults: len(s.Faults), Commands: len(s.Commands), Load: len(s.Load)}
	for _, g := range s.Servers {
		size.Servers += max(g.Count, 1)
	}
	return size
}

// String is "2 servers, 1 fault, 0 commands, 1 load".
func (s Size) String() string {
	return fmt.Sprintf("%d servers, %d faults, %d commands, %d loads", s.Servers, s.Faults, s.Commands, s.Load)
}

// Found reports whether one of the invariants that should find the bug did.
func (b Bug) Found(p Prey) bool {
	for _, want := range b.Finds {
		for _, got := range p.Violated {
			if got == want {
				return true
			}
		}
	}
	return false
}

// Bounds are how much may be spent on one bug.
type Bounds struct {
	// Seeds is how many are tried.
	Seeds int
	// Limit is how long the hunt may take, Shrink how long of it the scenario that was found may be made smaller.
	Limit, Shrink time.Duration
}

// Hunt builds the hunt with the bug planted, in dir, and runs it within the bounds. root is the module's folder.
func (b Bug) Hunt(ctx context.Context, root, dir string, most Bounds) (Prey, error) {
	overlay, err := b.Overlay(root, dir)
	if err != nil {
		return Prey{}, err
	}
	program := filepath.Join(dir, "hunt-"+b.Name)
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, "./test/chaos/planted/hunt")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return Prey{}, fmt.Errorf("bug %s does not compile: %w\n%s", b.Name, err, out)
	}
	defer func() { _ = os.Remove(program) }()
	ctx, cancel := context.WithTimeout(ctx, most.Limit)
	defer cancel()
	run := exec.CommandContext(ctx, program, "-seeds", strconv.Itoa(most.Seeds), "-want", strings.Join(b.Finds, ","),
		"-shrink", most.Shrink.String())
	run.WaitDelay = 5 * time.Second
	var complaint strings.Builder
	run.Stderr = &complaint
	out, err := run.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Prey{Crash: fmt.Sprintf("it had not ended after %v", most.Limit)}, nil
	case errors.As(err, &exit):
		return Prey{Crash: first(complaint.String(), 600)}, nil
	case err != nil:
		return Prey{}, err
	}
	var p Prey
	if err := json.Unmarshal(out, &p); err != nil {
		return Prey{}, fmt.Errorf("bug %s: the hunt said %.200q: %w", b.Name, out, err)
	}
	return p, nil
}

func first(text string, n int) string { return text[:min(len(text), n)] }
