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

// lobby is where the children of a run report: one listener for all of them.
type lobby struct {
	listener net.Listener
	address  string
	key      string
	seats    map[string]*seat // read only

	mu        sync.Mutex
	conns     map[net.Conn]bool
	offspring map[int]net.Conn // what servers have started, by process id
	closed    bool
	living    sync.WaitGroup
}

// openLobby listens. On Linux the address is an abstract one, which leaves no file behind whatever happens; elsewhere it
// is a port of the loopback interface. Who does not know the key is not heard.
func openLobby() (*lobby, error) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	l := &lobby{
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

// serve takes children in until close. seats are those of the run.
func (l *lobby) serve(seats map[string]*seat) {
	l.seats = seats
	l.living.Go(func() {
		for {
			raw, err := l.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // no descriptors for a moment
				time.Sleep(10 * time.Millisecond)
				continue
			}
			if !l.enter(raw) {
				return
			}
		}
	})
}

func (l *lobby) enter(raw net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = raw.Close()
		return false
	}
	l.conns[raw] = true
	l.living.Go(func() {
		defer func() {
			_ = raw.Close()
			l.mu.Lock()
			delete(l.conns, raw)
			l.mu.Unlock()
		}()
		l.receive(raw)
	})
	return true
}

// greetTime bounds the greeting of whoever connects.
const greetTime = 10 * time.Second

func (l *lobby) receive(raw net.Conn) {
	w := newWire(raw)
	_ = raw.SetReadDeadline(time.Now().Add(greetTime))
	kind, body, err := w.read()
	_ = raw.SetReadDeadline(time.Time{})
	var g greeting
	if err != nil || kind != frameHello || json.Unmarshal(body, &g) != nil ||
		subtle.ConstantTimeCompare([]byte(g.Key), []byte(l.key)) != 1 {
		return
	}
	s := l.seats[g.Server]
	if s == nil {
		return
	}
	if !g.Spawned {
		serveProcess(s, raw, w, g)
		return
	}
	l.mu.Lock()
	l.offspring[g.PID] = raw
	l.mu.Unlock()
	_, _, _ = w.read() // it says nothing: this is its end
	l.mu.Lock()
	delete(l.offspring, g.PID)
	l.mu.Unlock()
}

// dismiss ends the processes that have left the group of their server: nobody but the harness knows of them.
func (l *lobby) dismiss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for pid, raw := range l.offspring {
		if leader(pid) {
			_ = raw.Close()
		}
	}
}

// close ends every child that is still there, and returns when nobody is heard any more.
func (l *lobby) close() {
	l.mu.Lock()
	l.closed = true
	for raw := range l.conns {
		_ = raw.Close()
	}
	l.mu.Unlock()
	_ = l.listener.Close()
	l.living.Wait()
}
