package control

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// maxSocketPath is the longest path of a socket that every system accepts, in bytes: macOS has room for 104 with the
// final zero, Linux and Windows for 108.
const maxSocketPath = 103

// Location holds the paths of one project's socket, lock and journal.
type Location struct {
	// Socket is the path of the control socket, Lock that of the file whose lock the serving process holds.
	Socket, Lock string
	// Journal is the path of the journal.
	Journal string
	// UserJournal is the path of the journal of the user's servers, which the daemon keeps for all projects.
	UserJournal string
	// Audit is the path of the record of calls, which all projects of the user share.
	Audit string
	// Project is the project directory, absolute, without symbolic links.
	Project string
}

// LocationOf returns the paths for a project. It creates nothing. Two paths that lead to one directory have the same
// location.
//
// The socket stands under $XDG_RUNTIME_DIR/mcpvisor, or without one under /run/user/UID/mcpvisor on Linux, or without
// that directory under the user's cache directory, or, if that path is too long for a socket, in a directory of the
// user's under the system's temporary one. The journal stands
// under $XDG_STATE_HOME/mcpvisor (default ~/.local/state), on macOS under ~/Library/Application Support, on Windows
// under %LocalAppData%.
func LocationOf(project string) (Location, error) {
	abs, err := filepath.Abs(project)
	if err != nil {
		return Location{}, locationError("the project directory has no absolute path", err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil { // a directory that does not exist yet keeps its path
		abs = real
	}
	// The id is a hash of the path, because a path may be too long for a file name: 64 bits are enough for one user's
	// projects.
	sum := sha256.Sum256([]byte(abs))
	id := hex.EncodeToString(sum[:8])
	p := Location{Project: abs}
	var first error
	for _, dir := range runtimeDirs() {
		d, err := dir()
		if err != nil {
			if first == nil { // the first reason explains most
				first = err
			}
			continue
		}
		if socket := filepath.Join(d, id+".sock"); len(socket) <= maxSocketPath {
			p.Socket, p.Lock = socket, filepath.Join(d, id+".lock")
			break
		}
	}
	if p.Socket == "" {
		return Location{}, locationError("there is no directory for the control socket whose path is short enough", first)
	}
	state, err := stateDir()
	if err != nil {
		return Location{}, noStateDirError("there is no directory for the journal", err)
	}
	p.Journal = filepath.Join(state, id+".jsonl")
	p.UserJournal = filepath.Join(state, "user.jsonl")
	// The record has no id in its name: it is shared by all projects.
	p.Audit = filepath.Join(state, "audit.jsonl")
	return p, nil
}

// runtimeDirs returns the candidates for the socket's directory, the best first. The last one exists in every system
// and is short.
func runtimeDirs() []func() (string, error) {
	return []func() (string, error){
		func() (string, error) {
			perUser := ""
			if runtime.GOOS == "linux" {
				perUser = fmt.Sprintf("/run/user/%d", os.Getuid())
			}
			return runtimeDir(os.Getenv("XDG_RUNTIME_DIR"), perUser)
		},
		func() (string, error) {
			dir, err := os.UserCacheDir()
			return filepath.Join(dir, "mcpvisor", "run"), err
		},
		func() (string, error) {
			return filepath.Join(os.TempDir(), fmt.Sprintf("mcpvisor-%d", os.Getuid())), nil
		},
	}
}

// runtimeDir returns the directory for sockets under the value of XDG_RUNTIME_DIR, or, without one, under perUser, where
// systemd makes that directory. Many agents start their servers with a few variables alone, and this is not among them:
// without a look at perUser, the command that an agent starts would not find the daemon that a terminal has started.
func runtimeDir(value, perUser string) (string, error) {
	// The specification of XDG says that a relative path is to be ignored.
	if filepath.IsAbs(value) {
		return filepath.Join(value, "mcpvisor"), nil
	}
	if perUser != "" && checkPrivate(perUser) == nil {
		return filepath.Join(perUser, "mcpvisor"), nil
	}
	return "", errors.New("XDG_RUNTIME_DIR is not set")
}

// stateDir returns the directory for files that outlive a process, by the conventions of the system.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcpvisor"), nil
	}
	switch runtime.GOOS {
	case "windows":
		dir, err := os.UserCacheDir() // %LocalAppData%
		return filepath.Join(dir, "mcpvisor", "state"), err
	case "darwin", "ios":
		dir, err := os.UserConfigDir() // ~/Library/Application Support
		return filepath.Join(dir, "mcpvisor", "state"), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "mcpvisor"), err
}

// makePrivateDir creates the directory if need be, and refuses one that is not the user's alone.
func makePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return locationError("the directory "+messages.Line(dir, 0)+" cannot be made", err)
	}
	return checkPrivate(dir)
}

// checkPrivate refuses a directory in which another user could place a socket. It does not follow a symbolic link,
// which another user could have placed.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	// A symbolic link is no directory here, because of Lstat.
	case !info.IsDir():
		return &messages.Error{Op: "control", Class: messages.ClassDenied,
			Text: messages.Line(dir, 0) + " is no directory", Fix: "remove it"}
	}
	if problem := files.Exposure(info); problem != "" {
		return &messages.Error{Op: "control", Class: messages.ClassDenied,
			Text: "the directory " + messages.Line(dir, 0) + " " + problem,
			Fix:  "make it yours with mode 0700, or remove it"}
	}
	return nil
}

// locationError returns an error of ClassConfig for a file of the location. A path inside of err is left out, because
// the text names it already.
func locationError(text string, err error) error {
	if err != nil {
		err = files.PlainCause(err)
		text += ": " + messages.Line(err.Error(), 200)
	}
	return &messages.Error{Op: "control", Class: messages.ClassConfig, Text: text, Err: err}
}

// noStateDirError returns the error about a file that has no directory, which only a missing variable can cause.
func noStateDirError(text string, err error) error {
	fix := "set HOME, or XDG_STATE_HOME"
	if runtime.GOOS == "windows" {
		fix = "set LocalAppData"
	}
	return &messages.Error{Op: "control", Class: messages.ClassConfig, Text: text + ": " + messages.Line(err.Error(), 200), Fix: fix, Err: err}
}

// PinsPath returns the path of the file with the approved definitions of tools, for all projects of the person; empty
// if there is no directory for it.
func PinsPath() string {
	state, err := stateDir()
	if err != nil {
		return ""
	}
	return filepath.Join(state, "pins.json")
}
