package performer

import (
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// serverConn is one connection of a server: a process, a session over HTTP, a socket.
type serverConn interface {
	// performAction does what the machine asks of this connection. The caller holds the server's lock, so it must not block.
	performAction(a peer.Action)
	// processIDs returns the processes of the connection, none for a socket.
	processIDs() []int
	// cutConn ends the connection at once, because the run ends. The caller does not hold the server's lock.
	cutConn()
}

// Server is one server of the plan: its machine, and its open connections. Everything that happens to a server happens
// under its lock, so that the machine is called by one goroutine at a time and the record has one order.
type Server struct {
	// record and now are the run's recorder and clock; both are safe for concurrent use.
	name   string
	plan   scenario.Server
	record func(history.Event)
	now    func() time.Duration

	// mu guards everything below, and the fields of the server's connections where they say so.
	mu      sync.Mutex
	machine peer.Machine
	queue   actionQueue
	// timer calls handleTimer when the first action of queue is due; nil before the first.
	timer *time.Timer
	// closed is set by close; the machine is not asked any more, and late callbacks do nothing.
	closed bool
	// connCount is the number of connections so far, and the number of the last one.
	connCount int
	// conns holds the open connections by number.
	conns map[int]serverConn
	// openRequests holds the unanswered requests by connection and id.
	openRequests map[int]map[string]openRequest
	endpoint     serverEndpoint
	obstacles    []obstacle
	// offeredHash is the hash of the tools that the server offers now, from the last Changed event.
	offeredHash string
}

// serverEndpoint is the place at which a server can be reached: a program, or a listening port.
type serverEndpoint interface {
	// allowConns lets connections in, refuseConns refuses new ones; a fault ("refuse") switches them.
	allowConns() error
	refuseConns()
	// endpointSpec returns the part of the spec by which the client reaches the server.
	endpointSpec() messages.Spec
	// blockStart takes away what a process is started from, or with undo restores it.
	blockStart(class messages.Class, undo bool)
	// close ends the endpoint for good.
	close()
}

// askMachine calls the machine and performs the actions that it returns.
func (s *Server) askMachine(ask func(now time.Duration) []peer.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.askMachineLocked(ask)
}

// askMachineLocked is askMachine for a caller that holds s.mu. Once the server is closed it does nothing.
func (s *Server) askMachineLocked(ask func(now time.Duration) []peer.Action) {
	if s.closed {
		return
	}
	now := s.now()
	s.queue.addActions(now, ask(now))
	s.runDue()
}

// runDue performs the actions that are due, and sets the timer for the next one. The caller holds s.mu.
func (s *Server) runDue() {
	for {
		a, ok := s.queue.popDue(s.now())
		if !ok {
			break
		}
		s.dispatchAction(a)
	}
	// The time is read anew in each round: performing an action may have taken a while, and more may be due.
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

// handleTimer performs what is due; the timer calls it.
func (s *Server) handleTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.runDue()
	}
}

// dispatchAction performs one action. What the machine says of itself and of answers is recorded here, so that each kind of
// connection only moves bytes. The caller holds s.mu.
func (s *Server) dispatchAction(a peer.Action) {
	switch a := a.(type) {
	case peer.Note:
		s.recordLocked(a.Event)
	case peer.Wait:
		// The woken machine's actions go through the queue, so that those of one time keep their order.
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
	// An answer is recorded before its bytes are written: the client can react no earlier than that.
	case peer.Send:
		if s.conns[a.Conn] != nil && a.Reply != "" && !a.More {
			s.recordAnswer(a.Conn, a.Reply, errorCode(a.Body), 0)
		}
		s.forwardAction(a.Conn, a)
	case peer.Raw:
		if s.conns[a.Conn] != nil && a.Reply != "" {
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

// forwardAction gives an action to its connection. It drops the action if the connection has ended, as the machine expects.
func (s *Server) forwardAction(conn int, a peer.Action) {
	if l := s.conns[conn]; l != nil {
		l.performAction(a)
	}
}

// pidText returns the id of a connection's first process as text, empty for a socket.
func pidText(l serverConn) string {
	if l == nil {
		return ""
	}
	for _, pid := range l.processIDs() {
		return fmt.Sprint(pid)
	}
	return ""
}

// recordLocked records an event of this server. T stays 0, so that the recorder takes the time. The caller holds s.mu.
func (s *Server) recordLocked(e history.Event) {
	e.Server, e.T = s.name, 0
	if e.Side == "" {
		e.Side = history.World
	}
	if e.Kind == history.Changed {
		s.offeredHash = e.Hash
	}
	s.record(e)
}

// addConn numbers a new connection and lets the machine open it. Connections that have ended without a record are released
// first, so that the record does not show two connections where there was one after the other.
func (s *Server) addConn(newConn func(conn int) serverConn) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addConnLocked(newConn)
}

// addConnLocked is addConn for a caller that holds s.mu. The connection is in conns before the machine is asked, because the
// answer may come in the same turn.
func (s *Server) addConnLocked(newConn func(conn int) serverConn) int {
	s.releaseEndedLocked()
	s.connCount++
	conn := s.connCount
	s.conns[conn] = newConn(conn)
	s.recordLocked(history.Event{Kind: history.Open, Conn: conn})
	s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Open(now, conn) })
	return conn
}

// releaseEndedLocked releases the connections that have ended without telling. Only HTTP sessions and processes can.
func (s *Server) releaseEndedLocked() {
	for conn, l := range s.conns {
		if r, ok := l.(interface{ isGone() bool }); ok && r.isGone() {
			s.machine.Killed(s.now(), conn)
			s.releaseConnLocked(conn, l)
		}
	}
}

// releaseConn records that nothing is left of a connection. It does nothing if another call has released it.
func (s *Server) releaseConn(conn int, l serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseConnLocked(conn, l)
}

// releaseConnLocked is releaseConn for a caller that holds s.mu.
func (s *Server) releaseConnLocked(conn int, l serverConn) {
	if s.conns[conn] != l {
		return
	}
	delete(s.conns, conn)
	delete(s.openRequests, conn)
	s.recordLocked(history.Event{Kind: history.Released, Conn: conn})
}

// ChildPIDs returns the ids of the server's running processes.
func (s *Server) ChildPIDs() (pids []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.conns {
		pids = append(pids, l.processIDs()...)
	}
	return pids
}

// releaseEnded releases the connections that have ended, and returns how many have not.
func (s *Server) releaseEnded() (open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseEndedLocked()
	return len(s.conns)
}

// ToolsHash returns the hash of the tools that the server offers now.
func (s *Server) ToolsHash() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offeredHash
}

// Plan returns the server as the plan has it.
func (s *Server) Plan() scenario.Server { return s.plan }

// Spec returns the part of the spec by which a client reaches the server.
func (s *Server) Spec() messages.Spec { return s.endpoint.endpointSpec() }

// close ends the server: its machine acts no more, its connections are cut, its endpoint closes. The connections are cut
// without the lock, because their ends take it.
func (s *Server) close() {
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
