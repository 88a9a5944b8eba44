package restart

import (
	"slices"
	"time"
)

// Displace returns the servers whose attempts should be ended, because they have been silent for longest and other servers have not
// been tried: nil, unless as many processes as the limit allows have neither answered nor closed. Call it after Next. The
// owner ends each attempt, and Closed passes its place on; an attempt that answers meanwhile keeps its connection, and Answered
// passes the place on as well. Each grant is returned at most once.
//
// As many are returned as there are free slots and requests with Request.Displaces to take them, less those that were
// displaced before and have not ended: more would kill processes for nothing. It costs no more than UnansweredFactor × Processes.
func (g *Gate) Displace(now time.Time) (servers []string) {
	g.advanceClock(now)
	p := g.processes
	if !p.hasTooManySilent() {
		return nil
	}
	for range min(p.eager, p.width.now-p.slotsHeld) - p.displaced {
		if len(p.silent) == 0 {
			break
		}
		oldest := p.silent[0]
		p.silent = slices.Delete(p.silent, 0, 1)
		oldest.displaced = true
		p.displaced++
		servers = append(servers, oldest.server)
	}
	return servers
}

// endGrant removes a grant that has answered or is closed from every count that it was in.
func (p *pool) endGrant(g *grant) {
	p.releaseSlot(g)
	if g.apart {
		p.installing--
	} else {
		p.unanswered--
	}
	if g.displaced {
		p.displaced--
	}
	if i := slices.Index(p.silent, g); i >= 0 {
		p.silent = slices.Delete(p.silent, i, i+1)
	}
}
