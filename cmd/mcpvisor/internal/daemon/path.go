package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pathVariable names the directories of programs. Every bridge gives it, because an agent that was not started from a shell often
// lacks the directories of version managers, and it may be the first.
const pathVariable = "PATH"

// extendPath adds the directories of an agent to those in which this process and the servers that it starts look for programs.
func (d *daemon) extendPath(given, project string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	have := os.Getenv(pathVariable)
	if merged := mergePath(have, given, project); merged != have {
		_ = os.Setenv(pathVariable, merged) // a name without = and a value without NUL cannot fail
	}
}

// maxPath bounds the directories: agents must not make the list grow without end.
const maxPath = 128

// mergePath returns the directories of a list, and behind them those of another that it lacks, so that what was found before stays
// found. Directories that are not absolute, or lie in the project, are left out: servers of other projects would look there, too.
func mergePath(have, more, project string) string {
	list := filepath.SplitList(have)
	for _, dir := range filepath.SplitList(more) {
		dir = filepath.Clean(dir)
		rel, err := filepath.Rel(project, dir)
		inside := err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
		if !filepath.IsAbs(dir) || strings.Contains(dir, "\x00") || project != "" && inside || slices.Contains(list, dir) || len(list) >= maxPath {
			continue
		}
		list = append(list, dir)
	}
	return strings.Join(list, string(filepath.ListSeparator))
}
