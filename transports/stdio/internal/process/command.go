package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// resolveCommand finds the program and the working directory of spec, and refuses what cannot work before anything is started.
//
// A command without a separator is looked up in the PATH of the child's environment, because its author wrote it for that, and in
// this process's if the child has none. A relative command with a separator starts at the working directory. Relative entries of
// PATH are not searched: a server must not depend on where this process was started.
func resolveCommand(spec *Spec) (path, dir string, _ *transports.Error) {
	if spec.Command == "" {
		return "", "", &transports.Error{Class: messages.ClassConfig, Text: "no command is given", Fix: `set "command"`}
	}
	// A zero byte would otherwise come back as "invalid argument" of a system call, with no word about the argument.
	if err := checkText(spec); err != nil {
		return "", "", err
	}
	if spec.Dir != "" {
		abs, err := filepath.Abs(spec.Dir)
		if err != nil {
			return "", "", StartError(spec.Command, err)
		}
		// Without this look a missing directory would be reported as a missing program: the system gives one error for both.
		dir = abs
		switch info, err := os.Stat(dir); {
		case errors.Is(err, fs.ErrNotExist):
			return "", "", dirError(dir, "does not exist", err)
		case err != nil:
			return "", "", dirError(dir, "cannot be used: "+CauseText(err), err)
		case !info.IsDir():
			return "", "", dirError(dir, "is not a directory", syscall.ENOTDIR)
		}
	}
	// A name without a separator, and only that, is searched in PATH.
	if filepath.Base(spec.Command) == spec.Command {
		path, failed := searchPath(spec)
		return path, dir, failed
	}
	path = spec.Command
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	// LookPath tells whether the file can be executed, and finds the ending of a program on Windows.
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = exec.LookPath(path)
	}
	if err == nil {
		return path, dir, nil
	}
	e := lookPathError(spec.Command, err)
	// The person probably meant this program's directory; say so.
	if _, here := os.Stat(spec.Command); here == nil && isNotFound(err) {
		e.Fix = "it exists in this program's own directory, but a relative command starts at " + quotePrintable(dir)
	}
	return "", "", e
}

// searchPath looks the command up in the directories of PATH. A file that may not be executed is remembered as the error, but
// does not end the search, as in a shell.
func searchPath(spec *Spec) (string, *transports.Error) {
	list, ok := lookupEnv(spec.Env, "PATH")
	if !ok {
		list = os.Getenv("PATH")
	}
	searched := 0
	var denied error
	for _, d := range filepath.SplitList(list) {
		// An empty entry of PATH means the working directory to a shell, and is skipped here as well.
		if !filepath.IsAbs(d) {
			continue
		}
		searched++
		path, err := exec.LookPath(filepath.Join(d, spec.Command))
		if err == nil {
			return path, nil
		}
		// The first file that may not be executed explains more than "not found".
		if denied == nil && errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	if denied != nil {
		return "", lookPathError(spec.Command, denied)
	}
	// The number of directories tells a person whether PATH was what they expect.
	e := missingError(spec.Command)
	e.Text = fmt.Sprintf("the command %s was not found: PATH was searched (%d directories)", shownCommand(spec.Command), searched)
	return "", e
}

// checkText refuses text that no system call can carry: zero bytes, and variables without a name. The value of a variable stays
// out of the error.
func checkText(spec *Spec) *transports.Error {
	// Of several faults any one is reported: a person mends one after the other.
	for what, list := range map[string][]string{
		"the command": {spec.Command}, "an argument": spec.Args, "the working directory": {spec.Dir},
	} {
		for _, s := range list {
			if strings.ContainsRune(s, 0) {
				return &transports.Error{Class: messages.ClassConfig, Text: what + " holds a zero byte"}
			}
		}
	}
	// The error names the variable and never its value, which may be a token.
	for _, kv := range spec.Env {
		name, value, ok := strings.Cut(kv, "=")
		if runtime.GOOS == "windows" && strings.HasPrefix(kv, "=") {
			continue // the current directories of drives
		}
		if !ok || name == "" || strings.ContainsRune(name, 0) {
			return &transports.Error{Class: messages.ClassConfig, Text: "an environment variable has no valid name"}
		}
		if strings.ContainsRune(value, 0) {
			return &transports.Error{
				Class: messages.ClassConfig,
				Text:  "the value of the environment variable " + quotePrintable(name) + " holds a zero byte",
			}
		}
	}
	return nil
}

// lookPathError translates an error of exec.LookPath for one path.
func lookPathError(command string, err error) *transports.Error {
	switch {
	case isNotFound(err):
		return missingError(command)
	case errors.Is(err, syscall.EISDIR):
		return &transports.Error{
			Class: messages.ClassConfig, Text: "the command " + shownCommand(command) + " is a directory", Err: systemCause(err),
		}
	case errors.Is(err, fs.ErrPermission):
		// A script often comes without the right bit, from a download or an archive.
		return &transports.Error{
			Class: messages.ClassConfig, Text: "the command " + shownCommand(command) + " is not executable",
			Fix: "allow its execution (chmod +x), or start it with its interpreter", Err: systemCause(err),
		}
	}
	return StartError(command, err)
}

// isNotFound reports whether err says that there is no such file.
func isNotFound(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound)
}

