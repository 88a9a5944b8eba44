package discover

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// Options say where to look. The zero value looks where the command does when it gets no flag.
type Options struct {
	// Dir is the directory to start from; the working directory if empty.
	Dir string
	// MayBeGone accepts a Dir that is not there, which then has no files; those of a repository around it count. Without it
	// the person who has just named the directory gets an error; an agent may outlive the one in which it works.
	MayBeGone bool
	// Files holds the paths named with --config; "-" is standard input.
	Files []string
	// Servers holds the values of --mcp-server.
	Servers []string
	// Only leaves out all files that were merely found and the user's file: Files, Servers and the managed file count.
	Only bool
	// UserOnly leaves out all files of a project, and the project itself: variables such as ${workspaceFolder} have no value.
	UserOnly bool
	// Omit, if not nil, removes servers from the specs, because another manager has them: see config.OmitShared. files are those that
	// were merged, under ctx.
	Omit func(files []config.Parsed, specs map[string]messages.Spec, ctx config.Context)
	// Paths holds the places outside of the project; DefaultPaths if zero.
	Paths Paths
	// Lookup returns environment variables; os.LookupEnv if nil.
	Lookup func(string) (string, bool)
	// Stdin is read for the file "-"; os.Stdin if nil.
	Stdin io.Reader
	// AllowedTransports, if not nil, lists the only kinds that may be configured.
	AllowedTransports []messages.TransportKind
	// ApproveAll starts servers that were never approved, and does not remember that: for scripts that know what they
	// run.
	ApproveAll bool
}

// withDefaults returns o with every default in place, and Dir absolute without symbolic links. The error says that Dir
// is no directory.
func (o Options) withDefaults() (Options, error) {
	// An empty Dir gives the working directory.
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, &messages.Error{Op: "configure", Class: messages.ClassConfig, Text: "the working directory is not known",
			Fix: "change to another directory", Err: err}
	}
	// A wrong directory is a mistake of the caller, while a missing file in it is normal.
	if info, err := os.Stat(dir); o.MayBeGone && isMissing(err) {
		o.Dir = dir
	} else if err != nil {
		return o, &messages.Error{Op: "configure", Class: messages.ClassInvalid, Text: dir + ": " + fileErrorText(err)}
	} else if !info.IsDir() {
		return o, &messages.Error{Op: "configure", Class: messages.ClassInvalid, Text: dir + ": it is no directory"}
	}
	if o.Dir = dir; o.Paths == (Paths{}) {
		o.Paths = DefaultPaths()
	}
	// The parents of a link and of its target differ, and the repository is around the target.
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		o.Dir = target
	}
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	return o, nil
}

// Find reads every configuration file that counts for o, lowest precedence first. A file that exists or was named, and
// cannot be read, is in the result with Err set. The error concerns o.Dir alone.
func Find(o Options) ([]config.File, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	files, _ := o.findFiles()
	return files, nil
}

// findFiles reads the files in order of precedence. paths holds every place where it looked, whether a file was there
// or not, for a watcher.
func (o Options) findFiles() (files []config.File, paths []string) {
	var named []config.File
	var infos []fs.FileInfo
	for _, path := range o.Files {
		f, info := o.readNamed(path)
		named = append(named, f)
		if path != "-" && path != "" {
			paths = append(paths, f.Path)
		}
		if info != nil {
			infos = append(infos, info)
		}
	}
	// Named files are read first: their identities decide which found files are skipped.
	project := o.projectDir()
	add := func(scope messages.Scope, dir, path string) {
		if path == "" {
			return
		}
		paths = append(paths, path)
		// A found file that is also named counts once, as named. Otherwise its entries would shadow themselves.
		if info, err := os.Stat(path); err == nil && scope != messages.ScopeManaged &&
			slices.ContainsFunc(infos, func(i fs.FileInfo) bool { return os.SameFile(i, info) }) {
			return
		}
		var ok bool
		f := config.File{Path: path}
		// Each scope has its own rule about who may have written the file.
		switch scope {
		case messages.ScopeManaged:
			f, ok = readOptional(path)
		case messages.ScopeUser:
			f, ok = readOwnFile(path)
		default:
			f.Data, f.Err, ok = readInProject(project, path)
		}
		if ok {
			f.Scope, f.Dir = scope, dir
			files = append(files, f)
		}
	}
	// The order of these calls is the order of precedence, which Merge keeps within a scope.
	add(messages.ScopeManaged, "", o.Paths.Managed)
	chain := o.projectDirs()
	if o.Only || o.UserOnly {
		chain = nil
	}
	if !o.Only {
		add(messages.ScopeUser, "", o.Paths.User)
	}
	for _, dir := range slices.Backward(chain) {
		add(messages.ScopeProject, dir, filepath.Join(dir, ".mcp.json"))
		add(messages.ScopeProject, dir, filepath.Join(dir, ".mcpvisor", "mcp.json"))
	}
	for _, dir := range slices.Backward(chain) {
		add(messages.ScopeLocal, dir, filepath.Join(dir, ".mcpvisor", "mcp.local.json"))
	}
	// A changed store changes which servers may start.
	if o.Paths.Approvals != "" {
		paths = append(paths, o.Paths.Approvals)
	}
	return append(files, named...), paths
}

