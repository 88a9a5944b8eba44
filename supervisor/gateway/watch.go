package gateway

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

const (
	// settle is how long a change waits for others, so that a server that changes ten tools is one notice. The times by which the events of
	// servers are gathered, 50 and 100 ms, are no multiples of it: an event that came in the instant of a comparison would be in it or not
	// by chance, and no random day could be repeated.
	settle = 45 * time.Millisecond
	// gathered is a little longer than what a server says can be on its way here: the longer of those times, and settle.
	gathered = 190 * time.Millisecond
	// workTimeout bounds what the gateway asks servers on its own account.
	workTimeout = 10 * time.Second
)

// startWatching starts the goroutines of a gateway: one for each manager reads events and never waits for a server, and one compares what
// agents see with what they were told, and notifies them.
func (g *Gateway) startWatching(ctx context.Context) {
	for i, w := range g.watching {
		g.work.Go(func() { g.readEvents(ctx, i, w) })
	}
	g.work.Go(func() {
		for {
			select {
			case <-g.changed:
			case <-ctx.Done():
				return
			}
			if !waitFor(ctx, settle) {
				return
			}
			g.saidMu.Lock()
			now := g.said
			g.said = saidChanges{}
			g.saidMu.Unlock()
			g.mu.Lock()
			views := slices.Collect(maps.Values(g.views))
			g.mu.Unlock()
			slices.SortFunc(views, func(a, b *view) int { return a.compareKey(b.viewKey) }) // so that a random day can be repeated
			for _, v := range views {
				v.tellAgents(ctx, now.changesFor(v))
			}
		}
	})
}

// readEvents reads the events of the manager with this number until its watcher is closed.
func (g *Gateway) readEvents(ctx context.Context, i int, w *supervisor.Watcher) {
	for e := range w.Events(ctx) {
		g.takeEvent(ctx, i, e)
	}
}

// takeEvent acts on one event of the manager with this number.
func (g *Gateway) takeEvent(ctx context.Context, i int, e messages.Event) {
	// No server speaks for one of another manager that hides it.
	isShown := func(server string) bool { return g.all.Of(server) == g.all[i] }
	switch e.Kind {
	case messages.EventResourceUpdated:
		if isShown(e.Server) {
			g.watches.tellUpdated(e.Server, e.URI)
		}
		return
	case messages.EventPhase:
		if e.Status != nil && e.Status.Status == messages.Connected {
			g.askBehind(func(ctx context.Context) { g.askForLevel(ctx, e.Server, func() {}) })
			g.readLazily(e.Server)
		}
	case messages.EventRemoved:
		g.levels.forgetServer(e.Server)
	case messages.EventGap:
		g.watches.tellMissed(isShown)
	case messages.EventPrompts, messages.EventResources:
		g.readLazily(e.Server)
	case messages.EventTools:
	default:
		return
	}
	g.forgetTools(ctx, false)
	g.noteChange(func(said *saidChanges) { said.addEvent(g.ownerOf(e.Server), e.Kind) })
}

// noteChange adds to what agents are to be told, and has the views compared.
func (g *Gateway) noteChange(add func(*saidChanges)) {
	g.saidMu.Lock()
	add(&g.said)
	g.saidMu.Unlock()
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// whose names a server, or the instance of it that one principal has.
type whose struct{ server, principal string }

func (g *Gateway) ownerOf(name string) whose {
	if server, principal, ok := g.all.Of(name).InstanceOf(name); ok {
		return whose{server, principal}
	}
	return whose{server: name}
}

// changes are the lists that servers have said to have changed.
type changes [noticeKinds]bool

func (c *changes) add(more changes) {
	for n := range more {
		c[n] = c[n] || more[n]
	}
}

// saidChanges has what each server has said.
type saidChanges struct {
	all      bool // events were missed
	byServer map[whose]changes
}

func (s *saidChanges) addEvent(from whose, kind messages.EventKind) {
	if s.byServer == nil {
		s.byServer = map[whose]changes{}
	}
	c := s.byServer[from]
	switch kind {
	case messages.EventTools:
		c[toolsNotice] = true
	case messages.EventPrompts:
		c[promptsNotice] = true
	case messages.EventResources:
		c[resourcesNotice] = true
	case messages.EventGap:
		s.all = true
	default:
		return
	}
	s.byServer[from] = c
}

// changesFor returns what concerns a view: what servers have said that it shows, and of instances those of its principal.
func (s *saidChanges) changesFor(v *view) (c changes) {
	if s.all {
		return changes{toolsNotice: true, promptsNotice: true, resourcesNotice: true}
	}
	for from, said := range s.byServer {
		if from.principal != "" && from.principal != v.principal || v.server != "" && v.server != from.server ||
			!v.scope.Load().showsServer(from.server) {
			continue
		}
		c.add(said)
	}
	return c
}

// waitFor waits, and reports whether ctx has not ended meanwhile.
func waitFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// noteListed remembers that an agent was given a list. The first one that is known stays until the next comparison, which then notifies
// those that were given something else meanwhile, too. The resources and their templates have one notification, so that who knows one
// knows both.
func (v *view) noteListed(ctx context.Context, kind listKind, sum *listSum, due time.Time) {
	for other := range listKinds {
		if other != kind && lists[other].notice == lists[kind].notice && !v.knows(other) {
			v.noteKnown(other, &v.offersOf(ctx, other, due).sum)
		}
	}
	v.noteKnown(kind, sum)
	v.mu.Lock()
	v.served[kind] = sum
	isOther := v.known[kind] != nil && *v.known[kind] != *sum
	v.gaveOther[kind] = v.gaveOther[kind] || isOther
	v.mu.Unlock()
	if isOther { // the comparison may have been made between the list and this note
		v.g.noteChange(func(*saidChanges) {})
	}
}

// knows reports whether an agent of the view knows a list.
func (v *view) knows(kind listKind) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[kind] != nil
}

