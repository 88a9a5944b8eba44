package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pathVariable names the directories of programs. Every bridge gives it: a server whose program is another one for two agents runs once for
// each program.
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

// ownPath returns the directories that an agent's servers are looked for in first.
func ownPath(given, project string) string { return mergePath("", given, project) }

// searchPath returns directories of an agent, and behind them those of all agents so far: one that was not started from a shell often lacks those
// of version managers.
func searchPath(own string) string { return mergePath(own, os.Getenv(pathVariable), "") }

// programsOf returns the function that finds the commands of an agent with these directories: the file behind all links, so that two names of one
// program are the same; "" if it is not there.
func programsOf(own string) func(command string) string {
	path := searchPath(own)
	return func(command string) string {
		for _, dir := range filepath.SplitList(path) {
			path, err := exec.LookPath(filepath.Join(dir, command))
			if err != nil {
				continue
			}
			if file, err := filepath.EvalSymlinks(path); err == nil {
				return file
			}
			return path
		}
		return ""
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
