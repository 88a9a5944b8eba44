package plan

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
)

// checkSteering refuses a variable that decides what the program does before it begins, unless the whole value is the
// person's: with it, a publisher could run code in a program of the person, or make packages come from elsewhere. dir,
// if not empty, is the directory of a bundle. Its files are the publisher's code anyway, so that lists of paths inside
// it are harmless (PYTHONPATH).
func (c command) checkSteering(dir, separator string) error {
	// Sorted names make the reported variable the same in every run.
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		v := c.env[name]
		reason, isSteering := steer.Reason(name)
		// A value that mixes both origins counts as the publisher's.
		if !isSteering || v.isFromPerson() || dir != "" && isWithin(v.String(), dir, separator) {
			continue
		}
		return planError(ErrUnusable, "its publisher sets "+shortText(name)+" to "+shortText(v.redactedText())+", which changes "+reason,
			"if you want that, give it yourself: --env "+shortText(name)+"=…")
	}
	return nil
}

// isWithin reports whether all paths of a list lie in the directory.
func isWithin(list, dir, separator string) bool {
	dir = filepath.ToSlash(dir)
	for _, p := range strings.Split(list, separator) {
		// A path with ".." in it may leave the directory.
		p = path.Clean(filepath.ToSlash(p))
		if p != dir && !strings.HasPrefix(p, dir+"/") {
			return false
		}
	}
	return true
}
