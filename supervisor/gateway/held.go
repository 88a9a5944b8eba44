package gateway

// Held counts what a gateway keeps for agents at one moment.
type Held struct {
	// Sessions are those of the legacy era, and connections on lines; Listens are the subscriptions of the modern era; Watches are the
	// resources that are watched, each once however many watch it.
	Sessions, Listens, Watches int
	// Tasks are the calls that agents have taken over, until their time to live has passed.
	Tasks int
}

// Held counts what the gateway keeps of agents: nothing, when all have gone and their servers have been told.
func (g *Gateway) Held() (h Held) {
	g.mu.Lock()
	for _, v := range g.views {
		v.mu.Lock()
		h.Sessions, h.Listens = h.Sessions+len(v.sessions), h.Listens+len(v.listens)
		v.mu.Unlock()
	}
	g.mu.Unlock()
	g.watches.mu.Lock()
	h.Watches = len(g.watches.watched)
	g.watches.mu.Unlock()
	g.tasks.mu.Lock()
	h.Tasks = g.tasks.count
	g.tasks.mu.Unlock()
	return h
}
