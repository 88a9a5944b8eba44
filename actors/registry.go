package actors

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// Catalog publishes the newest snapshot. It outlives the registry actor, so that a successor continues the generation that readers
// have seen.
type Catalog struct {
	snapshot atomic.Pointer[catalog.Snapshot]
}

// NewCatalog makes a catalog with an empty snapshot; n names the tools of all its successors.
func NewCatalog(n messages.Naming) *Catalog {
	c := &Catalog{}
	c.snapshot.Store(catalog.Empty(n))
	return c
}

// Snapshot returns the newest snapshot, without a lock or an allocation.
func (c *Catalog) Snapshot() *catalog.Snapshot { return c.snapshot.Load() }

// RegistryConfig has what NewRegistry needs.
type RegistryConfig struct {
	Catalog *Catalog
	Hub     *Hub
	// WithdrawAfter is the time for which the tools of a lost connection stay visible; 0 is 5 s.
	WithdrawAfter time.Duration
}

type (
	// Sync makes the registry call Done after it has published everything that was sent to it before. Done must not block.
	Sync struct{ Done func() }

	// announcement is a change whose sender is notified, by onPublished, when every reader sees it. onPublished must not block.
	announcement struct {
		catalog.Change
		onPublished func()
	}

	flushDue    struct{}
	withdrawDue struct{}

	// withdrawal is the end of the tools of a lost connection. The change carries the mark of that loss: tools that were announced
	// again meanwhile are not dropped by it.
	withdrawal struct {
		at     time.Time
		change catalog.Change
	}
)

// maxPublishGap bounds how long a change waits for others to be published in the same snapshot.
const maxPublishGap = 25 * time.Millisecond

// Registry is the actor that writes the catalog. Changes that are in its mailbox together become one snapshot. When a
// snapshot is expensive (ten thousand tools) it waits for more changes, four times the cost of the last one, at most maxPublishGap.
type Registry struct {
	cfg         RegistryConfig
	pending     []catalog.Change
	onPublished []func()      // of the announcements in pending
	flushing    bool          // a flushDue is on its way
	cost        time.Duration // how long the last publication took
	// withdrawals are in the order of their times, because all wait equally long. One timer runs for the first of them.
	withdrawals               []withdrawal
	withdrawTimer, flushTimer *time.Timer
}

// NewRegistry makes the actor; it continues the snapshot that cfg.Catalog has.
func NewRegistry(cfg RegistryConfig) *Registry {
	if cfg.WithdrawAfter == 0 {
		cfg.WithdrawAfter = 5 * time.Second
	}
	return &Registry{cfg: cfg}
}

// Receive implements actor.Actor. A panic is not caught here: the supervisor replaces the actor, and the servers announce their
// tools to the successor.
func (r *Registry) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case catalog.Change:
		// The mailbox may hold hundreds of changes after a reload: they become one snapshot.
		r.pending = append(r.pending, m)
		r.schedulePublish(ctx)
		if m.Kind == catalog.Lose {
			r.withdrawals = append(r.withdrawals, withdrawal{time.Now().Add(r.cfg.WithdrawAfter), catalog.Change{Kind: catalog.Expire, Server: m.Server,
				Epoch: m.Epoch, Rev: m.Rev}})
			// A timer that runs already is for an earlier one.
			if len(r.withdrawals) == 1 {
				r.armWithdrawal(ctx)
			}
		}
	case announcement:
		r.pending, r.onPublished = append(r.pending, m.Change), append(r.onPublished, m.onPublished)
		r.schedulePublish(ctx)
	case withdrawDue:
		for now := time.Now(); len(r.withdrawals) > 0 && !r.withdrawals[0].at.After(now); r.withdrawals = r.withdrawals[1:] {
			r.pending = append(r.pending, r.withdrawals[0].change)
		}
		r.schedulePublish(ctx)
		r.armWithdrawal(ctx)
	case flushDue:
		r.flushing = false
		r.publishPending()
	// What is pending is published first, since the sender waits for it.
	case Sync:
		r.publishPending()
		m.Done()
	// Nobody reads what the timers of an actor that has ended would send.
	case *actor.Stopping:
		for _, timer := range []*time.Timer{r.withdrawTimer, r.flushTimer} {
			if timer != nil {
				timer.Stop()
			}
		}
	}
}

// armWithdrawal arms the timer for the first withdrawal, if there is one.
func (r *Registry) armWithdrawal(ctx actor.Context) {
	if len(r.withdrawals) == 0 {
		r.withdrawals = nil // its memory is freed
		return
	}
	root, self := ctx.ActorSystem().Root, ctx.Self()
	r.withdrawTimer = time.AfterFunc(time.Until(r.withdrawals[0].at), func() { root.Send(self, withdrawDue{}) })
}

// schedulePublish arranges one publication behind the messages that are in the mailbox now.
func (r *Registry) schedulePublish(ctx actor.Context) {
	// A publication is on its way and will include this change.
	if r.flushing {
		return
	}
	r.flushing = true
	// A cheap snapshot is published behind the messages of this moment; before an expensive one the registry waits longer for more.
	gap := min(4*r.cost, maxPublishGap)
	if gap < time.Millisecond {
		ctx.Send(ctx.Self(), flushDue{})
		return
	}
	root, self := ctx.ActorSystem().Root, ctx.Self()
	r.flushTimer = time.AfterFunc(gap, func() { root.Send(self, flushDue{}) })
}

// publishPending applies the pending changes to the newest snapshot and publishes the result, then the event, and then notifies the
// senders: in this order a notified sender finds its tools in the catalog.
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

// publishEvent publishes one event for the whole burst; it names the server if all changes are of one.
func (r *Registry) publishEvent(next *catalog.Snapshot, changes []catalog.Change) {
	// Watchers read the new snapshot; the event carries its generation only.
	e := messages.Event{Kind: messages.EventTools, Generation: next.Generation(), Server: changes[0].Server}
	for _, c := range changes[1:] {
		if c.Server != e.Server {
			e.Server = "" // changes of several servers
		}
	}
	r.cfg.Hub.Publish(e)
}
