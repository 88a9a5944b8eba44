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

// The names of the faults that need more than the machine's actions.
const (
	faultMissingBinary = "missing-binary"
	faultRefuse        = "refuse"
	faultExhausted     = "exhausted"
)

// newChaosServer makes a server with its endpoint. The server knows the secret that the manager reaches it with, and the fault
// leak-canary makes it reveal that secret.
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

// newStdioEndpoint makes the endpoint of a stdio server. Its environment holds a secret, as the environment of most servers
// does. Only a server whose program a fault removes gets a link of its own.
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
			// A peer only passes bytes on, so one processor suffices; five hundred peers may share two.
			"GOMAXPROCS": "1", "GORACE": "atexit_sleep_ms=0",
		},
	}, r.descriptors)
	if err != nil {
		return nil, &Error{Text: "the link to the program of " + name + " cannot be made: " + err.Error(), Err: err}
	}
	return h, nil
}

// seedOf derives the seed of one server from the run's seed.
func seedOf(seed uint64, server string) uint64 {
	h := sha256.New()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	h.Write(b[:])
	h.Write([]byte("peer\x00" + server))
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// obstacle is a fault that keeps dials from reaching the server's machine, so that the machine cannot record the fault's
// effect. The manager's failure shows the effect instead, by its class.
type obstacle struct {
	fault   int
	name    string
	classes []messages.Class
}

// obstacles maps those faults to the classes of failure that they cause.
var obstacles = map[string][]messages.Class{
	faultRefuse:        {messages.ClassNetwork},
	faultMissingBinary: {messages.ClassMissing, messages.ClassConfig},
	faultExhausted:     {messages.ClassExhausted},
}

// setObstacle adds or removes an obstacle. The fault refuse closes the server's port; another refuse that still lasts keeps it
// closed.
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
	// The endpoint is called without the lock: allowConns may wait a second for its port, and open requests need the lock.
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

// noteDialFailure records the effect of every obstacle that explains the manager's failure to connect.
func (s *chaosServer) noteDialFailure(class messages.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.obstacles {
		if slices.Contains(o.classes, class) {
			s.recordLocked(history.Event{Side: history.Harness, Kind: history.Fired, Fault: o.fault, Name: o.name})
		}
	}
}
