package gateway

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

const (
	// settle is how long a change waits for others, so that a server that changes ten tools is one notice.
	settle = 50 * time.Millisecond
	// workTimeout bounds what the gateway asks servers on its own account.
	workTimeout = 10 * time.Second
)

// startWatching starts the goroutines of a gateway: one for each manager reads events and never waits for a server, and one compares what
// agents see with what they were told, and notifies them.
func (g *Gateway) startWatching(ctx context.Context) {
	for _, w := range g.watching {
		g.work.Go(func() { g.readEvents(ctx, w) })
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
			for _, v := range views {
				v.tellAgents(ctx, now.changesFor(v))
			}
		}
	})
}

// readEvents reads the events of one manager until its watcher is closed.
func (g *Gateway) readEvents(ctx context.Context, w *supervisor.Watcher) {
	for e := range w.Events(ctx) {
		switch e.Kind {
		case messages.EventResourceUpdated:
			g.watches.tellUpdated(e.Server, e.URI)
			continue
		case messages.EventPhase:
			g.passLevel(ctx, e)
		case messages.EventTools, messages.EventPrompts, messages.EventResources, messages.EventRemoved, messages.EventGap:
		default:
			continue
		}
		g.forgetTools(ctx, false)
		g.noteChange(func(said *saidChanges) { said.addEvent(g.ownerOf(e.Server), e.Kind) })
	}
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
type changes struct{ tools, prompts, resources bool }

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
		c.tools = true
	case messages.EventPrompts:
		c.prompts = true
	case messages.EventResources:
		c.resources = true
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
		return changes{true, true, true}
	}
	for from, said := range s.byServer {
		if from.principal != "" && from.principal != v.principal || v.server != "" && v.server != from.server ||
			!v.scope.Load().showsServer(from.server) {
			continue
		}
		c.tools, c.prompts, c.resources = c.tools || said.tools, c.prompts || said.prompts, c.resources || said.resources
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

// passLevel asks a server that has connected for the level of log messages that agents want.
func (g *Gateway) passLevel(ctx context.Context, e messages.Event) {
	g.mu.Lock()
	level := g.level
	g.mu.Unlock()
	if level != "" && e.Status != nil && e.Status.Status == messages.Connected {
		g.work.Go(func() { g.askForLevel(ctx, level, []string{e.Server}) })
	}
}

// offerSums are the lists of a view as agents know them. What nobody has listed is unknown.
type offerSums struct {
	tools              [][]byte
	prompts, resources *listSum
}

type listSum [sha256.Size]byte

// noteListed remembers what an agent was given. The first one that is known stays until the next comparison, which then notifies
// those that were given something else meanwhile, too.
func (v *view) noteListed(note func(known *offerSums)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	note(&v.offers)
}

func sumOfPrompts(list []messages.Prompt, shown []string) *listSum {
	h := sha256.New()
	for i := range list {
		_, _ = h.Write(withName(list[i].Raw, list[i].Name, shown[i]))
	}
	return (*listSum)(h.Sum(nil))
}

func sumOfResources(list []messages.Resource, templates []messages.ResourceTemplate) *listSum {
	h := sha256.New()
	for _, r := range list {
		_, _ = h.Write(r.Raw)
	}
	for _, t := range templates {
		_, _ = h.Write(t.Raw)
	}
	return (*listSum)(h.Sum(nil))
}

// tellAgents compares the lists of a view with those that its agents know, and notifies them of what differs. A list that nobody knows is
// not asked for: its agents are notified when a server says that it has changed (said). The tools are at hand, and always compared. What else there is must be
// asked of servers, and one of them may be slow: that has a goroutine for each view, which ends when nothing more was said.
func (v *view) tellAgents(ctx context.Context, said changes) {
	v.mu.Lock()
	if len(v.sessions) == 0 && len(v.listens) == 0 {
		v.offers = offerSums{} // whoever comes next reads the lists first
		v.mu.Unlock()
		return
	}
	v.mu.Unlock()
	if v.toolsChanged() {
		v.notifyAgents("notifications/tools/list_changed", func(l *listening) bool { return l.tools })
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.uncompared.prompts, v.uncompared.resources = v.uncompared.prompts || said.prompts, v.uncompared.resources || said.resources
	v.compareAgain = true
	if !v.comparing {
		v.comparing = true
		v.g.work.Go(func() { v.compareOffers(ctx) })
	}
}

// toolsChanged compares the tools with those that agents know, and makes them the known ones.
func (v *view) toolsChanged() (changed bool) {
	now := v.currentTools().legacy
	v.noteListed(func(known *offerSums) {
		changed = known.tools != nil && !samePages(known.tools, now)
		known.tools = now
	})
	return changed
}

// noteAgent takes what there is now for what the agents of the view know, if nobody knows anything: the first agent is told of what
// changes from here on, whether it has listed or not.
func (v *view) noteAgent() {
	now := v.currentTools().legacy
	v.noteListed(func(known *offerSums) {
		if known.tools == nil {
			known.tools = now
		}
	})
}

// compareOffers compares prompts and resources until nothing more was said meanwhile. Sessions keep the lists of servers, so what has not
// changed costs no request.
func (v *view) compareOffers(ctx context.Context) {
	for {
		v.mu.Lock()
		before, said := v.offers, v.uncompared
		v.uncompared = changes{}
		if !v.compareAgain {
			v.comparing = false
			v.mu.Unlock()
			return
		}
		v.compareAgain = false
		v.mu.Unlock()
		v.tellOffers(ctx, before, said)
	}
}

// tellOffers compares prompts and resources once with those that agents knew before.
func (v *view) tellOffers(ctx context.Context, before offerSums, said changes) {
	ctx, cancel := context.WithTimeout(supervisor.WithCaller(ctx, v.principal), workTimeout)
	defer cancel()
	if before.prompts != nil {
		now := sumOfPrompts(v.prompts(ctx))
		said.prompts = *before.prompts != *now
		v.noteListed(func(known *offerSums) { known.prompts = now })
	}
	if before.resources != nil {
		now := sumOfResources(v.resources(ctx), v.templates(ctx))
		said.resources = *before.resources != *now
		v.noteListed(func(known *offerSums) { known.resources = now })
	}
	if said.prompts {
		v.notifyAgents("notifications/prompts/list_changed", func(l *listening) bool { return l.prompts })
	}
	if said.resources {
		v.notifyAgents("notifications/resources/list_changed", func(l *listening) bool { return l.resources })
	}
}

// notifyAgents sends a notification to all sessions of the view, and to the subscriptions that want it.
func (v *view) notifyAgents(method string, wanted func(*listening) bool) {
	v.mu.Lock()
	sessions, listens := slices.Collect(maps.Keys(v.sessions)), slices.Collect(maps.Keys(v.listens))
	v.mu.Unlock()
	for _, st := range sessions {
		st.agent.Notify(method, method, nil)
	}
	for _, l := range listens {
		if wanted(l) {
			l.notifyListener(method, nil)
		}
	}
}
