package actors

import (
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// coalesceEvery is the least time between two events about the same thing of one connection.
	coalesceEvery = 100 * time.Millisecond
	// maxCoalesced bounds the things that wait to be published, beside those that must not be lost; further ones are dropped.
	maxCoalesced = 1024
)

// changeNotifier publishes the notifications of one connection's server about resources and prompts. Most servers send none, so the
// coalescers are made when the first one comes.
type changeNotifier struct {
	hub  *Hub
	name string

	// once guards the making of lists (which lists changed) and updates (which resources did).
	once           sync.Once
	lists, updates *coalescer
}

// initCoalescers makes both coalescers.
func (n *changeNotifier) initCoalescers() {
	n.lists = &coalescer{publish: func(kind string) {
		n.hub.Publish(messages.Event{Kind: messages.EventKind(kind), Server: n.name})
	}}
	n.updates = &coalescer{publish: func(uri string) {
		n.hub.Publish(messages.Event{Kind: messages.EventResourceUpdated, Server: n.name, URI: uri})
	}}
}

// noteResources and notePrompts must not lose the last change, so they bypass the bound: there are only two such things.
func (n *changeNotifier) noteResources() {
	n.once.Do(n.initCoalescers)
	n.lists.addChange(string(messages.EventResources), true)
}

func (n *changeNotifier) notePrompts() {
	n.once.Do(n.initCoalescers)
	n.lists.addChange(string(messages.EventPrompts), true)
}

// noteUpdated publishes the update of a resource; watched says that a caller has subscribed to exactly this one, whose update must
// not be lost.
func (n *changeNotifier) noteUpdated(uri string, watched bool) {
	n.once.Do(n.initCoalescers)
	n.updates.addChange(uri, watched)
}

// coalescer publishes that things have changed: the first change after a quiet time at once, later ones together every
// coalesceEvery. Several changes of one thing in between become one, and the last is never lost. Without it, a server that
// notifies without a pause would push more important events out of the watchers' queues. It is safe for concurrent use.
type coalescer struct {
	publish func(what string)

	mu            sync.Mutex
	lastPublished time.Time // zero before the first
	// pending has the things that wait, order has them in the order in which they changed.
	pending   map[string]struct{}
	order     []string
	timerRuns bool
}

// addChange publishes a change or lets it wait. must says that it must not be dropped when too many things wait.
func (p *coalescer) addChange(what string, must bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A thing that waits already will be published with all changes until then.
	if _, known := p.pending[what]; known || len(p.order) >= maxCoalesced && !must {
		return
	}
	if p.pending == nil {
		p.pending = make(map[string]struct{})
	}
	p.pending[what] = struct{}{}
	p.order = append(p.order, what)
	if p.timerRuns {
		return
	}
	// The first change after a quiet time is published at once, because most changes come alone.
	if wait := coalesceEvery - time.Since(p.lastPublished); !p.lastPublished.IsZero() && wait > 0 {
		p.timerRuns = true
		// The timer ends by itself; an event after the manager's end reaches no watcher.
		time.AfterFunc(wait, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.timerRuns = false
			p.flushChanges()
		})
		return
	}
	p.flushChanges()
}

// flushChanges publishes what waits. The caller holds mu.
func (p *coalescer) flushChanges() {
	p.lastPublished = time.Now()
	// The order of the first changes is kept.
	for _, what := range p.order {
		p.publish(what)
	}
	p.pending, p.order = nil, nil
}
