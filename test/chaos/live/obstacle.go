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
	faultMissingBinary = "missing-binary"
	faultRefuse        = "refuse"
	faultExhausted     = "exhausted"
)

// newChaosServer makes a server and the way to it. It knows the secret that it is reached with, as servers do, and may say it where
// it does not belong.
func (r *run) newChaosServer(srv scenario.Server) (*chaosServer, error) {
	secret := r.secrets.newSecret()
	s := &chaosServer{
		name: srv.Name, plan: srv, record: r.recordEvent, now: r.elapsedTime, conns: map[int]serverConn{}, openRequests: map[int]map[string]openRequest{},
		machine: r.options.Machine(peer.Config{Server: srv, Seed: seedOf(r.plan.Seed, srv.Name), Canaries: []string{secret}}),
	}
	var err error
	switch srv.Kind {
	case messages.Stdio:
		s.endpoint, err = r.newStdioEndpoint(srv.Name, secret)
	case messages.HTTP, messages.SSE, messages.WebSocket:
		s.endpoint, err = newWebEndpoint(s, secret, r.descriptors)
	default:
		err = &Error{Text: "the server " + srv.Name + " is of the kind " + string(srv.Kind) +
			", which has no process and no socket; run this scenario in the simulation"}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newStdioEndpoint makes the door of a stdio server. The environment holds a secret, as those of most servers do.
func (r *run) newStdioEndpoint(name, secret string) (*stdioEndpoint, error) {
	folder := ""
	for _, f := range r.plan.Faults {
		if f.Server == name && f.Fault == faultMissingBinary {
			folder = r.folder
		}
	}
	h, err := newStdioEndpoint(folder, r.options.Program, name, messages.Spec{
		Type: messages.Stdio, Args: childArguments(becomePeer, r.children.address, name),
		Env: map[string]string{
			keyVariable: r.children.key, "CHAOS_API_TOKEN": secret,
			// A peer does nothing but pass on: one processor is enough for it, and five hundred of them have two.
			"GOMAXPROCS": "1", "GORACE": "atexit_sleep_ms=0",
		},
	}, r.descriptors)
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
	faultRefuse:        {messages.ClassNetwork},
	faultMissingBinary: {messages.ClassMissing, messages.ClassConfig},
	faultExhausted:     {messages.ClassExhausted},
}

// setObstacle puts an obstacle in the way, or takes it away. One that refuses connections closes the door.
func (s *chaosServer) setObstacle(f scenario.PlannedFault, on bool) {
	classes, ok := obstacles[f.Fault]
	if !ok {
		return
	}
	s.mu.Lock()
	s.obstacles = slices.DeleteFunc(s.obstacles, func(o obstacle) bool { return o.fault == f.ID })
	if on {
		s.obstacles = append(s.obstacles, obstacle{f.ID, f.Fault, classes})
	}
	refused := slices.ContainsFunc(s.obstacles, func(o obstacle) bool { return o.name == faultRefuse })
	s.mu.Unlock()
	switch {
	case f.Fault != faultRefuse:
		return
	case refused:
		s.endpoint.refuseConns()
		return
	}
	if err := s.endpoint.allowConns(); err != nil {
		s.record(history.Event{Side: history.Harness, Kind: history.Violation, Server: s.name, Name: "harness", Text: err.Error()})
	}
}

// noteDialFailure notes that the manager could not connect, for every obstacle that explains it.
func (s *chaosServer) noteDialFailure(class messages.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.obstacles {
		if slices.Contains(o.classes, class) {
			s.recordLocked(history.Event{Side: history.Harness, Kind: history.Fired, Fault: o.fault, Name: o.name})
		}
	}
}
