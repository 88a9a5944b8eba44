package discover

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// readOwnFile reads the person's own file, which may be missing and may be a symbolic link, because people keep such
// files in a repository of their own. A file that another user could have written is refused: its entries start without
// an approval.
func readOwnFile(path string) (config.File, bool) {
	if problem := WrittenByOthers(path); problem != "" {
		return config.File{Path: path, Err: problem + "; it is not believed: make it yours (chown, chmod go-w), or name it with --config"}, true
	}
	return readOptional(path)
}

// SharedWith says why another user could change the file of an approval, or the content of its project; empty if none
// could. The approval screen warns with it: a changed entry and a changed file that it names are noticed, but not what
// those files load in turn.
func SharedWith(b config.Binding) string {
	if problem := WrittenByOthers(b.Path); problem != "" {
		return "the file: " + problem
	}
	if b.Project == "" {
		return ""
	}
	if problem := WrittenByOthers(b.Project); problem != "" {
		return "the project: " + problem
	}
	return ""
}

// WrittenByOthers says why a user other than the person or the administrator could have written a file: by its owner,
// its permissions, those of its folder, or those of the folder of the link that leads to it. It is empty if none could,
// and for a missing file.
func WrittenByOthers(path string) string {
	// The permissions of the target decide, and those of both folders.
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return fileErrorText(err)
	}
	// Who may write a folder may replace the files in it.
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
