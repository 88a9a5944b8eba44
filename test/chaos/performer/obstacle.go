package performer

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The names of the faults that need more than the machine's actions.
const (
	faultMissingBinary = "missing-binary"
	faultRefuse        = "refuse"
	faultExhausted     = "exhausted"
)

// obstacle is a fault that keeps dials from reaching the server's machine, so that the machine cannot record the fault's
// effect. The client's failure shows the effect instead, by its class.
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
func (s *Server) setObstacle(f scenario.PlannedFault, on bool) {
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

// NoteDialFailure records the effect of every obstacle that explains the client's failure to connect.
func (s *Server) NoteDialFailure(class messages.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.obstacles {
		if slices.Contains(o.classes, class) {
			s.recordLocked(history.Event{Side: history.Harness, Kind: history.Fired, Fault: o.fault, Name: o.name})
		}
	}
}
