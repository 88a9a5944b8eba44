package control

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// boundSocket is a socket with the lock that gives the right to it. It is a net.Listener that can be restored: the directories of the
// system for such files are cleaned while programs run.
type boundSocket struct {
	socketPath, lockPath string
	// subject names the socket in errors, and running makes the error about the process that has the lock.
	subject string
	running func(pid int) error
	// open opens the socket at its path, in the place of one that a dead process has left; nil for openUnix.
	open func(path string) (net.Listener, error)

	// mu guards the fields below: restore replaces them.
	mu       sync.Mutex
	listener net.Listener
	// file identifies the file of the socket.
	file  os.FileInfo
	lock  *lock
	ended bool
}

// bindSocket takes the lock and opens the socket that is described. If another process has the lock, the error is that of running.
func bindSocket(b *boundSocket) (*boundSocket, error) {
	if err := makePrivateDir(filepath.Dir(b.socketPath)); err != nil {
		return nil, err
	}
	// The lock comes before the socket: only its holder may remove a socket that is there.
	l, pid, err := acquireLock(b.lockPath)
	if err != nil {
		return nil, locationError("the lock of "+b.subject+" cannot be taken", err)
	}
	if l == nil {
		return nil, b.running(pid)
	}
	b.lock = l
	if b.open == nil {
		b.open = b.openUnix
	}
	if err := b.openListener(); err != nil {
		// Without the socket the lock would keep others from serving.
		l.release()
		return nil, err
	}
	return b, nil
}

// openUnix opens the socket in a directory of this program alone: a file in its place was left by a process that is dead, and is replaced.
func (b *boundSocket) openUnix(path string) (net.Listener, error) {
	listener, err := listenUnix(path)
	if err != nil {
		return nil, locationError(b.subject+" "+messages.Line(path, 0)+" cannot be opened", err)
	}
	return listener, nil
}

// openListener opens the socket in the place of the one before, which stays if that fails. The caller has the lock.
func (b *boundSocket) openListener() error {
	listener, err := b.open(b.socketPath)
	if err != nil {
		return err
	}
	file, err := os.Lstat(b.socketPath)
	if err != nil {
		_ = listener.Close() // its file has gone already
		return locationError(b.subject+" "+messages.Line(b.socketPath, 0)+" has gone", err)
	}
	if b.listener != nil {
		b.leaveListener()
	}
	b.listener, b.file = listener, file
	return nil
}

// restore opens the socket anew if its file has gone. Connections stay. If another process has taken the place meanwhile, the error is
// that of running.
func (b *boundSocket) restore() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, err := os.Lstat(b.socketPath)
	if b.ended || err == nil && os.SameFile(now, b.file) && isSameFile(b.lock.file, b.lockPath) {
		return nil
	}
	if err := makePrivateDir(filepath.Dir(b.socketPath)); err != nil {
		return err
	}
	if !isSameFile(b.lock.file, b.lockPath) {
		l, pid, err := acquireLock(b.lockPath)
		if err != nil {
			return locationError("the lock of "+b.subject+" cannot be taken", err)
		}
		if l == nil {
			return b.running(pid)
		}
		// Its file has no name any more, so that closing it is enough.
		_ = b.lock.file.Close()
		b.lock = l
	}
	if err == nil && os.SameFile(now, b.file) {
		return nil // the file of the lock alone had gone
	}
	return b.openListener()
}

// leaveListener closes the listener and leaves the file of the socket: it may be another process's by now.
func (b *boundSocket) leaveListener() {
	if l, ok := b.listener.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false)
	}
	_ = b.listener.Close() // nothing is accepted by it any more
}

// currentListener returns the listener, and whether it counts still.
func (b *boundSocket) currentListener() (net.Listener, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.listener, !b.ended
}

// Accept implements net.Listener.
func (b *boundSocket) Accept() (net.Conn, error) {
	for {
		listener, counts := b.currentListener()
		conn, err := listener.Accept()
		if err == nil {
			return conn, nil
		}
		// restore has put another one in its place.
		if now, _ := b.currentListener(); !counts || now == listener {
			return nil, err
		}
	}
}

// Addr implements net.Listener.
func (b *boundSocket) Addr() net.Addr {
	listener, _ := b.currentListener()
	return listener.Addr()
}

// Close implements net.Listener: it closes the socket and keeps the lock. Connections stay. It may be called more than once.
func (b *boundSocket) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil
	}
	b.ended = true
	// The file may be another process's by now, see restore.
	if now, err := os.Lstat(b.socketPath); err == nil && os.SameFile(now, b.file) {
		_ = b.listener.Close() // this removes the socket
	} else {
		b.leaveListener()
	}
	return nil
}

// releaseLock gives the lock up, after Close.
func (b *boundSocket) releaseLock() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isSameFile(b.lock.file, b.lockPath) {
		b.lock.release()
	} else {
		_ = b.lock.file.Close()
	}
}

// keepFile restores the socket whenever a cleaning of its directory has removed it, until closing is closed. Another process that has taken
// the place meanwhile keeps it.
func (b *boundSocket) keepFile(closing <-chan struct{}) {
	defer func() { _ = recover() }() // the socket that is there goes on
	t := time.NewTicker(restorePeriod)
	defer t.Stop()
	for {
		select {
		case <-closing:
			return
		case <-t.C:
			_ = b.restore() // the next look tries once more
		}
	}
}
