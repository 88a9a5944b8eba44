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
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// ErrRunning is wrapped by Serve's error when another process serves the place already.
var ErrRunning = errors.New("already served by another process")

// Server is a control socket that is being served.
type Server struct {
	http *http.Server
	lock *lock
	done chan struct{}
	// ending says that nothing new is answered.
	ending *atomic.Bool
}

// ServeOption changes how a control socket is served.
type ServeOption func(*serveConfig)

type serveConfig struct {
	onRefused func(server, text string)
}

// OnRefused has f called for each request that is refused because of who asks: the server whose process it is, if it is
// one's, and a sentence. f must not block; it is called concurrently, and as often as somebody tries.
func OnRefused(f func(server, text string)) ServeOption {
	return func(c *serveConfig) { c.onRefused = f }
}

// Serve listens on the place's socket and answers from backend until Close. If another process serves the place the
// error wraps ErrRunning and names the process. Package fence says which peers are answered.
func Serve(location Location, backend Backend, opts ...ServeOption) (*Server, error) {
	var cfg serveConfig
	for _, o := range opts {
		o(&cfg)
	}
	dir := filepath.Dir(location.Socket)
	if err := makePrivateDir(dir); err != nil {
		return nil, err
	}
	l, pid, err := acquireLock(location.Lock)
	if err != nil {
		return nil, locationError("the lock of the control socket cannot be taken", err)
	}
	if l == nil {
		return nil, alreadyRunningError(location, pid)
	}
	listener, err := listenUnix(location.Socket)
	if err != nil {
		l.release()
		return nil, locationError("the control socket "+messages.Line(location.Socket, 0)+" cannot be opened", err)
	}
	ending := new(atomic.Bool)
	s := &Server{
		http: &http.Server{
			Handler: refuseWhenEnding(ending, newHandler(backend, cfg)), ReadHeaderTimeout: 10 * time.Second,
			BaseContext: func(net.Listener) context.Context {
				return audit.WithVia(messages.WithCaller(context.Background(), audit.User()), "socket", "")
			},
			ConnContext: withPeer,
			ErrorLog:    log.New(io.Discard, "", 0), // what a peer does wrong it is told itself
		},
		lock: l, done: make(chan struct{}), ending: ending,
	}
	go func() {
		defer close(s.done)
		defer func() { _ = recover() }() // net/http answers a panic of a handler by itself; nothing else may end the program
		_ = s.http.Serve(listener)       // it ends with Close, and always with an error
	}()
	return s, nil
}

func alreadyRunningError(location Location, pid int) error {
	owner := "another process"
	if pid != 0 {
		owner = fmt.Sprintf("process %d", pid)
	}
	return &messages.Error{Op: "control", Class: messages.ClassInvalid,
		Text: owner + " runs mcpvisor up for " + messages.Line(location.Project, 0) + " already",
		Fix:  "end that one first", Err: ErrRunning}
}

// listenUnix is called with the lock held: whoever made a socket that stands there is dead.
func listenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var cfg net.ListenConfig
	listener, err := cfg.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	// Between the two calls the directory, which is the user's alone, keeps others away.
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// Quiesce answers every further request with an error that says that the process is ending and wraps messages.ErrClosed. What is
// being answered goes on. Call it before the manager is closed: nobody is told then what is true of a manager that loses its
// servers.
func (s *Server) Quiesce() { s.ending.Store(true) }

func refuseWhenEnding(ending *atomic.Bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ending.Load() && r.URL.Path != pathAnswer { // an answer belongs to a request that goes on
			writeError(w, &messages.Error{Op: "control", Outcome: messages.OutcomeNotSent, Class: messages.ClassCanceled,
				Text: "the mcpvisor up of this project is ending", Err: messages.ErrClosed})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Close ends the socket: it accepts nothing more, lets requests that are being answered finish for at most a second,
// and gives the place free. Close the manager first: its calls have their outcome then, and their callers can still
// be told. It is idempotent.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.http.Close()
	}
	<-s.done
	s.lock.release()
	return nil
}
