package remote

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Name is the id of the one actor that peers can send to.
const Name = "mcpvisor"

// PID returns the actor of the manager that is served at an address ("host:port").
func PID(address string) *actor.PID { return actor.NewPID(address, Name) }

// Server is a manager that is served to other machines.
type Server struct {
	transport *peerTransport
	system    *actor.ActorSystem
	pid       *actor.PID
	once      sync.Once
}

// Serve offers the manager to peers and returns when it listens. It registers protoactor's remote in the manager's
// actor system, which can have only one: use a manager with a system of its own, or serve one manager per system. An
// error is a *messages.Error of ClassInvalid.
func Serve(m *supervisor.Manager, cfg Config) (*Server, error) {
	cfg, err := cfg.servedConfig()
	if err != nil {
		return nil, err
	}
	system := m.System()
	w := newPeerTransport(system, cfg, Name)
	if err := w.listen(); err != nil {
		return nil, err
	}
	gate := newGateway(cfg, w, m)
	pid, err := system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return gate }), Name)
	if err != nil {
		w.close()
		return nil, invalidError("the actor system has an actor named "+Name+" already", "serve one manager per actor system")
	}
	close(w.ready) // streams that came before wait for this: their commands need the actor
	return &Server{transport: w, system: system, pid: pid}, nil
}

// PID returns the actor that peers send to; its address is the one that the server listens on.
func (s *Server) PID() *actor.PID { return PID(s.system.Address()) }

// Dropped counts the messages of peers that were dropped: neither a command nor for this manager, with a sender
// elsewhere, or unreadable; and the replies that found no room because their peer did not read.
func (s *Server) Dropped() int64 { return s.transport.dropped.Load() }

// Close stops listening and closes the connections. The manager goes on. It is idempotent.
func (s *Server) Close() {
	s.once.Do(func() {
		s.system.Root.Stop(s.pid)
		s.transport.close()
	})
}

// Peer is an actor system that can send to served managers and receive their replies.
type Peer struct {
	transport *peerTransport
	once      sync.Once
}

// Join lets the actors of a system send to managers that are served elsewhere: system.Root.Request(PID(address), …).
// It listens as well, because replies come over connections that the manager opens.
func Join(system *actor.ActorSystem, cfg Config) (*Peer, error) {
	cfg, err := cfg.validatedConfig()
	if err != nil {
		return nil, err
	}
	w := newPeerTransport(system, cfg, "")
	if err := w.listen(); err != nil {
		return nil, err
	}
	close(w.ready)
	return &Peer{transport: w}, nil
}

// Close leaves: it closes all connections and stops listening. It is idempotent.
func (p *Peer) Close() { p.once.Do(p.transport.close) }
