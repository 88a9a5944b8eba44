package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I1: what the catalog shows of a server agrees with the manager's phase of it, whenever both stay for a while.
//
//   - live: connected, enabled and of this epoch. The manager publishes a server as connected when its tools are in the
//     catalog, so that entries may be live a moment before the phase says so.
//   - lost: the connection ended, at most WithdrawAfter ago. The entries stay for that long, so that a short interruption does
//     not make tools flap, unless the owner disabled, removed or changed the server, or it needs credentials.
//   - cached: a lazy server that rests or is being started. One that rests and whose list is not empty shows it, because only a call of
//     one of its tools wakes it.
//
// A state is judged only if it lasts longer than the registry waits before it publishes. A shorter disagreement cannot be told
// from one that is being corrected.
var liveCheck = newCheck("I1", "live, lost and cached tools",
	"A live tool in the snapshot belongs to a connected, enabled server and to the same epoch; cached and lost entries are "+
		"marked, and lost ones gone in time.",
	"The catalog showed no tools.",
	func(c *checker) {
		closing := c.closeTime()
		shows := c.catalogSpans()
		for _, server := range c.x.Servers() {
			stays := c.phaseSpans(server)
			wishes, commands := c.wantedStates(server), c.ownerCommands(server)
			k := 0
			var lostSince time.Duration
			for i, s := range shows[server] {
				s.to = min(s.to, closing)
				if s.to <= s.from {
					continue
				}
				// An empty catalog shows nothing that could be wrong, and must not make the check look as if it had judged.
				if s.state != "" {
					c.judged++
				}
				if s.mixed {
					c.reportViolation(server, s.event, nil, "The catalog shows entries of one server in two states or of two epochs at %s.", timeText(s.from))
				}
				if len(stays) > 0 {
					for _, p := range splitByPhase(stays, &k, s.from, s.to) {
						c.checkCatalogPiece(server, s, p, wishes)
						c.checkRestingPiece(server, s, p)
					}
				}
				if s.state == "lost" {
					// A server that was connected and lost again within one publication is lost anew: its entries have another
					// epoch.
					if i == 0 || shows[server][i-1].state != "lost" || shows[server][i-1].epoch != s.epoch {
						lostSince = s.from
					}
					if s.to-lostSince > c.plan.WithdrawAfter+c.slack {
						c.reportViolationAt(lostSince+c.plan.WithdrawAfter, server, s.event, []int{s.endEvent}, "The tools of the server were lost at %s and had "+
							"to go from the catalog after %s, at %s. They were still shown at %s.", timeText(lostSince), timeText(c.plan.WithdrawAfter),
							timeText(lostSince+c.plan.WithdrawAfter), timeText(s.to))
					}
				}
				if i+1 < len(shows[server]) && s.endEvent >= 0 && s.to < closing {
					c.checkWithdrawal(server, s, shows[server][i+1], lostSince, stays, commands)
				}
			}
		}
	})

// checkCatalogPiece judges a stretch of time in which neither the entries nor the phase change.
func (c *checker) checkCatalogPiece(server string, s catalogSpan, p phasePiece, wishes []wantedSince) {
	if s.state == "" || p.to-p.from <= c.skew {
		return
	}
	phaseText, at := "not known to the manager (removed, or not yet there)", s.event
	connected := false
	var epoch uint64
	if p.phase != nil {
		phaseText, epoch = describePhase(p.phase.Event), p.phase.Epoch
		connected = p.phase.Phase == messages.Connected
		if p.phase.T > s.from {
			at = p.phase.event
		}
	}
	evidence := []int{s.event}
	if p.phase != nil {
		evidence = append(evidence, p.phase.event)
	}
	if from, to, wantedEvent := firstUnwanted(wishes, p.from, p.to); to-from > c.skew {
		c.reportViolationAt(from, server, at, append(evidence, wantedEvent), "The catalog shows %d %s tools of the server from %s to %s although its owner "+
			"had disabled or removed it%s.", s.count, s.state, timeText(from), timeText(to), c.commandText(wantedEvent))
		return
	}
	switch s.state {
	case "live":
		switch {
		case !connected:
			c.reportViolationAt(p.from, server, at, evidence, "The catalog shows %d live tools from %s to %s while the server is %s.", s.count, timeText(p.from),
				timeText(p.to), phaseText)
		case epoch != s.epoch:
			c.reportViolationAt(p.from, server, at, evidence, "The catalog shows live tools of epoch %d from %s to %s while the server is connected in epoch "+
				"%d.", s.epoch, timeText(p.from), timeText(p.to), epoch)
		}
	case "lost":
		if connected {
			c.reportViolationAt(p.from, server, at, evidence, "The tools are marked lost from %s to %s while the server is connected.", timeText(p.from), timeText(p.to))
		} else if p.phase == nil || p.phase.Phase == messages.Disabled || p.phase.Phase == messages.NeedsAuth {
			c.reportViolationAt(p.from, server, at, evidence, "The tools are marked lost from %s to %s while the server is %s: nobody expects it back.",
				timeText(p.from), timeText(p.to), phaseText)
		}
	case "cached":
		switch {
		// A server that has become eager keeps its cached tools until it is connected.
		case !c.isLazy(server, s.from, p.to):
			c.reportViolationAt(p.from, server, at, evidence, "The tools are marked cached at %s, and the server is not lazy.", timeText(p.from))
		case connected:
			c.reportViolationAt(p.from, server, at, evidence, "The tools are marked cached from %s to %s while the server is connected.", timeText(p.from),
				timeText(p.to))
		case p.phase == nil || p.phase.Phase == messages.Disabled || p.phase.Phase == messages.NeedsAuth:
			c.reportViolationAt(p.from, server, at, evidence, "The tools are marked cached from %s to %s while the server is %s: no call can wake it.",
				timeText(p.from), timeText(p.to), phaseText)
		}
	default:
		c.reportViolationAt(p.from, server, at, evidence, "An entry has the state %q, which is none.", s.state)
	}
}

