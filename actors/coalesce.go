package actors

import (
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// coalesceEvery is the least time between two events about one thing that a server told of.
	coalesceEvery = 100 * time.Millisecond
	// maxCoalesced bounds the things that wait to be told, beside those that may not be lost.
	maxCoalesced = 1024
)

// changeNotifier are what one connection's server tells of beside its tools. Most never do, so what paces it is made when the first comes.
type changeNotifier struct {
	hub  *Hub
	name string

	once           sync.Once
	lists, updates *coalescer
}

func (n *changeNotifier) initCoalescers() {
	n.lists = &coalescer{publish: func(kind string) {
		n.hub.Publish(messages.Event{Kind: messages.EventKind(kind), Server: n.name})
	}}
	n.updates = &coalescer{publish: func(uri string) {
		n.hub.Publish(messages.Event{Kind: messages.EventResourceUpdated, Server: n.name, URI: uri})
	}}
}

func (n *changeNotifier) noteResources() {
	n.once.Do(n.initCoalescers)
	n.lists.addChange(string(messages.EventResources), true)
}

func (n *changeNotifier) notePrompts() {
	n.once.Do(n.initCoalescers)
	n.lists.addChange(string(messages.EventPrompts), true)
}

// noteUpdated tells of a resource; watched says that it is one that somebody watches, and not a part of it.
func (n *changeNotifier) noteUpdated(uri string, watched bool) {
	n.once.Do(n.initCoalescers)
	n.updates.addChange(uri, watched)
}

// coalescer tells that things have changed: at once after a quiet time, and otherwise what has changed meanwhile every coalesceEvery.
// Several changes of one thing in between become one, and the last is never lost. A server that tells without a pause must
// not push what matters out of a watcher's queue. It is safe for concurrent use.
type coalescer struct {
	publish func(what string)

	mu            sync.Mutex
	lastPublished time.Time // when it told last
	pending       map[string]struct{}
	order         []string
	timerRuns     bool // a timer runs
}

// addChange takes a change. must says that it may not be lost: there are few such things.
func (p *coalescer) addChange(what string, must bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
	if wait := coalesceEvery - time.Since(p.lastPublished); !p.lastPublished.IsZero() && wait > 0 {
		p.timerRuns = true
		time.AfterFunc(wait, func() { // it ends by itself, and tells nobody who has gone
			p.mu.Lock()
			defer p.mu.Unlock()
			p.timerRuns = false
			p.flushChanges()
		})
		return
	}
	p.flushChanges()
}

// flushChanges is called with mu held.
func (p *coalescer) flushChanges() {
	p.lastPublished = time.Now()
	for _, what := range p.order {
		p.publish(what)
	}
	p.pending, p.order = nil, nil
}
