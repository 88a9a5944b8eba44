package performer

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"
)

// childListener accepts the control connections of all processes of a run.
type childListener struct {
	listener net.Listener
	address  string
	// key is the secret that a child shows in its greeting; another process that connects is dropped.
	key string
	// servers are the servers by name; acceptChildren sets it once.
	servers map[string]*Server

	// mu guards conns, offspring and closed. No lock of a server is taken while it is held.
	mu    sync.Mutex
	conns map[net.Conn]bool
	// offspring maps the process id of what a server has started to its control connection.
	offspring map[int]net.Conn
	// goroutines counts acceptChildren and one goroutine per connection.
	closed     bool
	goroutines sync.WaitGroup
}

// openChildListener listens. On Linux the address is an abstract one, which leaves no file behind even if the harness is
// killed; elsewhere it is a port of the loopback interface.
func openChildListener() (*childListener, error) {
	var random [32]byte
	// Read of crypto/rand never fails.
	_, _ = rand.Read(random[:])
	l := &childListener{
		key:   hex.EncodeToString(random[:16]),
		conns: map[net.Conn]bool{}, offspring: map[int]net.Conn{},
	}
	var err error
	if runtime.GOOS == "linux" {
		l.address = "@mcpvisor-chaos-" + hex.EncodeToString(random[16:24])
		l.listener, err = net.Listen("unix", l.address)
	} else if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.address = l.listener.Addr().String()
	}
	if err != nil {
		return nil, fmt.Errorf("the harness cannot listen for its children: %w", err)
	}
	return l, nil
}

// acceptChildren accepts children in a goroutine until close. It goes on after an error of Accept, because a fault may take all
// descriptors for a while.
func (l *childListener) acceptChildren(servers map[string]*Server) {
	l.servers = servers
	l.goroutines.Go(func() {
		for {
			raw, err := l.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// The fault exhausted leaves no descriptor for the connection; the child waits in the backlog.
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			if !l.admitConn(raw) {
				return
			}
		}
	})
}

// admitConn serves a connection in its own goroutine, or returns false if the listener was closed meanwhile.
func (l *childListener) admitConn(raw net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = raw.Close()
		return false
	}
	l.conns[raw] = true
	l.goroutines.Go(func() {
		defer func() {
			_ = raw.Close()
			l.mu.Lock()
			delete(l.conns, raw)
			l.mu.Unlock()
		}()
		l.serveChild(raw)
	})
	return true
}

// helloTimeout bounds the wait for the greeting of a connection.
const helloTimeout = 10 * time.Second

// serveChild checks the greeting, and then serves a server's process until it ends, or remembers what a server has started
// until that ends.
func (l *childListener) serveChild(raw net.Conn) {
	w := newControlConn(raw)
	// The deadline is for the greeting alone: afterwards a child may be silent for the whole run.
	_ = raw.SetReadDeadline(time.Now().Add(helloTimeout))
	kind, body, err := w.readFrame()
	_ = raw.SetReadDeadline(time.Time{})
	var g greeting
	if err != nil || kind != frameHello || json.Unmarshal(body, &g) != nil ||
		subtle.ConstantTimeCompare([]byte(g.Key), []byte(l.key)) != 1 {
		return
	}
	s := l.servers[g.Server]
	if s == nil {
		return
	}
	if !g.Spawned {
		serveStdioConn(s, raw, w, g)
		return
	}
	l.mu.Lock()
	l.offspring[g.PID] = raw
	l.mu.Unlock()
	// A spawned child sends nothing more: readFrame returns when the process has ended.
	_, _, _ = w.readFrame()
	l.mu.Lock()
	delete(l.offspring, g.PID)
	l.mu.Unlock()
}

// endEscaped ends the processes that have left the process group of their server. The client cannot know of them, so they
// count as the harness's own.
func (l *childListener) endEscaped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for pid, raw := range l.offspring {
		if isSessionLeader(pid) {
			_ = raw.Close()
		}
	}
}

// close ends every child by closing its control connection, and waits until their goroutines have ended.
func (l *childListener) close() {
	l.mu.Lock()
	l.closed = true
	for raw := range l.conns {
		_ = raw.Close()
	}
	l.mu.Unlock()
	_ = l.listener.Close()
	l.goroutines.Wait()
}
