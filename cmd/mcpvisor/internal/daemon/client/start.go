package client

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// startTime bounds the wait for a daemon that has just been started, and for one that is ending.
const startTime = 15 * time.Second

// firstPause and lastPause bound the time between two greetings of daemons that end while they are greeted.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// Command is the hidden command by which this program becomes the daemon.
const Command = "__daemon"

// DrainTime bounds the calls that are answered before a daemon ends, CloseTime the end of the servers after that.
const (
	DrainTime = 10 * time.Second
	CloseTime = 10 * time.Second
)

// Wish says what a bridge wants of the daemon.
type Wish struct {
	// Dir is the directory whose servers are wanted.
	Dir string
	// View is the view of the configuration that the agent gets; empty means everything.
	View string
	// Began is when the agent began to wait for them; zero if it does not wait.
	Began time.Time
	// Lookup gives the variables that the daemon asks for.
	Lookup func(string) (string, bool)
}

// Dial connects to the daemon of this user, and starts a daemon if there is none. The reader has what the daemon sends; notes are for the
// person.
func Dial(ctx context.Context, w Wish) (conn net.Conn, r *bufio.Reader, notes []string, err error) {
	d := dialer{action: ActionServe, dir: w.Dir, view: w.View, began: w.Began, lookup: w.Lookup, mayStart: true}
	return d.dial(ctx)
}

// Hold makes the daemon keep the servers of a directory until it is asked to end, and starts a daemon if there is none.
func Hold(ctx context.Context, dir string, lookup func(string) (string, bool)) (notes []string, err error) {
	d := dialer{action: ActionHold, dir: dir, lookup: lookup, mayStart: true}
	conn, _, notes, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	return notes, conn.Close()
}

// dialer finds a daemon for one purpose.
type dialer struct {
	action, dir, view string
	began             time.Time
	lookup            func(string) (string, bool)
	// mayStart says that a daemon is started if there is none; started that this was done.
	mayStart, started bool
}

// dial connects and greets, until a daemon is ready, one refuses, or startTime has passed.
func (d *dialer) dial(ctx context.Context) (conn net.Conn, r *bufio.Reader, notes []string, err error) {
	location, err := control.DaemonLocationOf()
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		conn, err = control.DialDaemon(ctx, location)
		if d.mayStart && errors.Is(err, control.ErrNotRunning) {
			conn, d.started, err = startDaemon(ctx, location)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		r, notes, err = d.introduce(conn)
		if stop(); err == nil {
			return conn, r, notes, nil
		}
		_ = conn.Close() // what was said on it is lost
		var refused *messages.Error
		switch {
		case errors.As(err, &refused):
			return nil, nil, nil, err
		case ctx.Err() != nil:
			return nil, nil, nil, silentError(location, ctx.Err())
		}
		// It is ending, or has ended in this moment: the next one is found or started. If that one ends in the same moment, too, the pauses grow.
		if err := sleepFor(ctx, pause); err != nil {
			return nil, nil, nil, err
		}
	}
}