// noteKnown takes a list for the one that agents know, if they know none.
func (v *view) noteKnown(kind listKind, sum *listSum) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known[kind] == nil {
		v.known[kind], v.firstKnown[kind], v.knownSince[kind] = sum, true, time.Now()
	}
}

// distrustKnown has the first lists count as read after the changes of which servers have told, where they were read so short a time ago that these
// changes may have been on their way: a comparison because of another list may have come between. The caller holds mu.
func (v *view) distrustKnown(said changes) {
	for kind := range listKinds {
		if kind != toolList && said[lists[kind].notice] && time.Since(v.knownSince[kind]) < gathered {
			v.firstKnown[kind] = true
		}
	}
}

// replaceKnown makes a list the one that agents know, and reports whether they knew another one. Where they know one only since the last
// comparison, that may have been read after the change: then it has changed for the others if a server said so (said). A list that is again as it
// was has changed for an agent that was given another one in between.
func (v *view) replaceKnown(kind listKind, sum *listSum, said bool) (changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	changed = v.known[kind] != nil && (*v.known[kind] != *sum || v.gaveOther[kind] || v.firstKnown[kind] && said)
	v.known[kind], v.firstKnown[kind], v.gaveOther[kind] = sum, false, false
	return changed
}

// tellAgents compares the lists of a view with those that its agents know, and notifies them of what differs. A list that nobody knows is
// not asked for: its agents are notified when a server says that it has changed (said). The tools are at hand, and always compared. What
// else there is must be asked of servers, and one of them may be slow: that has a goroutine for each view, which ends when nothing more
// was said.
func (v *view) tellAgents(ctx context.Context, said changes) {
	v.mu.Lock()
	if len(v.sessions) == 0 && len(v.listens) == 0 {
		v.known, v.gaveOther = [listKinds]*listSum{}, [listKinds]bool{} // the next agent reads the lists first
		v.mu.Unlock()
		return
	}
	v.mu.Unlock()
	if v.replaceKnown(toolList, &v.currentTools().sum, false) {
		v.notifyAgents(toolsNotice)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.distrustKnown(said)
	v.uncompared.add(said)
	v.compareAgain = true
	if !v.comparing {
		v.comparing = true
		v.g.work.Go(func() { v.compareOffers(ctx) })
	}
}

// noteAgent takes what there is now for what the agents of the view know, if nobody knows anything: the first agent is told of what
// changes from here on, whether it has listed or not.
func (v *view) noteAgent() { v.noteKnown(toolList, &v.currentTools().sum) }

// compareOffers compares prompts and resources until nothing more was said meanwhile. Sessions keep the lists of servers, so what has not
// changed costs no request.
func (v *view) compareOffers(ctx context.Context) {
	for {
		v.mu.Lock()
		said := v.uncompared
		v.uncompared = changes{}
		if !v.compareAgain {
			v.comparing = false
			v.mu.Unlock()
			return
		}
		v.compareAgain = false
		v.mu.Unlock()
		v.tellOffers(ctx, said)
	}
}

// tellOffers compares prompts and resources once with those that agents know.
func (v *view) tellOffers(ctx context.Context, said changes) {
	ctx, cancel := context.WithTimeout(supervisor.WithCaller(ctx, v.principal), workTimeout)
	defer cancel()
	for n := promptsNotice; n < noticeKinds; n++ {
		changed := false
		for kind := range listKinds {
			switch {
			case lists[kind].notice != n:
			case v.knows(kind):
				changed = v.replaceKnown(kind, &v.offersOf(ctx, kind, time.Now().Add(partWait)).sum, said[n]) || changed
			default: // the change may be in this list: an agent that has read one of the two may listen for both
				changed = said[n] || changed
			}
		}
		if changed {
			v.notifyAgents(n)
		}
	}
}

// compareListens orders subscriptions as they began.
func compareListens(a, b *listening) int { return cmp.Compare(a.number, b.number) }

// notifyAgents sends a notification to all sessions of the view, and to the subscriptions that want it, in the order in which they began: in
// that of a map no random day could be repeated.
func (v *view) notifyAgents(n notice) {
	v.mu.Lock()
	sessions, listens := slices.Collect(maps.Keys(v.sessions)), slices.Collect(maps.Keys(v.listens))
	v.mu.Unlock()
	slices.SortFunc(sessions, func(a, b *session) int { return cmp.Compare(a.number, b.number) })
	slices.SortFunc(listens, compareListens)
	for _, st := range sessions {
		st.agent.Notify(notices[n].method, notices[n].method, nil)
	}
	for _, l := range listens {
		if l.wants[n] {
			l.notifyListener(notices[n].method, nil)
		}
	}
}
