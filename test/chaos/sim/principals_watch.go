package sim

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// This file judges the resources that callers watch at their own instances: a caller that watches is told of each update, of its own instance, and an instance that
// is watched does not end for idleness.

// instanceWatch records the watch of one caller's instance. A watch begins and ends by requests, and while one of them is under way it is not
// judged.
type instanceWatch struct {
	// since is when the newest request that began the watch was answered, -1 while it does not stand. asked is set once any caller has asked for it.
	since time.Duration
	asked bool
	// askedAt is when the newest request that begins it was made.
	askedAt time.Duration
	// endedAt is when the newest request that ends it was answered, 0 if there was none.
	endedAt time.Duration
	// asking are the requests under way that begin it, and ending those that end it.
	asking, ending int
	// updated is when the manager last told of an update.
	updated time.Duration
}

// updateBound is the time in which a caller that watches is told of an update: several within 100 ms are told as one.
const updateBound = time.Second

// watchOf returns what is known of the watch of an instance. The caller holds mu.
func (p *principals) watchOf(name string) *instanceWatch {
	if p.watches == nil {
		p.watches = map[string]*instanceWatch{}
	}
	w := p.watches[name]
	if w == nil {
		w = &instanceWatch{since: -1, updated: -1}
		p.watches[name] = w
	}
	return w
}

// beginWatch notes a request that begins the watch of an instance, or one that ends it. The function that it returns notes its end.
func (p *principals) beginWatch(name string, ends bool) (end func(ok bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watchOf(name)
	w.asked = true
	count, began := &w.asking, p.world.elapsedTime()
	if ends {
		count, w.since = &w.ending, -1
	} else {
		w.askedAt = began
	}
	*count++
	return func(ok bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		*count--
		switch now := p.world.elapsedTime(); {
		case ends:
			w.since, w.endedAt = -1, now
		case w.ending > 0:
			w.since = -1
		// Of a wish to watch and one to end that which cross each other, either may come first to a slow server (seed 30320502).
		case ok && w.since < 0 && (w.endedAt == 0 || w.endedAt < began):
			w.since = now
		}
	}
}

// isWatched reports whether an instance is watched since before a time, and since the commands of the owner which may have ended it with its watch.
// Only the loop calls it, and holds mu.
func (p *principals) isWatched(name string, before time.Duration) bool {
	w := p.watchOf(name)
	return w.since >= 0 && w.since < before && w.ending == 0 && w.since > p.commanded[nameOf(name)]+endsInstances
}

// readUpdates reads the events of the manager. Only the loop calls it.
func (p *principals) readUpdates() {
	if p.watcher == nil {
		return
	}
	for {
		e, err := p.world.nextEvent(p.world.watch.canceledCtx, p.watcher)
		if err != nil {
			return
		}
		if e.Kind != messages.EventResourceUpdated {
			continue
		}
		p.mu.Lock()
		w := p.watchOf(e.Server)
		w.updated = e.Time.Sub(p.world.start)
		asked := w.asked
		p.mu.Unlock()
		if want := resourceOf(e.Server); !asked || scenario.WholeURI(e.URI) != want {
			p.reportViolation("I3", e.Server, fmt.Sprintf("the manager told of an update of %s at %s, and its caller has never asked to watch that", e.URI, e.Server))
		}
	}
}

// resourceOf is the URI of the resource that an instance has in each of its states.
func resourceOf(instance string) string { return "chaos://" + instance + "/one" }

// expectUpdate plans the look after an update that the server's end of an instance has told of.
func (p *principals) expectUpdate(name, principal string, e history.Event) {
	if e.Kind != history.Notified || e.Method != "notifications/resources/updated" {
		return
	}
	p.readUpdates()
	p.agents.expectTold(name, principal, e)
	at := p.world.virtualNow
	p.world.timeline.planAction(at+updateBound, "", func() {
		p.readUpdates()
		p.mu.Lock()
		h := p.hosts[name]
		isUntold := p.isWatched(name, at) && p.watchOf(name).updated < at && p.useOf(name).disturbed+disturbedFor < at && h.conns[e.Conn] != nil
		p.mu.Unlock()
		if isUntold && !p.closing.Load() {
			p.reportViolation("I20", name, fmt.Sprintf("%s told of an update at %s, which its caller watches, and the manager had told nobody by %s", name, at, at+updateBound))
		}
	})
}

// startWatcher has the events of the manager kept until they are read.
func (p *principals) startWatcher(m *supervisor.Manager) { p.watcher = m.Watch(1 << 16) }
