package planted

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// Programs are the programs that look for bugs: random days, and the unit tests of each package. Each is built once with all
// bugs. A Programs is for one goroutine; its maps have no lock.
type Programs struct {
	root, dir, overlay string
	// failingTests holds, by package, the unit tests that fail without a bug; they are skipped later. A package is there once
	// its tests are built.
	failingTests map[string][]string
	// cleanDays holds the seeds of the days that were run without a bug, and alarms those of them that violate an invariant
	// all the same.
	cleanDays map[uint64]bool
	alarms    []string
}

// Build builds the search with the bugs in dir, which the caller removes at the end. The unit tests are built on demand,
// because a run with ONLY needs few of them. The go command's cache keeps the unchanged packages.
func (s *Source) Build(ctx context.Context, planned []bugs.Bug, dir string) (*Programs, error) {
	overlay, err := s.Overlay(planned, dir)
	if err != nil {
		return nil, err
	}
	p := &Programs{root: s.root, dir: dir, overlay: overlay, failingTests: map[string][]string{}, cleanDays: map[uint64]bool{}}
	return p, p.runGo(ctx, "build", "-overlay", overlay, "-o", p.searchPath(), "./test/chaos/planted/search")
}

// searchPath returns the path of the search program.
func (p *Programs) searchPath() string { return filepath.Join(p.dir, "search") }

// testPath returns the path of a package's test program.
func (p *Programs) testPath(folder string) string {
	return filepath.Join(p.dir, strings.ReplaceAll(folder, "/", "-")+".test")
}

// runGo runs the go command in the module. The error of a failed build contains the compiler's output.
func (p *Programs) runGo(ctx context.Context, args ...string) error {
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = p.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
