package live

import (
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// serverConn is one connection of a server: a process, a session over HTTP, a stream.
type serverConn interface {
	// performAction does what concerns this connection. It is called with the seat locked, and must not block.
	performAction(a peer.Action)
	// processIDs are the processes of the connection, none for a socket.
	processIDs() []int
	// cutConn ends it at once, because the run ends.
	cutConn()
}

// chaosServer is one server of the plan: its machine, and the connections that are open to it. Everything that happens to a
// server goes through its lock, so that the record has one order.
type chaosServer struct {
	name   string
	plan   scenario.Server
	record func(history.Event)
	now    func() time.Duration

	mu           sync.Mutex
	machine      peer.Machine
	queue        actionQueue
	timer        *time.Timer
	closed       bool
	connCount    int                // connections so far
	conns        map[int]serverConn // those that are open
	openRequests map[int]map[string]openRequest
	endpoint     serverEndpoint // how the server is reached
	obstacles    []obstacle
	offeredHash  string // the hash of what it offers now
}

// serverEndpoint is the way to a server: where it listens, if it does.
type serverEndpoint interface {
	// allowConns and shut let connections in or refuse them.
	allowConns() error
	refuseConns()
	// endpointSpec is how the manager reaches it.
	endpointSpec() messages.Spec
	// blockStart takes away what a process is started from, or gives it back.
	blockStart(class messages.Class, undo bool)
	// close ends everything for good.
	close()
}

// askMachine asks the machine something and does what it answers.
func (s *chaosServer) askMachine(ask func(now time.Duration) []peer.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.askMachineLocked(ask)
}

func (s *chaosServer) askMachineLocked(ask func(now time.Duration) []peer.Action) {
	if s.closed {
		return
	}
	now := s.now()
	s.queue.addActions(now, ask(now))
	s.runDue()
}

// runDue does what is due, and comes again when something is. The lock is held.
func (s *chaosServer) runDue() {
	for {
		a, ok := s.queue.popDue(s.now())
		if !ok {
			break
		}
		s.dispatchAction(a)
	}
	at, ok := s.queue.nextDueTime()
	if !ok || s.closed {
		return
	}
	wait := max(at-s.now(), 0)
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.handleTimer)
	} else {
		s.timer.Reset(wait)
	}
}

// handleTimer is the timer's.
func (s *chaosServer) handleTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.runDue()
	}
}

// dispatchAction performs one action. The lock is held.
func (s *chaosServer) dispatchAction(a peer.Action) {
	switch a := a.(type) {
	case peer.Note:
		s.recordLocked(a.Event)
	case peer.Wait:
		now := s.now()
		s.queue.addActions(now, s.machine.Wake(now, a.Token))
	case peer.Accept:
		s.recordLocked(history.Event{Kind: history.Opened, Conn: a.Conn, Text: pidText(s.conns[a.Conn])})
		s.forwardAction(a.Conn, a)
	case peer.Reject:
		s.recordLocked(history.Event{Kind: history.Refused, Conn: a.Conn, Class: a.Class, RetryAfter: a.RetryAfter})
		s.forwardAction(a.Conn, a)
	case peer.BlockStart:
		s.endpoint.blockStart(a.Class, a.Undo)
	case peer.Send:
		if s.conns[a.Conn] != nil && a.Reply != "" && !a.More {
			s.recordAnswer(a.Conn, a.Reply, errorCode(a.Body), 0)
		}
		s.forwardAction(a.Conn, a)
	case peer.Status:
		if s.conns[a.Conn] != nil {
			s.recordAnswer(a.Conn, a.Reply, a.Code, a.RetryAfter)
		}
		s.forwardAction(a.Conn, a)
	default:
		s.forwardAction(connOf(a), a)
	}
}

// forwardAction gives an action to the connection that it is about, if that is still there.
func (s *chaosServer) forwardAction(conn int, a peer.Action) {
	if l := s.conns[conn]; l != nil {
		l.performAction(a)
	}
}

func pidText(l serverConn) string {
	if l == nil {
		return ""
	}
	for _, pid := range l.processIDs() {
		return fmt.Sprint(pid)
	}
	return ""
}

// recordLocked records what the world saw. The lock is held.
func (s *chaosServer) recordLocked(e history.Event) {
	e.Server, e.T = s.name, 0
	if e.Side == "" {
		e.Side = history.World
	}
	if e.Kind == history.Changed {
		s.offeredHash = e.Hash
	}
	s.record(e)
}

// addConn gives a new connection its number and asks the machine whether it may come in. Connections that are over and
// not yet told of are told of first: a successor must not look like a second one.
func (s *chaosServer) addConn(newConn func(conn int) serverConn) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addConnLocked(newConn)
}

func (s *chaosServer) addConnLocked(newConn func(conn int) serverConn) int {
	s.releaseEndedLocked()
	s.connCount++
	conn := s.connCount
	s.conns[conn] = newConn(conn)
	s.recordLocked(history.Event{Kind: history.Open, Conn: conn})
	s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Open(now, conn) })
	return conn
}

// releaseEndedLocked releases the connections of which nothing is left.
func (s *chaosServer) releaseEndedLocked() {
	for conn, l := range s.conns {
		if r, ok := l.(interface{ isGone() bool }); ok && r.isGone() {
			s.machine.Killed(s.now(), conn)
			s.releaseConnLocked(conn, l)
		}
	}
}

// releaseConn notes that nothing is left of a connection.
func (s *chaosServer) releaseConn(conn int, l serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseConnLocked(conn, l)
}

func (s *chaosServer) releaseConnLocked(conn int, l serverConn) {
	if s.conns[conn] != l {
		return
	}
	delete(s.conns, conn)
	delete(s.openRequests, conn)
	s.recordLocked(history.Event{Kind: history.Released, Conn: conn})
}

// childPIDs are the ids of the processes that are connected now.
func (s *chaosServer) childPIDs() (pids []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.conns {
		pids = append(pids, l.processIDs()...)
	}
	return pids
}

// close ends the server: its machine says nothing any more, and its connections are cut.
func (s *chaosServer) close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	links := s.conns
	s.conns = map[int]serverConn{}
	s.mu.Unlock()
	for _, l := range links {
		l.cutConn()
	}
	s.endpoint.close()
}
