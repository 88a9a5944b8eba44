package actors

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// Catalog is where the newest snapshot is published. It outlives the registry actor: a restarted registry continues the
// generation that readers have seen.
type Catalog struct {
	snapshot atomic.Pointer[catalog.Snapshot]
}

// NewCatalog publishes an empty snapshot.
func NewCatalog(n messages.Naming) *Catalog {
	c := &Catalog{}
	c.snapshot.Store(catalog.Empty(n))
	return c
}

// Snapshot is the newest snapshot. No lock, no allocation.
func (c *Catalog) Snapshot() *catalog.Snapshot { return c.snapshot.Load() }

// RegistryConfig is what the registry actor is made of.
type RegistryConfig struct {
	Catalog *Catalog
	Hub     *Hub
	// WithdrawAfter is how long the tools of a lost connection stay in sight; 5 s.
	WithdrawAfter time.Duration
}

type (
	// Sync is answered by calling Done after everything that was sent to the registry before it has been published.
	Sync struct{ Done func() }

	// announcement is a change whose sender is told, by seen, when every reader sees it. seen must not block.
	announcement struct {
		catalog.Change
		onPublished func()
	}

	flushDue struct{}
	expire   struct{ change catalog.Change }
)

// maxPublishGap bounds how long a change waits for others to be published with it.
const maxPublishGap = 25 * time.Millisecond

// Registry is the actor that writes the catalog. Changes that wait in its mailbox together become one snapshot; when a
// snapshot is expensive (ten thousand tools) it waits a few times its cost for more, at most maxPublishGap.
type Registry struct {
	cfg         RegistryConfig
	pending     []catalog.Change
	onPublished []func() // of the pending announcements
	flushing    bool
	cost        time.Duration // of the last publication
}

// NewRegistry makes the actor.
func NewRegistry(cfg RegistryConfig) *Registry {
	if cfg.WithdrawAfter == 0 {
		cfg.WithdrawAfter = 5 * time.Second
	}
	return &Registry{cfg: cfg}
}

// Receive implements actor.Actor.
func (r *Registry) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case catalog.Change:
		r.pending = append(r.pending, m)
		r.schedulePublish(ctx)
		if m.Kind == catalog.Lose {
			root, self := ctx.ActorSystem().Root, ctx.Self()
			expiry := expire{catalog.Change{Kind: catalog.Expire, Server: m.Server, Epoch: m.Epoch, Rev: m.Rev}}
			time.AfterFunc(r.cfg.WithdrawAfter, func() { root.Send(self, expiry) })
		}
	case announcement:
		r.pending, r.onPublished = append(r.pending, m.Change), append(r.onPublished, m.onPublished)
		r.schedulePublish(ctx)
	case expire:
		r.pending = append(r.pending, m.change)
		r.schedulePublish(ctx)
	case flushDue:
		r.flushing = false
		r.publishPending()
	case Sync:
		r.publishPending()
		m.Done()
	}
}

// schedulePublish arranges a publication after the messages that are in the mailbox now.
func (r *Registry) schedulePublish(ctx actor.Context) {
	if r.flushing {
		return
	}
	r.flushing = true
	gap := min(4*r.cost, maxPublishGap)
	if gap < time.Millisecond {
		ctx.Send(ctx.Self(), flushDue{})
		return
	}
	root, self := ctx.ActorSystem().Root, ctx.Self()
	time.AfterFunc(gap, func() { root.Send(self, flushDue{}) })
}

func (r *Registry) publishPending() {
	if len(r.pending) == 0 {
		return
	}
	start := time.Now()
	changes, seen := r.pending, r.onPublished
	r.pending, r.onPublished = nil, nil
	next, changed := r.cfg.Catalog.Snapshot().Apply(changes...)
	r.cfg.Catalog.snapshot.Store(next)
	r.cost = time.Since(start)
	if changed && r.cfg.Hub.Watched() {
		r.publishEvent(next, changes)
	}
	for _, f := range seen {
		f()
	}
}

func (r *Registry) publishEvent(next *catalog.Snapshot, changes []catalog.Change) {
	e := messages.Event{Kind: messages.EventTools, Generation: next.Generation(), Server: changes[0].Server}
	for _, c := range changes[1:] {
		if c.Server != e.Server {
			e.Server = "" // several servers in one publication
		}
	}
	r.cfg.Hub.Publish(e)
}
