package gateway

import "maps"

// Held counts what a gateway keeps for agents at one moment.
type Held struct {
	// Sessions are those of the legacy era, and connections on lines; Listens are the subscriptions of the modern era; Watches are the
	// resources that are watched, each once however many watch it.
	Sessions, Listens, Watches int
	// Requests are those of sessions that are being served, and Suspended the calls of the modern era that have asked their agents and have
	// not ended.
	Requests, Suspended int
	// Tasks are the calls that agents have taken over, until their time to live has passed.
	Tasks int
	// Kept are the bytes of the arguments of suspended calls and of tasks, until they have ended at their servers, and of open questions.
	Kept int64
	// Windows are those of agents that have requests at a server, or answers to read.
	Windows int
	// Miscounted counts the counters that differ from what they count: always 0.
	Miscounted int
}

// Held counts what the gateway keeps of agents: nothing, when all have gone and their servers have been told.
func (g *Gateway) Held() (h Held) {
	g.mu.Lock()
	for _, v := range g.views {
		v.mu.Lock()
		h.Miscounted += oneIf(!v.countsLevels())
		h.Sessions, h.Listens = h.Sessions+len(v.sessions), h.Listens+len(v.listens)
		for st := range v.sessions {
			st.mu.Lock()
			h.Requests += len(st.running)
			st.mu.Unlock()
		}
		v.mu.Unlock()
	}
	g.mu.Unlock()
	g.agents.Range(func(_, a any) bool {
		h.Miscounted += oneIf(!a.(*modernAgents).windows.countsBytes())
		return true
	})
	g.watches.mu.Lock()
	h.Watches = len(g.watches.watched)
	h.Miscounted += oneIf(!g.watches.countsPlaces())
	g.watches.mu.Unlock()
	g.suspended.mu.Lock()
	h.Suspended = len(g.suspended.byID)
	h.Miscounted += oneIf(sumOf(g.suspended.count) != h.Suspended)
	g.suspended.mu.Unlock()
	g.tasks.mu.Lock()
	h.Tasks = g.tasks.count
	known := 0
	for _, mine := range g.tasks.byPrincipal {
		known += len(mine)
	}
	h.Miscounted += oneIf(known != h.Tasks)
	g.tasks.mu.Unlock()
	h.Windows, h.Kept = int(g.windows.Load()), g.kept.Total()
	return h
}

// countsLevels reports whether the view counts each session that has set a level, by that level, and no other. The caller holds mu.
func (v *view) countsLevels() bool {
	var wanted [noLevel]int
	for st := range v.sessions {
		if st.leveled.Load() {
			wanted[st.level.Load()]++
		}
	}
	return wanted == v.wanted
}

// countsBytes reports whether the windows without a request count no bytes.
func (a *agentWindows) countsBytes() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.byServer {
		if w.requests == 0 && w.expected|w.unread != 0 {
			return false
		}
	}
	return true
}

// countsPlaces reports whether the places at each server are those of what is watched there. The caller holds mu.
func (w *watches) countsPlaces() bool {
	counted := map[watchKey]*takenPlaces{}
	for to, one := range w.watched {
		p := counted[to.ofServer()]
		if p == nil {
			p = &takenPlaces{byHolder: map[any]int{}}
			counted[to.ofServer()] = p
		}
		p.all++
		for holder := range one.holders {
			p.byHolder[holder]++
		}
	}
	return maps.EqualFunc(counted, w.taken, func(a, b *takenPlaces) bool { return a.all == b.all && maps.Equal(a.byHolder, b.byHolder) })
}

func sumOf(counts map[string]int) (n int) {
	for _, one := range counts {
		n += one
	}
	return n
}

func oneIf(differs bool) int {
	if differs {
		return 1
	}
	return 0
}
