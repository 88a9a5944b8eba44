package planted

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs are what looks for bugs, built with all of them: random days, and the unit tests of each package.
type Programs struct {
	root, dir, overlay string
	// failingTests are the unit tests of a package that fail without a bug, by package; a package is there once its tests are built.
	failingTests map[string][]string
	// cleanDays is how many days were run without a bug, and alarms those of them that violate something all the same.
	cleanDays int
	alarms    []string
}

// Build builds random days with the bugs, in dir. The unit tests are built when they are asked for. The go command keeps what
// it has built: only what has changed since is built again.
func (s *Source) Build(ctx context.Context, bugs []Bug, dir string) (*Programs, error) {
	overlay, err := s.Overlay(bugs, dir)
	if err != nil {
		return nil, err
	}
	p := &Programs{root: s.root, dir: dir, overlay: overlay, failingTests: map[string][]string{}}
	return p, p.runGo(ctx, "build", "-overlay", overlay, "-o", p.searchPath(), "./test/chaos/planted/search")
}

func (p *Programs) searchPath() string { return filepath.Join(p.dir, "search") }

func (p *Programs) testPath(folder string) string {
	return filepath.Join(p.dir, strings.ReplaceAll(folder, "/", "-")+".test")
}

func (p *Programs) runGo(ctx context.Context, args ...string) error {
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = p.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
