package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/control/internal/fence"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// DaemonLocation holds the paths of the one daemon that a user has. What is said on its socket is not this package's.
type DaemonLocation struct {
	// Socket is the path of the socket to which bridges connect, Lock that of the file whose lock the daemon holds, and Starting
	// that of the file whose lock a process holds while it starts a daemon.
	Socket, Lock, Starting string
	// Log is the file to which the daemon writes its errors: it has no terminal.
	Log string
}

// DaemonLocationOf returns the paths of this user's daemon. It creates nothing. The directories are those of LocationOf.
func DaemonLocationOf() (DaemonLocation, error) {
	state, err := stateDir()
	if err != nil {
		return DaemonLocation{}, noStateDirError("there is no directory for the log of the daemon", err)
	}
	for _, dir := range runtimeDirs() {
		d, err := dir()
		if socket := filepath.Join(d, "daemon.sock"); err == nil && len(socket) <= maxSocketPath {
			return DaemonLocation{Socket: socket, Lock: filepath.Join(d, "daemon.lock"), Starting: filepath.Join(d, "starting.lock"),
				Log: filepath.Join(state, "daemon.log")}, nil
		}
	}
	return DaemonLocation{}, locationError("there is no directory for the socket of the daemon whose path is short enough", nil)
}

// DirectoryError is the error about a directory of the socket that cannot be made, or looked into. After su the variable is often still that
// of the other user.
func (l DaemonLocation) DirectoryError(err error) error {
	fix := "set XDG_RUNTIME_DIR to a directory of yours"
	if os.Getenv("XDG_RUNTIME_DIR") == "" {
		fix = "set HOME or XDG_RUNTIME_DIR to a directory of yours"
	}
	return &messages.Error{Op: "control", Class: messages.ClassConfig, Fix: fix, Err: err, Text: "the directory " +
		messages.Line(filepath.Dir(l.Socket), 0) + " for the socket of the daemon cannot be used: " + files.PlainCause(err).Error()}
}

// DaemonListener is the socket of a daemon with its lock.
type DaemonListener struct {
	socket *boundSocket
	// once gives up the lock.
	once sync.Once
}

// ListenDaemon takes the lock of the daemon and opens its socket. If another process is the daemon already, the error wraps
// [ErrRunning].
func ListenDaemon(location DaemonLocation) (*DaemonListener, error) {
	socket, err := bindSocket(&boundSocket{socketPath: location.Socket, lockPath: location.Lock, subject: "the socket of the daemon",
		running: daemonRunningError})
	if err != nil {
		return nil, err
	}
	return &DaemonListener{socket: socket}, nil
}

// Restore opens the socket anew if its file has gone: the directories of the system for such files are cleaned while programs run.
// Connections stay. If another process has become the daemon meanwhile, the error wraps [ErrRunning].
func (d *DaemonListener) Restore() error { return d.socket.restore() }

// AcceptPeer waits for the next connection. examine, which the caller calls in a goroutine of the connection because it reads files
// and may wait for a second, returns the context of its calls, which names the peer in the record, or the reason why the peer is
// refused: it must have the right to everything, as on a control socket.
func (d *DaemonListener) AcceptPeer() (conn net.Conn, examine func(context.Context) (context.Context, error), err error) {
	if conn, err = d.socket.Accept(); err != nil {
		return nil, nil, err
	}
	accepted := fence.Now()
	return conn, func(ctx context.Context) (context.Context, error) {
		from, decision := fence.Examine(conn, accepted)
		if decision.Right < fence.FullAccess {
			text := decision.Reason
			if from.PID() != 0 {
				text = fmt.Sprintf("process %d (%s) may not use the daemon: %s", from.PID(), from.Program(), decision.Reason)
			}
			return nil, &messages.Error{Op: "control", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Text: text,
				Fix: decision.Fix, Err: messages.ErrDenied}
		}
		return audit.WithPeer(ctx, from.PID(), from.Program()), nil
	}, nil
}

// StopListening closes the socket and gives up the lock, so that another process can become the daemon. Connections stay. It may be
// called more than once.
func (d *DaemonListener) StopListening() {
	_ = d.socket.Close() // it has no error to give
	d.once.Do(d.socket.releaseLock)
}

// HasSuccessor reports, after StopListening, which removes the socket, whether another process has become the daemon.
func (d *DaemonListener) HasSuccessor() bool {
	_, err := os.Lstat(d.socket.socketPath)
	return err == nil
}

// daemonRunningError is the error about another daemon.
func daemonRunningError(pid int) error {
	return &messages.Error{Op: "control", Class: messages.ClassInvalid, Err: ErrRunning,
		Text: fmt.Sprintf("process %d is the daemon of this user already", pid)}
}

// IsDaemon reports whether a process is the daemon of this user, by the lock.
func IsDaemon(pid int) bool {
	location, err := DaemonLocationOf()
	if err != nil || pid == 0 {
		return false
	}
	return DaemonPID(location) == pid
}

// DaemonPID returns the process of the daemon, by its lock; 0 if it is not known.
func DaemonPID(location DaemonLocation) int {
	f, err := os.Open(location.Lock)
	if err != nil {
		return 0
	}
	defer f.Close()
	return readPID(f)
}

// DialDaemon connects to the daemon. The error wraps [ErrNotRunning] if there is none; any other error is the reason why the one
// that is there cannot be used.
func DialDaemon(ctx context.Context, location DaemonLocation) (net.Conn, error) {
	// A socket in a directory that others can write to may be theirs.
	var inPlace *messages.Error
	switch err := checkPrivate(filepath.Dir(location.Socket)); {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, noDaemonError(err)
	case errors.As(err, &inPlace):
		return nil, err
	case err != nil:
		return nil, location.DirectoryError(err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", location.Socket)
	if err != nil {
		return nil, noDaemonError(err)
	}
	return conn, nil
}

// noDaemonError is the error about a daemon that does not run.
func noDaemonError(cause error) error {
	return &messages.Error{Op: "control", Class: messages.ClassInvalid, Text: "no daemon of mcpvisor runs", Fix: "mcpvisor connect starts one",
		Err: errors.Join(ErrNotRunning, cause)}
}
