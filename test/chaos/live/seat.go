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

// link is one connection of a server: a process, a session over HTTP, a stream.
type link interface {
	// perform does what concerns this connection. It is called with the seat locked, and must not block.
	perform(a peer.Action)
	// pids are the processes of the connection, none for a socket.
	pids() []int
	// cut ends it at once, because the run ends.
	cut()
}

// seat is one server of the plan: its machine, and the connections that are open to it. Everything that happens to a
// server goes through its lock, so that the record has one order.
type seat struct {
	name   string
	plan   scenario.Server
	record func(history.Event)
	now    func() time.Duration

	mu        sync.Mutex
	machine   peer.Machine
	agenda    agenda
	timer     *time.Timer
	closed    bool
	opened    int          // connections so far
	links     map[int]link // those that are open
	asked     map[int]map[string]asked
	door      door // how the server is reached
	obstacles []obstacle
	truth     string // the hash of what it offers now
}

// door is the way to a server: where it listens, if it does.
type door interface {
	// open and shut let connections in or refuse them.
	open() error
	shut()
	// spec is how the manager reaches it.
	spec() messages.Spec
	// hide takes away what a process is started from, or gives it back.
	hide(class messages.Class, back bool)
	// close ends everything for good.
	close()
}

// tell asks the machine something and does what it answers.
func (s *seat) tell(ask func(now time.Duration) []peer.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked(ask)
}

func (s *seat) tellLocked(ask func(now time.Duration) []peer.Action) {
	if s.closed {
		return
	}
	now := s.now()
	s.agenda.add(now, ask(now))
	s.work()
}

// work does what is due, and comes again when something is. The lock is held.
func (s *seat) work() {
	for {
		a, ok := s.agenda.next(s.now())
		if !ok {
			break
		}
		s.do(a)
	}
	at, ok := s.agenda.due()
	if !ok || s.closed {
		return
	}
	wait := max(at-s.now(), 0)
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.awake)
	} else {
		s.timer.Reset(wait)
	}
}

// awake is the timer's.
func (s *seat) awake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work()
	}
}

// do performs one action. The lock is held.
func (s *seat) do(a peer.Action) {
	switch a := a.(type) {
	case peer.Note:
		s.noteLocked(a.Event)
	case peer.Wait:
		now := s.now()
		s.agenda.add(now, s.machine.Wake(now, a.Token))
	case peer.Accept:
		s.noteLocked(history.Event{Kind: history.Opened, Conn: a.Conn, Text: pidText(s.links[a.Conn])})
		s.pass(a.Conn, a)
	case peer.Reject:
		s.noteLocked(history.Event{Kind: history.Refused, Conn: a.Conn, Class: a.Class, RetryAfter: a.RetryAfter})
		s.pass(a.Conn, a)
	case peer.Hide:
		s.door.hide(a.Class, a.Back)
	case peer.Send:
		if s.links[a.Conn] != nil && a.Reply != "" && !a.More {
			s.answered(a.Conn, a.Reply, errorCode(a.Body), 0)
		}
		s.pass(a.Conn, a)
	case peer.Status:
		if s.links[a.Conn] != nil {
			s.answered(a.Conn, a.Reply, a.Code, a.RetryAfter)
		}
		s.pass(a.Conn, a)
	default:
		s.pass(connOf(a), a)
	}
}

// pass gives an action to the connection that it is about, if that is still there.
func (s *seat) pass(conn int, a peer.Action) {
	if l := s.links[conn]; l != nil {
		l.perform(a)
	}
}

func pidText(l link) string {
	if l == nil {
		return ""
	}
	for _, pid := range l.pids() {
		return fmt.Sprint(pid)
	}
	return ""
}

// noteLocked records what the world saw. The lock is held.
func (s *seat) noteLocked(e history.Event) {
	e.Server, e.T = s.name, 0
	if e.Side == "" {
		e.Side = history.World
	}
	if e.Kind == history.Changed {
		s.truth = e.Hash
	}
	s.record(e)
}

// attach gives a new connection its number and asks the machine whether it may come in. Connections that are over and
// not yet told of are told of first: a successor must not look like a second one.
func (s *seat) attach(make func(conn int) link) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attachLocked(make)
}

func (s *seat) attachLocked(make func(conn int) link) int {
	s.sweepLocked()
	s.opened++
	conn := s.opened
	s.links[conn] = make(conn)
	s.noteLocked(history.Event{Kind: history.Open, Conn: conn})
	s.tellLocked(func(now time.Duration) []peer.Action { return s.machine.Open(now, conn) })
	return conn
}

// sweepLocked releases the connections of which nothing is left.
func (s *seat) sweepLocked() {
	for conn, l := range s.links {
		if r, ok := l.(interface{ over() bool }); ok && r.over() {
			s.machine.Killed(s.now(), conn)
			s.releaseLocked(conn, l)
		}
	}
}

// release notes that nothing is left of a connection.
func (s *seat) release(conn int, l link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked(conn, l)
}

func (s *seat) releaseLocked(conn int, l link) {
	if s.links[conn] != l {
		return
	}
	delete(s.links, conn)
	delete(s.asked, conn)
	s.noteLocked(history.Event{Kind: history.Released, Conn: conn})
}

// processes are the ids of the processes that are connected now.
func (s *seat) processes() (pids []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		pids = append(pids, l.pids()...)
	}
	return pids
}

// close ends the server: its machine says nothing any more, and its connections are cut.
func (s *seat) close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	links := s.links
	s.links = map[int]link{}
	s.mu.Unlock()
	for _, l := range links {
		l.cut()
	}
	s.door.close()
}
