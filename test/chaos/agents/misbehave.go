package agents

import (
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// misbehave sends what is wrong. Each such request has a name, and the checks know which answer it must get.
func (a *agent) misbehave(s *session, op operation) {
	switch op.number % 6 {
	case 0:
		s.askEndpoint("no/such", "{}", "", "unknown-method")
	case 1:
		s.askEndpoint("tools/call", `{"name":"nobody__read","arguments":{}}`, "", "unknown-tool")
	case 2:
		s.askEndpoint("tools/list", `{"cursor":"%%%"}`, "", "bad-cursor")
	case 3:
		// An id that is not the agent's own, or none at all: it is taken for nothing.
		s.sendNotice("notifications/cancelled", `{"requestId":"a-foreign-one"}`)
	case 4:
		if other := a.stranger(); other != nil && a.modern() {
			other.mu.Lock()
			state, method, params := other.state, other.statefulMethod, other.statefulParams
			other.mu.Unlock()
			if state != "" && other.plan.View == a.plan.View {
				s.askEndpoint(method, withExtra(params, `"requestState":`+state+`,"inputResponses":{}`), "", "foreign-state")
			}
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
