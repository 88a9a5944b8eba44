package live

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The names of the faults that need more than what a machine can do.
const (
	missingBinary = "missing-binary"
	refuse        = "refuse"
	exhausted     = "exhausted"
)

// newSeat makes a server and the way to it. It knows the secret that it is reached with, as servers do, and may say it where
// it does not belong.
func (r *run) newSeat(srv scenario.Server) (*seat, error) {
	secret := r.secrets.secret()
	s := &seat{
		name: srv.Name, plan: srv, record: r.record, now: r.now, links: map[int]link{}, asked: map[int]map[string]asked{},
		machine: r.o.Machine(peer.Config{Server: srv, Seed: seedOf(r.plan.Seed, srv.Name), Canaries: []string{secret}}),
	}
	var err error
	switch srv.Kind {
	case messages.Stdio:
		s.door, err = r.newHatch(srv.Name, secret)
	case messages.HTTP, messages.SSE, messages.WebSocket:
		s.door, err = newWeb(s, secret, r.limits)
	default:
		err = &Error{Text: "the server " + srv.Name + " is of the kind " + string(srv.Kind) +
			", which has no process and no socket; run this scenario in the simulation"}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newHatch makes the door of a stdio server. The environment holds a secret, as those of most servers do.
func (r *run) newHatch(name, secret string) (*hatch, error) {
	folder := ""
	for _, f := range r.plan.Faults {
		if f.Server == name && f.Fault == missingBinary {
			folder = r.folder
		}
	}
	h, err := newHatch(folder, r.o.Program, name, messages.Spec{
		Type: messages.Stdio, Args: arguments(becomePeer, r.lobby.address, name),
		Env: map[string]string{
			keyVariable: r.lobby.key, "CHAOS_API_TOKEN": secret,
			// A peer does nothing but pass on: one processor is enough for it, and five hundred of them have two.
			"GOMAXPROCS": "1", "GORACE": "atexit_sleep_ms=0",
		},
	}, r.limits)
	if err != nil {
		return nil, &Error{Text: "the link to the program of " + name + " cannot be made: " + err.Error(), Err: err}
	}
	return h, nil
}

// seedOf is the seed of one server.
func seedOf(seed uint64, server string) uint64 {
	h := sha256.New()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	h.Write(b[:])
	h.Write([]byte("peer\x00" + server))
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// obstacle is a fault that keeps dials from reaching the server at all, so that its machine cannot say that the fault had an
// effect: the manager says it, by the class of its failure.
type obstacle struct {
	fault   int
	name    string
	classes []messages.Class
}

// obstacles are the faults of that kind.
var obstacles = map[string][]messages.Class{
	refuse:        {messages.ClassNetwork},
	missingBinary: {messages.ClassMissing, messages.ClassConfig},
	exhausted:     {messages.ClassExhausted},
}

// obstruct puts an obstacle in the way, or takes it away. One that refuses connections closes the door.
func (s *seat) obstruct(f scenario.Planned, on bool) {
	classes, ok := obstacles[f.Fault]
	if !ok {
		return
	}
	s.mu.Lock()
	s.obstacles = slices.DeleteFunc(s.obstacles, func(o obstacle) bool { return o.fault == f.ID })
	if on {
		s.obstacles = append(s.obstacles, obstacle{f.ID, f.Fault, classes})
	}
	shut := slices.ContainsFunc(s.obstacles, func(o obstacle) bool { return o.name == refuse })
	s.mu.Unlock()
	switch {
	case f.Fault != refuse:
		return
	case shut:
		s.door.shut()
		return
	}
	if err := s.door.open(); err != nil {
		s.record(history.Event{Side: history.Harness, Kind: history.Violation, Server: s.name, Name: "harness", Text: err.Error()})
	}
}

// stumbled notes that the manager could not connect, for every obstacle that explains it.
func (s *seat) stumbled(class messages.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.obstacles {
		if slices.Contains(o.classes, class) {
			s.noteLocked(history.Event{Side: history.Harness, Kind: history.Fired, Fault: o.fault, Name: o.name})
		}
	}
}
