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
// not asked for: its agents are notified when a server says that it has changed (said). Sessions keep the lists of servers, so what
// has not changed costs no request.
func (v *view) tellAgents(ctx context.Context, said changes) {
	v.mu.Lock()
	before := v.offers
	if len(v.sessions) == 0 && len(v.listens) == 0 {
		v.offers = offerSums{} // whoever comes next reads the lists first
		v.mu.Unlock()
		return
	}
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(supervisor.WithCaller(ctx, v.principal), workTimeout)
	defer cancel()
	now := before
	if before.tools != nil {
		now.tools = v.currentTools().legacy
		said.tools = !samePages(before.tools, now.tools)
	}
	if before.prompts != nil {
		now.prompts = sumOfPrompts(v.prompts(ctx))
		said.prompts = *before.prompts != *now.prompts
	}
	if before.resources != nil {
		now.resources = sumOfResources(v.resources(ctx), v.templates(ctx))
		said.resources = *before.resources != *now.resources
	}
	v.mu.Lock()
	// An agent may have listed meanwhile what nobody knew before.
	v.offers = offerSums{tools: now.tools, prompts: now.prompts, resources: now.resources}
	sessions, listens := slices.Collect(maps.Keys(v.sessions)), slices.Collect(maps.Keys(v.listens))
	v.mu.Unlock()
	for _, kind := range []struct {
		changed bool
		method  string
		wanted  func(*listening) bool
	}{
		{said.tools, "notifications/tools/list_changed", func(l *listening) bool { return l.tools }},
		{said.prompts, "notifications/prompts/list_changed", func(l *listening) bool { return l.prompts }},
		{said.resources, "notifications/resources/list_changed", func(l *listening) bool { return l.resources }},
	} {
		if !kind.changed {
			continue
		}
		for _, st := range sessions {
			st.agent.Notify(kind.method, kind.method, nil)
		}
		for _, l := range listens {
			if kind.wanted(l) {
				l.notifyListener(kind.method, nil)
			}
		}
	}
}
