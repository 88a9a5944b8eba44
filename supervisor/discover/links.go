package discover

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ErrLeavesProject is the error of a file of a project that leads out of it: a repository can carry a symbolic link, and neither
// what is read through it nor what is written is the repository's.
var ErrLeavesProject = errors.New("it is a link that leads out of the project")

// maxLinks bounds the symbolic links of one path, as systems do.
const maxLinks = 40

// resolveLinks is path without symbolic links, also where it leads to nothing yet: what does not exist is added to what does.
func resolveLinks(path string) (string, error) {
	for range maxLinks {
		at, rest := path, ""
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
			to = dir + string(filepath.Separator) + to // not cleaned: ".." after a link means the link's target
		}
		if path = to; rest != "" {
			path += string(filepath.Separator) + rest
		}
	}
	return "", &fs.PathError{Op: "follow", Path: path, Err: errors.New("its symbolic links have no end")}
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// isBelow reports whether path is dir or lies in it. Both are absolute and clean.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolveInProject is the true path of a file of a project. The error wraps ErrLeavesProject if it lies elsewhere, and names the place.
func resolveInProject(project, path string) (string, error) {
	real, err := resolveLinks(path)
	if err != nil {
		return "", err
	}
	if root, err := filepath.EvalSymlinks(project); err == nil {
		project = root
	}
	if !isBelow(real, project) {
		return real, &fs.PathError{Op: "follow", Path: path, Err: leavesProjectError{real}}
	}
	return real, nil
}

// leavesProjectError says where a link leads to.
type leavesProjectError struct{ target string }

func (e leavesProjectError) Error() string {
	return ErrLeavesProject.Error() + ", to " + messages.Line(messages.Escaped(e.target), 0)
}

func (e leavesProjectError) Unwrap() error { return ErrLeavesProject }

// readInProject reads a file of a project that may be missing. It is read below the project's directory, wherever a link leads by then.
func readInProject(project, path string) (data []byte, clause string, ok bool) {
	real, err := resolveInProject(project, path)
	switch {
	case errors.Is(err, ErrLeavesProject):
		return nil, textWithoutPath(err) + "; such files are not read: put the file itself there, or name it with --config", true
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
	defer root.Close() // nothing is written through it
	rel, err := filepath.Rel(project, real)
	if err != nil {
		return nil, fileErrorText(err), true
	}
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

// textWithoutPath is the error of the file system without the path, which stands beside it.
func textWithoutPath(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// EditIn is Edit for a file of a project: one that leads out of the project is left alone, and the error, which wraps
// ErrLeavesProject, says where it leads to.
func EditIn(project, path string, change func(old []byte) ([]byte, error)) error {
	real, err := resolveInProject(project, path)
	if err != nil {
		return err
	}
	return editFile(real, change, func() error {
		if now, err := resolveInProject(project, path); err != nil || now != real {
			return errChanged
		}
		return nil
	})
}

// ProjectOf is the directory of the project that a project or local file of ours belongs to, by its path.
func ProjectOf(path string) (string, error) {
	dir := filepath.Dir(path)
	if filepath.Base(dir) == ".mcpvisor" {
		dir = filepath.Dir(dir)
	}
	return ProjectDir(dir)
}
