package live

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The names of the faults that need more than what a machine can do.
const (
	missingBinary = "missing-binary"
	refuse        = "refuse"
)

// newSeat makes a server and the way to it.
func (r *run) newSeat(srv scenario.Server) (*seat, error) {
	s := &seat{
		name: srv.Name, plan: srv, record: r.record, now: r.now, links: map[int]link{}, asked: map[int]map[string]asked{},
		machine: r.o.Machine(peer.Config{Server: srv, Seed: seedOf(r.plan.Seed, srv.Name), Canaries: []string{r.secrets.secret()}}),
	}
	var err error
	switch srv.Kind {
	case messages.Stdio:
		s.door, err = r.newHatch(srv.Name)
	case messages.HTTP, messages.SSE, messages.WebSocket:
		s.door, err = newWeb(s, r.secrets.secret())
	default:
		err = &Error{Text: "the server " + srv.Name + " is of the kind " + string(srv.Kind) +
			", which has no process and no socket; run this scenario in the simulation"}
	}
	return s, err
}

// newHatch makes the door of a stdio server. The environment holds a secret, as those of most servers do.
func (r *run) newHatch(name string) (*hatch, error) {
	folder := ""
	for _, f := range r.plan.Faults {
		if f.Server == name && f.Fault == missingBinary {
			folder = r.folder
		}
	}
	h, err := newHatch(folder, r.o.Program, name, messages.Spec{
		Type: messages.Stdio, Args: arguments(becomePeer, r.lobby.address, name),
		Env: map[string]string{
			keyVariable: r.lobby.key, "CHAOS_API_TOKEN": r.secrets.secret(),
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

// shut refuses connections from now on, for a fault; reopen ends that. The machine is not asked by whoever is refused, so
// that it is noted here that the fault had an effect, when the manager says that it could not connect.
func (s *seat) shut(fault int) {
	s.mu.Lock()
	s.refusing = append(s.refusing, fault)
	s.mu.Unlock()
	s.door.shut()
}

func (s *seat) reopen(fault int) {
	s.mu.Lock()
	for i, f := range s.refusing {
		if f == fault {
			s.refusing = append(s.refusing[:i:i], s.refusing[i+1:]...)
			break
		}
	}
	open := len(s.refusing) == 0
	s.mu.Unlock()
	if open {
		if err := s.door.open(); err != nil {
			s.record(history.Event{Side: history.Harness, Kind: history.Violation, Server: s.name, Name: "harness", Text: err.Error()})
		}
	}
}

// refused notes that somebody was.
func (s *seat) refused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.refusing {
		s.noteLocked(history.Event{Side: history.Harness, Kind: history.Fired, Fault: f, Name: refuse})
	}
}
