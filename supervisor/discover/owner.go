package discover

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// readOwnFile reads the person's own file, which may be missing. It may be a symbolic link: people keep such files elsewhere. A file
// that another user could have written is not believed.
func readOwnFile(path string) (config.File, bool) {
	if problem := writtenByOthers(path); problem != "" {
		return config.File{Path: path, Err: problem + "; it is not believed: make it yours (chown, chmod go-w), or name it with --config"}, true
	}
	return readOptional(path)
}

// SharedWith says why another user could change the file of an approval, or what lies in its project; empty if none could. A
// changed entry asks again, and a changed file that it names is said. What those load in turn is neither.
func SharedWith(b config.Binding) string {
	if problem := writtenByOthers(b.Path); problem != "" {
		return "the file: " + problem
	}
	if b.Project == "" {
		return ""
	}
	if problem := writtenByOthers(b.Project); problem != "" {
		return "the project: " + problem
	}
	return ""
}

// writtenByOthers says why a user other than the person, or the administrator, could have written a file: by its owner, by its
// permissions, or by those of its folder, of the link and of what it leads to. It is empty if none could, and for a file that is
// missing.
func writtenByOthers(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return fileErrorText(err)
	}
	for _, at := range []struct{ path, what string }{
		{real, "it"}, {filepath.Dir(real), "its folder"}, {filepath.Dir(path), "its folder"},
	} {
		info, err := os.Stat(at.path)
		if errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		if err != nil {
			return fileErrorText(err)
		}
		if reason := openToOthers(info); reason != "" {
			return at.what + " " + reason
		}
	}
	return ""
}
