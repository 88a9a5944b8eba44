package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// agentSession is one session of an agent with its gateway, as the agent saw it. All numbers are indexes of events.
type agentSession struct {
	agent, principal, view string
	epoch                  uint64
	joined, parted         int // -1: not
	events                 []int
	// asked and replied are the requests and the answers by their ids.
	asked, replied map[string][]int
}

// agentSessions returns the sessions of all agents, in the order in which they began.
func (c *checker) agentSessions() (all []*agentSession) {
	type key struct {
		agent string
		epoch uint64
	}
	found := map[key]*agentSession{}
	for _, i := range c.x.Order() {
		e := c.x.Event(i)
		if e.Side != history.Agent {
			continue
		}
		k := key{e.Agent, e.Epoch}
		s := found[k]
		if s == nil {
			s = &agentSession{agent: e.Agent, principal: e.By, epoch: e.Epoch, joined: -1, parted: -1, asked: map[string][]int{}, replied: map[string][]int{}}
			found[k] = s
			all = append(all, s)
		}
		s.events = append(s.events, i)
		switch e.Kind {
		case history.Joined:
			s.joined, s.view = i, e.About
		case history.Parted:
			s.parted = i
		case history.Asked:
			s.asked[e.ID] = append(s.asked[e.ID], i)
		case history.Replied:
			s.replied[e.ID] = append(s.replied[e.ID], i)
		default:
		}
	}
	return all
}

// end returns when a session ended; the end of the history if it did not. The endpoint may have forgotten one that its agent did not use at any time
// since the agent heard something of it.
func (s *agentSession) end(c *checker) time.Duration {
	t, ok := c.x.Time(s.parted)
	if !ok {
		return c.endTime()
	}
	heard, forgotten := time.Duration(0), false
	for _, i := range s.events {
		switch e := c.x.Event(i); {
		case e.Kind == history.Replied && e.Code == sessionNotFound && e.Name == "":
			forgotten = true
		case e.Kind == history.Replied || e.Kind == history.Noticed:
			heard = e.T
		}
	}
	if forgotten {
		return min(heard, t)
	}
	return t
}

// isOpen reports whether a request about something was asked before an event of its session and has no answer before it. The methods are
// those that count.
func (s *agentSession) isOpen(c *checker, at int, about string, methods ...string) bool {
	for id, asked := range s.asked {
		for n, i := range asked {
			e := c.x.Event(i)
			if e.About != about || !slices.Contains(methods, e.Method) || c.x.Event(i).Order > c.x.Event(at).Order {
				continue
			}
			if n >= len(s.replied[id]) || c.x.Event(s.replied[id][n]).Order > c.x.Event(at).Order {
				return true
			}
		}
	}
	return false
}
