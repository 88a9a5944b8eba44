package agents

import (
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// misbehave sends what is wrong. Each such request has a name, and the checks know which answer it must get.
func (a *agent) misbehave(s *session, op operation) {
	switch op.number % 6 {
	case 0, 1:
		a.sendWrong(s, op.number/6)
	case 2:
		if h, ok := s.link.(*httpLink); ok {
			h.sendWrongExchange(op.number / 6)
		} else {
			s.openAgain()
		}
	case 3:
		// An id that is not the agent's own, or none at all: it is taken for nothing.
		s.sendNotice("notifications/cancelled", `{"requestId":`+[]string{`"a-foreign-one"`, "-1", "null", "{}"}[op.number/6%4]+`}`)
	case 4:
		if other := a.stranger(); other != nil && a.modern() {
			a.useForeignState(s, other)
		}
	default:
		if h, ok := s.link.(*httpLink); ok {
			h.trespass(op.number)
		}
	}
}

// stranger returns an agent of another principal, nil if there is none.
func (a *agent) stranger() *agent {
	for i := range a.fleet.agents {
		if other := a.fleet.agents[(a.number+i)%len(a.fleet.agents)]; other.plan.As != a.plan.As {
			return other
		}
	}
	return nil
}

// useForeignState goes on with the newest request of another principal that a server has asked for input, as whoever has seen its state
// could.
func (a *agent) useForeignState(s *session, other *agent) {
	other.mu.Lock()
	state, method, params := other.state, other.statefulMethod, other.statefulParams
	other.mu.Unlock()
	if state != "" && other.plan.View == a.plan.View {
		s.askEndpoint(method, withExtra(params, `"requestState":`+state+`,"inputResponses":{}`), "", "foreign-state")
	}
}

// exposeState lets an agent of another principal, which speaks the modern era and has the same view, go on with the request that this
// one has just been asked for input about. Every second state is exposed so.
func (a *agent) exposeState() {
	a.mu.Lock()
	a.states++
	exposed := a.states%2 == 0
	a.mu.Unlock()
	if !exposed {
		return
	}
	for _, other := range a.fleet.agents {
		if other.plan.As != a.plan.As && other.modern() && other.plan.View == a.plan.View {
			other.mu.Lock()
			s := other.session
			other.mu.Unlock()
			if s != nil {
				other.useForeignState(s, a)
				return
			}
		}
	}
}

// foreignSession returns the id of a session over HTTP that belongs to another principal, empty if there is none.
func (a *agent) foreignSession() string {
	for _, other := range a.fleet.agents {
		if other.plan.As == a.plan.As || other.plan.Over != scenario.OverHTTP || other.modern() {
			continue
		}
		other.mu.Lock()
		s := other.session
		other.mu.Unlock()
		if s != nil {
			return s.link.(*httpLink).sessionID()
		}
	}
	return ""
}
