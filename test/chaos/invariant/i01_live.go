package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// I1: what the catalog shows of a server agrees with what the manager says of it, at every quiet point.
//
//   - live: connected, enabled and of this epoch. A server is seen as connected when its tools are in the catalog and not
//     before, so that entries may be live a moment before the phase says so.
//   - lost: its connection ended, at most WithdrawAfter ago; and not shorter, so that a blip does not make tools flap, unless
//     somebody disabled, removed or changed it or it needs credentials.
//   - cached: a lazy server that rests or is on its way.
//
// A quiet point is one that lasts for longer than the registry waits before it publishes. What is wrong for less than that
// cannot be told from what is being put right.
var live = check("I1", "live, lost and cached tools",
	"A live tool in the snapshot belongs to a connected, enabled server and to the same epoch; cached and lost entries are "+
		"marked, and lost ones gone in time.",
	"The catalog showed no tools.",
	func(c *court) {
		closing := c.closing()
		shows := c.shows()
		for _, server := range c.x.Servers() {
			stays := c.stays(server)
			wishes, commands := c.wishes(server), c.commands(server)
			k := 0
			var lostSince time.Duration
			for i, s := range shows[server] {
				s.to = min(s.to, closing)
				if s.to <= s.from {
					continue
				}
				if s.state != "" {
					c.looked++
				}
				if s.mixed {
					c.violated(server, s.at, nil, "The catalog shows entries of one server in two states or of two epochs at %s.", clock(s.from))
				}
				if len(stays) > 0 {
					for _, p := range split(stays, &k, s.from, s.to) {
						c.agree(server, s, p, wishes)
					}
				}
				if s.state == "lost" {
					// One that was connected again and lost again within one publication is lost anew: its entries have another epoch.
					if i == 0 || shows[server][i-1].state != "lost" || shows[server][i-1].epoch != s.epoch {
						lostSince = s.from
					}
					if s.to-lostSince > c.plan.WithdrawAfter+c.late {
						c.violatedAt(lostSince+c.plan.WithdrawAfter, server, s.at, []int{s.next}, "The tools of the server were lost at %s and had "+
							"to go from the catalog after %s, at %s. They were still shown at %s.", clock(lostSince), clock(c.plan.WithdrawAfter),
							clock(lostSince+c.plan.WithdrawAfter), clock(s.to))
					}
				}
				if i+1 < len(shows[server]) && s.next >= 0 && s.to < closing {
					c.vanished(server, s, shows[server][i+1], lostSince, stays, commands)
				}
			}
		}
	})

// agree judges one piece of time in which both the entries and the phase stay as they are.
func (c *court) agree(server string, s shown, p piece, wishes []since) {
	if s.state == "" || p.to-p.from <= c.moment {
		return
	}
	said, at := "not known to the manager (removed, or not yet there)", s.at
	connected := false
	var epoch uint64
	if p.phase != nil {
		said, epoch = describe(p.phase.Event), p.phase.Epoch
		connected = p.phase.Phase == messages.Connected
		if p.phase.T > s.from {
			at = p.phase.at
		}
	}
	evidence := []int{s.at}
	if p.phase != nil {
		evidence = append(evidence, p.phase.at)
	}
	if from, to, by := unwished(wishes, p.from, p.to); to-from > c.moment {
		c.violatedAt(from, server, at, append(evidence, by), "The catalog shows %d %s tools of the server from %s to %s although it was "+
			"disabled or removed by its owner.", s.count, s.state, clock(from), clock(to))
		return
	}
	switch s.state {
	case "live":
		switch {
		case !connected:
			c.violatedAt(p.from, server, at, evidence, "The catalog shows %d live tools from %s to %s while the server is %s.", s.count, clock(p.from),
				clock(p.to), said)
		case epoch != s.epoch:
			c.violatedAt(p.from, server, at, evidence, "The catalog shows live tools of epoch %d from %s to %s while the server is connected in epoch "+
				"%d.", s.epoch, clock(p.from), clock(p.to), epoch)
		}
	case "lost":
		if connected {
			c.violatedAt(p.from, server, at, evidence, "The tools are marked lost from %s to %s while the server is connected.", clock(p.from), clock(p.to))
		} else if p.phase == nil || p.phase.Phase == messages.Disabled || p.phase.Phase == messages.NeedsAuth {
			c.violatedAt(p.from, server, at, evidence, "The tools are marked lost from %s to %s while the server is %s: nobody expects it back.",
				clock(p.from), clock(p.to), said)
		}
	case "cached":
		switch {
		case !c.isLazy(server, s.from, p.to): // one that is eager from now on keeps them until it is connected
			c.violatedAt(p.from, server, at, evidence, "The tools are marked cached at %s, and the server is not lazy.", clock(p.from))
		case connected:
			c.violatedAt(p.from, server, at, evidence, "The tools are marked cached from %s to %s while the server is connected.", clock(p.from),
				clock(p.to))
		case p.phase == nil || p.phase.Phase == messages.Disabled || p.phase.Phase == messages.NeedsAuth:
			c.violatedAt(p.from, server, at, evidence, "The tools are marked cached from %s to %s while the server is %s: no call can wake it.",
				clock(p.from), clock(p.to), said)
		}
	default:
		c.violatedAt(p.from, server, at, evidence, "An entry has the state %q, which is none.", s.state)
	}
}

// vanished judges tools that went: after a drop they stay in sight, marked lost, for as long as was said.
func (c *court) vanished(server string, s, next shown, lostSince time.Duration, stays []stay, commands []asked) {
	if next.state != "" || s.state != "live" && s.state != "lost" || len(stays) == 0 {
		return
	}
	if s.state == "live" {
		lostSince = s.to
	}
	if s.to-lostSince >= c.plan.WithdrawAfter-c.late {
		return
	}
	if _, found := c.askedIn(commands, lostSince-c.late, s.to); found {
		return
	}
	for _, p := range stays {
		if p.T > s.to+c.moment {
			break
		}
		if p.to < lostSince-c.late && p.next >= 0 {
			continue
		}
		if p.Phase == messages.NeedsAuth || p.Phase == messages.Disabled || p.Class == messages.ClassUnauthorized {
			return
		}
		if p.Phase == messages.Connected && p.to > s.to+c.moment && s.state == "live" && c.plan.Denies(server) {
			return // nothing was lost: all that it lists now is denied
		}
	}
	c.violated(server, next.at, []int{s.at}, "The connection was lost and its tools were taken away at %s, after %s instead of %s: a blip "+
		"makes the tools flap.", clock(s.to), clock(s.to-lostSince), clock(c.plan.WithdrawAfter))
}