// projectDirs returns the directory and its parents that belong to the same project, nearest first. Without a .git
// above it is the directory alone.
func (o Options) projectDirs() []string {
	home, _ := os.Stat(o.Paths.Home)
	var chain []string
	for dir := o.Dir; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		// The home directory belongs to no project, unless the search began there.
		if len(chain) > 0 && (err != nil || home != nil && os.SameFile(info, home)) {
			break
		}
		chain = append(chain, dir)
		// .git may be a file, as in a worktree or a submodule.
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return chain
		}
		if dir == filepath.Dir(dir) || home != nil && err == nil && os.SameFile(info, home) {
			break
		}
	}
	// Without a repository, a parent may belong to other people.
	return chain[:1]
}

// projectDir returns the last directory of projectDirs: the root of the repository, or the directory where the search
// began.
func (o Options) projectDir() string {
	chain := o.projectDirs()
	return chain[len(chain)-1]
}

// FileAbove returns the nearest .mcp.json in a directory above dir, for a hint to a person who expects that it counts.
// It does not count, because no repository holds both. The result is empty if there is none below the person's home, or
// at all.
func FileAbove(dir string) string {
	home := DefaultPaths().Home
	for dir != home && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		if path := filepath.Join(dir, ".mcp.json"); dir != home {
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	return ""
}

// readOptional reads a file that may be missing; ok is false if it is.
func readOptional(path string) (f config.File, ok bool) {
	f.Path = path
	info, err := os.Stat(path)
	switch {
	// A file where a directory is expected means that the path is missing, too.
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return f, false
	case err != nil:
		f.Err = fileErrorText(err)
	case info.IsDir():
		f.Err = "it is a directory instead of a file"
	case !info.Mode().IsRegular():
		f.Err = "it is no regular file"
	default:
		f.Data, f.Err = readAll(path)
	}
	return f, true
}

// displayName returns the name, in messages, of a file that was named with --config.
func displayName(path string) string {
	switch path {
	case "-":
		return "<stdin>"
	case "":
		return "--config"
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// readNamed reads a file that must exist and may be a pipe. The info is nil for standard input and for files that
// cannot be read.
func (o Options) readNamed(path string) (config.File, fs.FileInfo) {
	f := config.File{Path: displayName(path), Scope: messages.ScopeDynamic}
	if path == "-" {
		data, err := io.ReadAll(io.LimitReader(o.Stdin, config.MaxFile+1))
		if f.Data = data; err != nil {
			f.Err = fileErrorText(err)
		}
		return f, nil
	}
	info, err := os.Stat(path)
	switch {
	// An empty name usually comes from an unset variable in a script.
	case path == "":
		f.Err = "the name of the file is empty; name a file"
	case errors.Is(err, fs.ErrNotExist):
		f.Err, f.Missing = "there is no such file; check the name after --config", true
	case err != nil:
		f.Err = fileErrorText(err)
	case info.IsDir():
		f.Err = "it is a directory; name the file in it"
	// Everything else is read, because the person named it: a pipe, a device.
	default:
		f.Data, f.Err = readAll(path)
		return f, info
	}
	return f, nil
}

// readAll reads a file. It reads one byte more than a configuration may have, so that Parse can report one that is too
// long.
func readAll(path string) ([]byte, string) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fileErrorText(err)
	}
	return readOpen(file)
}

// readOpen reads an open file like readAll, and closes it.
func readOpen(file *os.File) ([]byte, string) {
	// A failed close loses nothing, because the file was only read.
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, config.MaxFile+1))
	if err != nil {
		return nil, fileErrorText(err)
	}
	return data, ""
}

// fileErrorText translates an error of the file system to a clause without the path, which stands beside it.
func fileErrorText(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file or directory"
	case errors.Is(err, fs.ErrPermission):
		return "it may not be read; check its permissions"
	}
	return "it cannot be read: " + files.PlainCause(err).Error()
}

// ProjectDir returns the directory of the project that dir belongs to: the one that holds .git, or dir itself. The
// error says that dir is no directory.
func ProjectDir(dir string) (string, error) {
	o, err := Options{Dir: dir}.withDefaults()
	if err != nil {
		return "", err
	}
	return o.projectDir(), nil
}

// variablesIn returns config.Context.ReadFile for a project. A file of variables below the project must not lead out of
// it by links; one elsewhere is the choice of the entry's author, whom the approval shows.
func variablesIn(project string) func(path string) ([]byte, string) {
	return func(path string) ([]byte, string) {
		if isBelow(filepath.Clean(path), project) {
			// Other errors are left to readVariables, which meets them again.
			if _, err := resolveInProject(project, path); errors.Is(err, ErrLeavesProject) {
				return nil, files.PlainCause(err).Error() + "; name the file itself"
			}
		}
		return readVariables(path)
	}
}

// readVariables reads a file of variables, or says as a clause why it cannot be read.
func readVariables(path string) ([]byte, string) {
	f, ok := readOptional(path)
	switch {
	case !ok:
		return nil, "there is no such file"
	case f.Err == "" && len(f.Data) > config.MaxEnvFile:
		return nil, "it is larger than 1 MiB"
	}
	return f.Data, f.Err
}
