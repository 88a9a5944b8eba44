package plan

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
)

// steered refuses a variable that decides what the program does before it begins, unless all of its value is the
// person's: with it a publisher runs code in a program that the person has, or has packages come from elsewhere. dir, if
// not empty, is the directory of a bundle: its own files are the publisher's code anyway, so that lists of paths inside
// of it are harmless (PYTHONPATH).
func (c command) steered(dir, separator string) error {
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		v := c.env[name]
		why, steers := steer.Reason(name)
		if !steers || v.typed() || dir != "" && within(v.String(), dir, separator) {
			continue
		}
		return refuse(ErrUnusable, "its publisher sets "+short(name)+" to "+short(v.shown())+", which changes "+why,
			"if you want that, give it yourself: --env "+short(name)+"=…")
	}
	return nil
}

// within reports whether all paths of a list lie in the directory.
func within(list, dir, separator string) bool {
	dir = filepath.ToSlash(dir)
	for _, p := range strings.Split(list, separator) {
		p = path.Clean(filepath.ToSlash(p))
		if p != dir && !strings.HasPrefix(p, dir+"/") {
			return false
		}
	}
	return true
}
