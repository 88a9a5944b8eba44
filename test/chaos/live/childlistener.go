package live

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"runtime"
	"sync"
	"time"
)

// childListener is where the children of a run report: one listener for all of them.
type childListener struct {
	listener net.Listener
	address  string
	key      string
	servers  map[string]*chaosServer // read only

	mu         sync.Mutex
	conns      map[net.Conn]bool
	offspring  map[int]net.Conn // what servers have started, by process id
	closed     bool
	goroutines sync.WaitGroup
}

// openChildListener listens. On Linux the address is an abstract one, which leaves no file behind whatever happens; elsewhere it
// is a port of the loopback interface. Who does not know the key is not heard.
func openChildListener() (*childListener, error) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
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
		return nil, &Error{Text: "the harness cannot listen for its children: " + err.Error(), Err: err}
	}
	return l, nil
}

// acceptChildren takes children in until close. seats are those of the run.
func (l *childListener) acceptChildren(servers map[string]*chaosServer) {
	l.servers = servers
	l.goroutines.Go(func() {
		for {
			raw, err := l.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // no descriptors for a moment
				time.Sleep(10 * time.Millisecond)
				continue
			}
			if !l.admitConn(raw) {
				return
			}
		}
	})
}

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

// helloTimeout bounds the greeting of whoever connects.
const helloTimeout = 10 * time.Second

func (l *childListener) serveChild(raw net.Conn) {
	w := newControlConn(raw)
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
	_, _, _ = w.readFrame() // it says nothing: this is its end
	l.mu.Lock()
	delete(l.offspring, g.PID)
	l.mu.Unlock()
}

// endEscaped ends the processes that have left the group of their server: nobody but the harness knows of them.
func (l *childListener) endEscaped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for pid, raw := range l.offspring {
		if isSessionLeader(pid) {
			_ = raw.Close()
		}
	}
}

// close ends every child that is still there, and returns when nobody is heard any more.
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
