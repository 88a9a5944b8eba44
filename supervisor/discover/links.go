package discover

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// ErrLeavesProject is the cause of the error about a file of a project that leads out of it. A repository can carry a
// symbolic link to any file of the person, and mcpvisor must not read or write that file in the repository's name.
var ErrLeavesProject = errors.New("it is a link that leads out of the project")

// maxLinks bounds the symbolic links of one path; operating systems have the same bound.
const maxLinks = 40

// resolveLinks returns path without symbolic links. Other than filepath.EvalSymlinks it works for a path that does not
// exist yet: the missing part is appended to the resolved one, because an edit may create the file.
func resolveLinks(path string) (string, error) {
	for range maxLinks {
		at, rest := path, ""
		// The inner loop goes up to the nearest part that exists.
		for {
			info, err := os.Lstat(at)
			if isMissing(err) && at != filepath.Dir(at) {
				rest = filepath.Join(filepath.Base(at), rest)
				at = filepath.Dir(at)
				continue
			}
			if err != nil {
				return "", err
			}
			if info.Mode()&fs.ModeSymlink == 0 {
				real, err := filepath.EvalSymlinks(at)
				if err != nil {
					return "", err
				}
				return filepath.Join(real, rest), nil
			}
			break
		}
		to, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(at))
			if err != nil {
				return "", err
			}
			// The path is not cleaned, because ".." after a link is the parent of the link's target.
			to = dir + string(filepath.Separator) + to
		}
		if path = to; rest != "" {
			path += string(filepath.Separator) + rest
		}
	}
	return "", &fs.PathError{Op: "follow", Path: path, Err: errors.New("its symbolic links have no end")}
}

// isMissing reports whether an error says that the path does not exist.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// isBelow reports whether path is dir or lies in it. Both are absolute and clean.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolveInProject returns the path of a file of a project without links. If it lies elsewhere the error wraps
// ErrLeavesProject and names the target.
func resolveInProject(project, path string) (string, error) {
	real, err := resolveLinks(path)
	if err != nil {
		return "", err
	}
	// The project may itself be reached by a link, which leads nowhere else.
	if root, err := filepath.EvalSymlinks(project); err == nil {
		project = root
	}
	if !isBelow(real, project) {
		return real, &fs.PathError{Op: "follow", Path: path, Err: leavesProjectError{real}}
	}
	return real, nil
}

// leavesProjectError adds the target of the link to ErrLeavesProject. The target is escaped, because a stranger chose
// it.
type leavesProjectError struct{ target string }

func (e leavesProjectError) Error() string {
	return ErrLeavesProject.Error() + ", to " + messages.Line(messages.Escaped(e.target), 0)
}

func (e leavesProjectError) Unwrap() error { return ErrLeavesProject }

// readInProject reads a file of a project that may be missing. After the check, the file is opened below an os.Root of
// the project, so that a link which is put there in between cannot lead out. clause says why the file cannot be read;
// ok is false if it is missing.
func readInProject(project, path string) (data []byte, clause string, ok bool) {
	real, err := resolveInProject(project, path)
	switch {
	case errors.Is(err, ErrLeavesProject):
		return nil, files.PlainCause(err).Error() + "; such files are not read: put the file itself there, or name it with --config", true
	case err != nil:
		return nil, fileErrorText(err), true
	}
	if resolved, err := filepath.EvalSymlinks(project); err == nil {
		project = resolved
	}
	root, err := os.OpenRoot(project)
	if isMissing(err) {
		return nil, "", false
	} else if err != nil {
		return nil, fileErrorText(err), true
	}
	defer root.Close()
	rel, err := filepath.Rel(project, real)
	if err != nil {
		return nil, fileErrorText(err), true
	}
	// A pipe or a device in a repository could block the start.
	info, err := root.Stat(rel)
	switch {
	case isMissing(err):
		return nil, "", false
	case err != nil:
		return nil, fileErrorText(err), true
	case info.IsDir():
		return nil, "it is a directory instead of a file", true
	case !info.Mode().IsRegular():
		return nil, "it is no regular file", true
	}
	file, err := root.Open(rel)
	if err != nil {
		return nil, fileErrorText(err), true
	}
	data, clause = readOpen(file)
	return data, clause, true
}

// EditIn does the work of [Edit] for a file of a project. A file that leads out of the project is left alone, and the
// error, which wraps ErrLeavesProject, names the target.
func EditIn(project, path string, change func(old []byte) ([]byte, error)) error {
	real, err := resolveInProject(project, path)
	if err != nil {
		return err
	}
	return editFile(real, change, func() error {
		// Links may have changed since the first look; the edit then begins again.
		if now, err := resolveInProject(project, path); err != nil || now != real {
			return errChanged
		}
		return nil
	})
}

// ProjectOf returns the directory of the project that a project or local file of mcpvisor belongs to, by its path.
func ProjectOf(path string) (string, error) {
	dir := filepath.Dir(path)
	if filepath.Base(dir) == ".mcpvisor" {
		dir = filepath.Dir(dir)
	}
	return ProjectDir(dir)
}