// missingError is the error for a command that does not exist. A command with spaces was probably meant as a whole command line.
func missingError(command string) *transports.Error {
	e := &transports.Error{
		Class: messages.ClassMissing, Text: "the command " + shownCommand(command) + " does not exist",
		Fix: "install it, or give its full path", Err: exec.ErrNotFound,
	}
	if len(strings.Fields(command)) > 1 {
		e.Fix = `put its arguments into "args", one by one`
	}
	return e
}

// StartError translates the system's error when a process is started. A shortage of this machine has its own class, because it
// passes by itself, and the server is not at fault.
func StartError(command string, err error) *transports.Error {
	e := &transports.Error{Class: messages.ClassExited, Err: systemCause(err)}
	switch {
	// The limits of this process and of the machine: the server is not at fault.
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Class, e.Text = messages.ClassExhausted, "no file descriptors are left to start a process"
		e.Fix = "raise the limit (ulimit -n)"
	case isResourceShortage(err):
		e.Class, e.Text = messages.ClassExhausted, "the system cannot start another process: "+CauseText(err)
	case isTextBusy(err):
		e.Class, e.Text = messages.ClassExhausted, "the program "+shownCommand(command)+" is being written by another process"
	case isNotFound(err):
		// resolveCommand has found the program a moment ago, so that the interpreter is the more likely reason.
		e.Class = messages.ClassMissing
		e.Text = "the program " + shownCommand(command) + ", or the interpreter that its first line names, does not exist"
		e.Fix = "install it"
	// No retry can help, so that the class is that of a configuration.
	case isUnusableProgram(err):
		e.Class = messages.ClassConfig
		e.Text = "the program " + shownCommand(command) + " cannot be executed: " + CauseText(err)
		e.Fix = "is it made for this system, or a script without a first line that names its interpreter?"
	case errors.Is(err, fs.ErrPermission):
		e.Class, e.Text = messages.ClassConfig, "the program "+shownCommand(command)+" may not be executed"
	case errors.Is(err, syscall.E2BIG):
		e.Class, e.Text = messages.ClassConfig, "the arguments and the environment are too long for the system"
	default:
		e.Text = "the program " + shownCommand(command) + " cannot be started: " + CauseText(err)
	}
	return e
}

// dirError is the error for a working directory that cannot be used.
func dirError(dir, what string, err error) *transports.Error {
	return &transports.Error{Class: messages.ClassConfig, Text: "the working directory " + quotePrintable(dir) + " " + what,
		Fix: `correct "cwd"`, Err: systemCause(err)}
}

// systemCause returns the bare error of the system: an error that wraps it may repeat a whole command line, and a token in it.
func systemCause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	for _, known := range []error{fs.ErrPermission, fs.ErrNotExist, exec.ErrNotFound} {
		if errors.Is(err, known) {
			return known
		}
	}
	// Any other error may hold words of the configuration, and is left out.
	return errors.New("not started")
}

// CauseText returns the system's error as a part of a sentence.
func CauseText(err error) string { return strings.TrimRight(systemCause(err).Error(), ".") }

// shownCommand returns a command as an error may show it: up to the first space, because its author may have put arguments behind
// it, and a token among them.
func shownCommand(command string) string {
	if words := strings.Fields(command); len(words) > 1 {
		return quotePrintable(words[0] + " …")
	}
	return quotePrintable(command)
}

// quotePrintable quotes s for a person: control characters of s must not reach a terminal.
func quotePrintable(s string) string { return strconv.Quote(messages.Printable(s)) }

// lookupEnv finds a variable in a list. The last one counts, because exec.Cmd drops the earlier ones, too.
func lookupEnv(env []string, name string) (string, bool) {
	for _, kv := range slices.Backward(env) {
		n, value, ok := strings.Cut(kv, "=")
		if ok && (n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name)) {
			return value, true
		}
	}
	return "", false
}
