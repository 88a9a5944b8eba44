package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// ErrRunning is wrapped by the error of [Serve] when another process serves the location already.
var ErrRunning = errors.New("already served by another process")

// Server is a control socket with its lock. [Serve] makes one.
type Server struct {
	http          *http.Server
	socket        *boundSocket
	done          chan struct{} // closed when no connection is accepted any more
	closing       chan struct{} // closed by the first Close
	once, release sync.Once
	handler       *handler
}

// restorePeriod is the time between two looks at the file of the socket.
const restorePeriod = 2 * time.Second

// ServeOption changes an option of [Serve].
type ServeOption func(*serveConfig)

// serveConfig holds the options of Serve.
type serveConfig struct {
	onRefused func(server, text string) // nil: refusals are not reported
}

// OnRefused makes f be called for each request that is refused because of its peer: with the server that the peer's
// process belongs to, empty if it is none's, and a sentence. f must not block. It is called concurrently, and as
// often as peers try.
func OnRefused(f func(server, text string)) ServeOption {
	return func(c *serveConfig) { c.onRefused = f }
}

// Serve listens on the location's socket and answers from backend until Close. If another process serves the
// location, the error wraps ErrRunning and names that process. Package fence decides which peers get an answer.
func Serve(location Location, backend Backend, opts ...ServeOption) (*Server, error) {
	var cfg serveConfig
	for _, o := range opts {
		o(&cfg)
	}
	socket, err := bindSocket(&boundSocket{socketPath: location.Socket, lockPath: location.Lock, subject: "the control socket",
		running: func(pid int) error { return alreadyRunningError(location, pid) }})
	if err != nil {
		return nil, err
	}
	h := &handler{backend: backend, onRefused: cfg.onRefused}
	s := &Server{
		http: &http.Server{
			Handler: h, ReadHeaderTimeout: 10 * time.Second, // a peer that connects and sends nothing is cut
			BaseContext: func(net.Listener) context.Context {
				// The calls are those of the user, made over the socket: the record of calls says so.
				return audit.WithVia(messages.WithCaller(context.Background(), audit.User()), "socket", "")
			},
			ConnContext: withPeer,
			ErrorLog:    log.New(io.Discard, "", 0), // a peer learns its own mistakes from the answer
		},
		socket: socket, done: make(chan struct{}), closing: make(chan struct{}), handler: h,
	}
	go func() {
		defer close(s.done)
		defer func() { _ = recover() }() // net/http recovers panics of handlers itself; no other panic may end the program
		_ = s.http.Serve(socket)         // it ends with Close, and always with an error
	}()
	go socket.keepFile(s.closing)
	return s, nil
}

// alreadyRunningError is the error for a location that another process serves.
func alreadyRunningError(location Location, pid int) error {
	if IsDaemon(pid) {
		return &messages.Error{Op: "control", Class: messages.ClassInvalid, Err: ErrRunning, Fix: "use them with mcpvisor list, call and so on; or end it with mcpvisor down",
			Text: fmt.Sprintf("the daemon of mcpvisor (process %d) has the servers of %s already", pid, messages.Line(location.Project, 0))}
	}
	owner := "another process"
	if pid != 0 {
		owner = fmt.Sprintf("process %d", pid)
	}
	return &messages.Error{Op: "control", Class: messages.ClassInvalid,
		Text: owner + " runs mcpvisor up for " + messages.Line(location.Project, 0) + " already",
		Fix:  "end that one first", Err: ErrRunning}
}

// listenUnix opens the socket. The caller holds the lock, so a socket that already has this path is that of a dead
// process and is removed.
func listenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var cfg net.ListenConfig
	listener, err := cfg.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	// Until the mode is set, the directory, which is the user's alone, keeps others away.
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// Quiesce answers every further request with an error that wraps messages.ErrClosed and says that the process is
// ending. Requests that are being answered go on. The owner calls it before it closes the manager, so that no caller
// gets the status of a manager that is losing its servers.
func (s *Server) Quiesce() { s.handler.ending.Store(true) }

// Restore opens the socket anew if its file has gone, which otherwise happens some seconds later.
func (s *Server) Restore() error { return s.socket.restore() }

// IsBusy reports whether a request is being answered.
func (s *Server) IsBusy() bool { return s.handler.active.Load() > 0 }

// Close closes the socket: it accepts nothing more, lets requests that are being answered finish for at most a
// second, and releases the location. The owner closes the manager first: its calls then have their outcome, and their
// callers can still get it. It is idempotent.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.closing) })
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// Shutdown waits; the streams that are still open after the second are cut.
	if err := s.http.Shutdown(ctx); err != nil {
		s.http.Close()
	}
	// The lock is released last, when no request can be answered by this process any more.
	<-s.done
	s.release.Do(s.socket.releaseLock)
	return nil
}
