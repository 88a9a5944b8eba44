package reload

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxLinks bounds the symbolic links that are followed on the way to one file, as systems do.
	maxLinks = 40
	// maxFolders bounds what is watched.
	maxFolders = 128
)

// watchTargets lists what must be watched to notice any change of some files.
type watchTargets struct {
	// folders exist and are no symbolic links. names are the entries in them that matter, by the paths that events have.
	folders, names map[string]bool
}

// targetsOf returns the targets of some files. If a file, or a folder on the way to it, does not exist, the nearest folder that
// does is watched for it.
func targetsOf(places []string) watchTargets {
	a := watchTargets{map[string]bool{}, map[string]bool{}}
	for _, path := range places {
		a.followPath(filepath.Clean(path), maxLinks)
	}
	return a
}

// followPath adds the targets of one path. At a symbolic link it adds the link itself, which may be changed, and continues with
// the path behind it; links bounds how often.
func (a watchTargets) followPath(path string, links int) {
	folder := filepath.VolumeName(path) + string(filepath.Separator)
	rest := strings.Split(strings.TrimPrefix(path, folder), string(filepath.Separator))
	for i, name := range rest {
		entry := filepath.Join(folder, name)
		info, err := os.Lstat(entry)
		switch {
		case err != nil || i == len(rest)-1 && info.Mode()&fs.ModeSymlink == 0:
			a.addEntry(folder, entry)
			return
		case info.Mode()&fs.ModeSymlink == 0:
			folder = entry
			continue
		}
		a.addEntry(folder, entry)
		target, err := os.Readlink(entry)
		if err != nil || links == 0 {
			return
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(folder, target)
		}
		a.followPath(filepath.Join(append([]string{target}, rest[i+1:]...)...), links-1)
		return
	}
}

// addEntry adds an entry and its folder, unless there are too many folders: those are only read every poll.
func (a watchTargets) addEntry(folder, entry string) {
	if a.folders[folder] || len(a.folders) < maxFolders {
		a.folders[folder], a.names[entry] = true, true
	}
}

// covers reports whether an event at a path may concern one of the files, or the end of a watched folder.
func (a watchTargets) covers(path string) bool { return a.names[path] || a.folders[path] }