// commandText returns " at 2s (disable)" of a command of the owner; empty for what holds from the start, which is -1.
func (c *checker) commandText(event int) string {
	if event < 0 {
		return ""
	}
	return " at " + timeText(c.x.Event(event).T) + " (" + c.x.Event(event).Method + ")"
}

// checkRestingPiece judges a stretch of time in which a server rests and the catalog shows nothing of it.
func (c *checker) checkRestingPiece(server string, s catalogSpan, p phasePiece) {
	if s.state != "" || p.phase == nil || p.phase.Phase != messages.Pending || p.phase.Step != messages.Idle || p.to-p.from <= c.skew {
		return
	}
	if c.plan.Hides(server) || c.listsOnlyDenied(server, p.from) {
		return
	}
	if !c.hasListedTools(server, p.from) {
		return
	}
	c.reportViolationAt(p.from, server, s.event, []int{p.phase.event}, "The server rests from %s to %s, and the catalog shows none of its tools: no call "+
		"can wake it.", timeText(p.from), timeText(p.to))
}

// checkWithdrawal judges tools that disappeared: after the end of a connection they stay for WithdrawAfter, marked lost.
func (c *checker) checkWithdrawal(server string, s, next catalogSpan, lostSince time.Duration, stays []phaseSpan, commands []ownerCommand) {
	if next.state != "" || s.state != "live" && s.state != "lost" || len(stays) == 0 {
		return
	}
	if s.state == "live" {
		lostSince = s.to
	}
	if s.to-lostSince >= c.plan.WithdrawAfter-c.slack {
		return
	}
	if _, found := c.commandIn(commands, lostSince-c.slack, s.to); found {
		return
	}
	// A rule of this moment denies all that the server lists; that its connection ended a little later has nothing to do with it.
	if _, found := c.commandIn(c.permitCommands(server), s.to-c.slack, s.to); found && s.state == "live" && c.plan.Hides(server) {
		return
	}
	// Rules that came while the server was away deny all that it lists at its return.
	_, permitted := c.commandIn(c.permitCommands(server), lostSince-c.slack, s.to)
	permitted = permitted && c.listsOnlyDenied(server, s.to)
	for _, p := range stays {
		if p.T > s.to+c.skew {
			break
		}
		if p.to < lostSince-c.slack && p.endEvent >= 0 {
			continue
		}
		if p.Phase == messages.NeedsAuth || p.Phase == messages.Disabled || p.Class == messages.ClassUnauthorized {
			return
		}
		changed := c.plan.HoldsBack(server) && c.listsAnotherRevision(server, max(p.T, s.from), s.to)
		returned := p.T >= s.to-c.skew && (permitted || c.plan.HoldsBack(server) && c.listsAnotherRevision(server, lostSince, s.to))
		if p.Phase == messages.Connected && (p.to > s.to+c.skew && s.state == "live" && c.plan.Hides(server) || p.to >= s.to && (returned || changed && s.state == "live")) {
			// The tools are not lost: the server is connected, and all that it lists now is denied, or held back. One that returned, or has just
			// listed something else, may be lost again, or rest, at once.
			return
		}
	}
	c.reportViolation(server, next.event, []int{s.event}, "The connection was lost and its tools were taken away at %s, after %s instead of %s: a blip "+
		"makes the tools flap.", timeText(s.to), timeText(s.to-lostSince), timeText(c.plan.WithdrawAfter))
}

// listsOnlyDenied reports whether a description that may be in force at a time denies every tool of the list that a server sent last
// until then.
func (c *checker) listsOnlyDenied(server string, t time.Duration) bool {
	names, rev := map[int][]string{}, 0
	for _, i := range c.x.ServerEvents(server) {
		switch e := c.x.Event(i); {
		case e.T > t:
		case e.Kind == history.Changed:
			names[e.Rev] = e.Names
		case e.Kind == history.Listed:
			rev = e.Rev
		}
	}
	return len(names[rev]) > 0 && slices.ContainsFunc(c.specVersionsIn(server, t, t), func(d specVersion) bool { return d.allowedTools(names[rev]) == "" })
}

// listsAnotherRevision reports whether a server that was lost has sent a list since then that is not the one which it sent last before: each of its tools
// may be another one now.
func (c *checker) listsAnotherRevision(server string, lost, until time.Duration) bool {
	before, after := 0, 0
	for _, i := range c.x.ServerEvents(server) {
		if e := c.x.Event(i); e.Kind == history.Listed && e.T <= lost {
			before = e.Rev
		} else if e.Kind == history.Listed && e.T <= until {
			after = e.Rev
		}
	}
	return after != 0 && after != before
}

// hasListedTools reports whether a server has sent lists until a time, one of them over its last connection, and none of them was empty.
// Without a list of the last connection, the tools of the one before may have gone with its spec or its loss.
func (c *checker) hasListedTools(server string, t time.Duration) (some bool) {
	empty := map[int]bool{}
	for _, i := range c.x.ServerEvents(server) {
		switch e := c.x.Event(i); {
		case e.T > t:
			return some
		case e.Kind == history.Changed:
			empty[e.Rev] = len(e.Names) == 0
		case e.Kind == history.Opened:
			some = false
		case e.Kind == history.Listed && empty[e.Rev]:
			return false
		case e.Kind == history.Listed:
			some = true
		}
	}
	return some
}
