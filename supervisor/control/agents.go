package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control/internal/fence"
)

// agentListener is a unix socket on which agents are served, with the lock beside it.
type agentListener struct {
	*boundSocket
	closing chan struct{}
	once    sync.Once
}

// ListenAgents opens a unix socket for agents at a path of the person's choice, which only this user can use. Its directory must be the
// user's alone. A socket that a dead process has left is replaced; if a living one serves it, the error wraps [ErrRunning]. A socket whose
// file is deleted is opened anew within seconds, and its connections stay.
func ListenAgents(path string) (net.Listener, error) {
	name := messages.Line(path, 0)
	running := func(pid int) error {
		return &messages.Error{Op: "control", Class: messages.ClassConfig, Err: ErrRunning,
			Text: fmt.Sprintf("process %d serves %s already", pid, name), Fix: "end that one first, or choose another path"}
	}
	socket, err := bindSocket(&boundSocket{socketPath: path, lockPath: path + ".lock", subject: "the socket " + name, running: running,
		open: listenForAgents})
	if err != nil {
		return nil, err
	}
	l := &agentListener{boundSocket: socket, closing: make(chan struct{})}
	go socket.keepFile(l.closing)
	return l, nil
}

// listenForAgents opens the socket in the place of one that a dead process has left. The path is the person's choice, so another program may
// listen there, which knows nothing of the lock: its socket stays, and so does any other file.
func listenForAgents(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, locationError(messages.Line(path, 0)+" is there, and is no socket", nil)
	}
	text := "the socket " + messages.Line(path, 0) + " cannot be opened"
	if isServed(path) {
		return nil, &messages.Error{Op: "control", Class: messages.ClassConfig, Err: ErrRunning,
			Text: text + ": another program listens there", Fix: "end that one first, or choose another path"}
	}
	listener, err := listenUnix(path)
	if errors.Is(err, syscall.EINVAL) && len(path) > maxSocketPath {
		return nil, &messages.Error{Op: "control", Class: messages.ClassConfig, Err: err, Text: fmt.Sprintf("%s: its path has %d bytes", text, len(path)),
			Fix: fmt.Sprintf("choose one of at most %d", maxSocketPath)}
	}
	if err != nil {
		return nil, locationError(text, err)
	}
	return listener, nil
}

// isServed reports whether a process listens on a socket. One that is too busy to accept does.
func isServed(path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close() // nothing was said on it
	}
	return err == nil || errors.Is(err, syscall.EAGAIN) || errors.Is(err, context.DeadlineExceeded)
}

// Close closes the socket and gives up the lock. It may be called more than once.
func (l *agentListener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		close(l.closing)
		err = l.boundSocket.Close()
		l.releaseLock()
	})
	return err
}

// WithPeer is for http.Server.ConnContext of a server on the socket of [ListenAgents]: it remembers who has connected.
func WithPeer(ctx context.Context, conn net.Conn) context.Context { return withPeer(ctx, conn) }

// errNoPeer is the error of a request that did not come over a socket.
var errNoPeer = errors.New("nothing is known of the process that asks")

// CheckAgent returns why the process that sends a request may not use the servers, as on a control socket: it is one of the servers'
// own, or one that the system does not show. ctx is that of the request.
func CheckAgent(ctx context.Context) error {
	p, ok := ctx.Value(peerKey{}).(*peer)
	if !ok {
		return errNoPeer
	}
	from, v := p.examine()
	if v.Right >= fence.FullAccess {
		return nil
	}
	return &messages.Error{Op: "serve", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Fix: v.Fix, Err: messages.ErrDenied,
		Text: fmt.Sprintf("process %d (%s) may not use these servers: %s", from.PID(), from.Program(), v.Reason)}
}