// startDaemon starts a daemon, under a lock so that of many bridges one does, and waits until it accepts connections. started says that
// the daemon on the connection is the one that this process has started.
func startDaemon(ctx context.Context, location control.DaemonLocation) (conn net.Conn, started bool, err error) {
	if err := os.MkdirAll(filepath.Dir(location.Starting), 0o700); err != nil {
		return nil, false, location.DirectoryError(err)
	}
	lock := flock.New(location.Starting, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	switch _, err := lock.TryLockContext(ctx, 10*time.Millisecond); {
	case err != nil && ctx.Err() != nil:
		return nil, false, startError(location, fmt.Errorf("another process has been starting it for too long: %w", err))
	case err != nil: // the disk is full, or nothing can be written there
		return nil, false, location.DirectoryError(err)
	}
	defer func() { _ = lock.Unlock() }()
	// The one who had the lock before has started it.
	if conn, err := control.DialDaemon(ctx, location); err == nil || !errors.Is(err, control.ErrNotRunning) {
		return conn, false, err
	}
	failures := 0
	ended, err := spawn(location)
	if err != nil {
		return nil, false, startError(location, err)
	}
	for {
		conn, err := control.DialDaemon(ctx, location)
		if !errors.Is(err, control.ErrNotRunning) {
			return conn, true, err
		}
		select {
		case err := <-ended:
			// Another daemon may have been faster, or still be ending.
			if conn, dialErr := control.DialDaemon(ctx, location); dialErr == nil {
				return conn, false, nil
			}
			if failures++; failures == maxFailures || sleepFor(ctx, 100*time.Millisecond) != nil {
				return nil, false, startError(location, cmp.Or(lastLogged(location.Log), err))
			}
			if ended, err = spawn(location); err != nil {
				return nil, false, startError(location, err)
			}
		case <-ctx.Done():
			return nil, false, startError(location, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// spawn starts this program as the daemon: with a session of its own, so that it outlives the agent, and with the few variables that
// every program has. ended gets the error with which it ends.
func spawn(location control.DaemonLocation) (ended <-chan error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// A program that was replaced by a newer one is to be started from its new file.
	if _, err := os.Stat(self); err != nil {
		if self, err = exec.LookPath(os.Args[0]); err != nil {
			return nil, err
		}
	}
	log, err := openLog(location.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(self, Command)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return !keptVariable(v) })
	cmd.Dir = string(filepath.Separator)
	if home, err := os.UserHomeDir(); err == nil {
		cmd.Dir = home
	}
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1) // the daemon outlives the caller, who may not wait
	go func() { done <- cmd.Wait() }()
	return done, nil
}

// openLog opens the log of a new daemon, which begins empty. A disk that takes no file is no reason to be without servers.
func openLog(path string) (*os.File, error) {
	if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		if log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err == nil {
			return log, nil
		}
	}
	return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
}

// kept lists the variables that a daemon gets from the one who starts it: what programs need to run at all, and what leads to the
// files of mcpvisor. All others cross the socket, and only if an approved entry mentions them.
var kept = []string{"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "DBUS_SESSION_BUS_ADDRESS",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT", "SYSTEMDRIVE",
	"WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "USERPROFILE", "USERNAME"}

// keptVariable reports whether NAME=VALUE is one of them.
func keptVariable(v string) bool {
	name, _, _ := strings.Cut(v, "=")
	return slices.Contains(kept, name) || slices.Contains(kept, strings.ToUpper(name)) && filepath.Separator == '\\' ||
		strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "MCPVISOR_")
}

// maxFailures bounds how often a daemon that ends at once is started anew: the one before it may still be ending.
const maxFailures = 10

// lastLogged returns the last line of the daemon's log as an error: why it has ended. nil if there is none.
func lastLogged(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil //nolint:nilerr // without the log the exit code alone is known
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := lines[len(lines)-1]
	if _, said, ok := strings.Cut(last, "mcpvisor: "); ok {
		last = said
	}
	if last == "" {
		return nil
	}
	return errors.New(last)
}

// silentError is the error about a daemon that has the socket and says nothing: it is suspended, or its machine has no time for it.
func silentError(location control.DaemonLocation, err error) error {
	text := "the daemon of mcpvisor does not answer"
	if pid := control.DaemonPID(location); pid != 0 {
		text = fmt.Sprintf("the daemon of mcpvisor (process %d) does not answer", pid)
	}
	return &messages.Error{Op: "connect", Class: messages.ClassTimeout, Text: text, Fix: "see " + location.Log + ", or end the process", Err: err}
}

// startError is the error about a daemon that could not be started.
func startError(location control.DaemonLocation, err error) error {
	text := "the daemon of mcpvisor cannot be started"
	if err != nil {
		text += ": " + messages.Line(err.Error(), 200)
	}
	fix := "see " + location.Log
	return &messages.Error{Op: "connect", Class: messages.ClassConfig, Text: text, Fix: fix, Err: err}
}

// sleepFor waits, unless ctx ends.
func sleepFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// End asks the daemon to end in good order and waits until it has. It reports false if there is none.
func End(ctx context.Context) (bool, error) {
	location, err := control.DaemonLocationOf()
	if err != nil {
		return false, err
	}
	return endAt(ctx, location)
}

// endAt is End for the daemon of a location. One that ends while it is asked cuts the connection: it is looked for again, and is gone then.
func endAt(ctx context.Context, location control.DaemonLocation) (there bool, err error) {
	giveUp := time.Now().Add(startTime)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		conn, err := control.DialDaemon(ctx, location)
		if errors.Is(err, control.ErrNotRunning) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		err = endDaemon(ctx, conn, location)
		_ = conn.Close() // nothing is written on it any more
		if !errors.Is(err, errCut) || time.Now().After(giveUp) {
			return true, err
		}
		if err := sleepFor(ctx, pause); err != nil {
			return true, err
		}
	}
}

// errCut is the error about a daemon that has closed the connection without an answer.
var errCut = errors.New("the daemon has closed the connection")

// endDaemon asks the daemon on a connection to end, and waits until it has.
func endDaemon(ctx context.Context, conn net.Conn, location control.DaemonLocation) error {
	_ = conn.SetDeadline(time.Now().Add(GreetingTime))
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	h := ownHello()
	h.Action = ActionEnd
	r := bufio.NewReader(conn)
	var answer Welcome
	if err := exchangeLines(conn, r, h, &answer); !errors.Is(err, errDraining) {
		var refused *messages.Error
		switch {
		case err == nil:
			err = fmt.Errorf("the daemon (process %d) does not end", answer.PID)
		case ctx.Err() != nil:
			err = ctx.Err()
		case errors.As(err, &refused):
			if pid := control.DaemonPID(location); pid != 0 && refused.Fix == "" {
				refused.Fix = fmt.Sprintf("end it by its number: kill %d", pid)
			}
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = silentError(location, err)
		default:
			err = silentError(location, errors.Join(errCut, err))
		}
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(DrainTime + CloseTime + 5*time.Second))
	// The connection is closed by the end of the daemon.
	switch _, err := r.ReadByte(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &messages.Error{Op: "down", Class: messages.ClassTimeout, Text: "the daemon has not ended in time", Fix: "see " + location.Log}
	}
	return nil
}
