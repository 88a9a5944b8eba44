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
	// flaws are the unit tests of a package that fail without a bug, by package; a package is there once its tests are built.
	flaws map[string][]string
	// sound is how many days were run without a bug, and alarms those of them that violate something all the same.
	sound  int
	alarms []string
}

// Build builds random days with the bugs, in dir. The unit tests are built when they are asked for. The go command keeps what
// it has built: only what has changed since is built again.
func (s *Source) Build(ctx context.Context, bugs []Bug, dir string) (*Programs, error) {
	overlay, err := s.Overlay(bugs, dir)
	if err != nil {
		return nil, err
	}
	p := &Programs{root: s.root, dir: dir, overlay: overlay, flaws: map[string][]string{}}
	return p, p.run(ctx, "build", "-overlay", overlay, "-o", p.search(), "./test/chaos/planted/search")
}

func (p *Programs) search() string { return filepath.Join(p.dir, "search") }

func (p *Programs) tests(folder string) string {
	return filepath.Join(p.dir, strings.ReplaceAll(folder, "/", "-")+".test")
}

func (p *Programs) run(ctx context.Context, args ...string) error {
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = p.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
