package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// A connection of the legacy era has one level of log messages, for which the gateway asks its server in the name of all agents.

// checkLevelAsked judges that the server of an agent's call was asked for a level at least as fine as the agent wants, before the call came.
func (c *checker) checkLevelAsked(s *agentSession) {
	if c.real {
		return
	}
	for _, i := range s.events {
		q := c.x.Event(i)
		call := c.x.Call(q.About)
		if q.Kind != history.Asked || q.Method != "tools/call" || call == nil || len(call.Received) == 0 {
			continue
		}
		received := c.x.Event(call.Received[0])
		spec := c.serverSpec(received.Server)
		from := c.levelsSettle(received)
		if !spec.Logs || spec.Era == messages.EraModern || received.T < q.T || c.underFault(received.Server, from, received.T) ||
			c.wasCommanded(received.Server, from, received.T) || c.mayHideServer(s, received.Server, received.Tool, received.T-time.Second, received.T) {
			continue
		}
		_, most, wants := c.wantedLevels(s, i, q.T, received.T)
		asked, settled := c.levelOf(call.Received[0])
		if !wants || !settled || !c.isModernSession(s) && !c.hasSetLevel(s, q) {
			continue
		}
		c.judged++
		if rank := slices.Index(messages.LogLevels, asked); rank < 0 || rank > most {
			c.reportViolation(received.Server, call.Received[0], []int{i}, "%s wants log messages of the level %s of call %s, which came to the server at %s over connection %d: the server was asked for %q there.",
				s.agent, messages.LogLevels[most], q.About, timeText(received.T), received.Conn, asked)
			return
		}
	}
}

// levelDelay is the time in which a server that is connected is asked for the level that is wanted: a request of before may take 5 s.
const levelDelay = 6 * time.Second

// levelsSettle returns since when faults and commands matter for the level that a server was asked for before a call came to it: since it is
// connected, if that is long enough ago for the gateway to have asked anew, and else since the beginning.
func (c *checker) levelsSettle(received *history.Event) time.Duration {
	for _, u := range connectedSpans(c.phaseSpans(received.Server)) {
		if u.from <= received.T-levelDelay && (u.to > received.T || u.endEvent < 0) {
			return u.from
		}
	}
	return 0
}

// hasSetLevel reports whether a session of the legacy era had set a level before it asked something.
func (c *checker) hasSetLevel(s *agentSession, before *history.Event) bool {
	return slices.ContainsFunc(s.events, func(i int) bool {
		e := c.x.Event(i)
		answered := c.answeredAt(s, i)
		return e.Kind == history.Asked && e.Method == "logging/setLevel" && e.Name == "" && answered >= 0 && answered < before.T-c.instantBound() && !c.wasRefused(s, e)
	})
}

// levelOf returns the level that the connection of a request was asked for last before it; settled is false while such a request has no answer,
// which nothing else waits for.
func (c *checker) levelOf(received int) (asked string, settled bool) {
	r := c.x.Event(received)
	settled = true
	id := ""
	for _, i := range c.x.ServerEvents(r.Server) {
		e := c.x.Event(i)
		switch {
		case e.Conn != r.Conn || e.Method != "logging/setLevel":
		case e.Order > r.Order:
			return asked, settled
		case e.Kind == history.Received:
			asked, id, settled = e.Level, e.ID, false
		case e.Kind == history.Answered && e.ID == id:
			settled = true
		}
	}
	return asked, settled
}

// checkLevelsWanted judges that a server is asked for no finer level than an agent which may use it has ever wanted.
func (c *checker) checkLevelsWanted(sessions []*agentSession) {
	for _, server := range c.x.Servers() {
		if !c.serverSpec(server).Logs {
			continue
		}
		for _, i := range c.x.ServerEvents(server) {
			e := c.x.Event(i)
			rank := slices.Index(messages.LogLevels, e.Level)
			if e.Kind != history.Received || e.Method != "logging/setLevel" || rank < 0 || rank >= slices.Index(messages.LogLevels, unsetLevel) {
				continue
			}
			c.judged++
			if !slices.ContainsFunc(sessions, func(s *agentSession) bool { return c.hasWantedLevel(s, server, rank, e) }) {
				c.reportViolation(server, i, nil, "The server was asked at %s for log messages of the level %s, and no agent that may use it has wanted any as fine.",
					timeText(e.T), e.Level)
				return
			}
		}
	}
}

// hasWantedLevel reports whether an agent that may use a server has wanted a level as fine as a rank before an event.
func (c *checker) hasWantedLevel(s *agentSession, server string, rank int, before *history.Event) bool {
	if s.view != "" && s.view != server {
		return false
	}
	return slices.ContainsFunc(s.events, func(i int) bool {
		q := c.x.Event(i)
		wanted := slices.Index(messages.LogLevels, q.Level)
		return q.Kind == history.Asked && q.T <= before.T && wanted >= 0 && wanted <= rank
	})
}
