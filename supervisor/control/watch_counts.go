package control

import (
	"context"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// unsubscribeTime bounds the end of a watch: the wait for the changes before it, and the request to the server.
const unsubscribeTime = 2 * time.Second

// subscriber has the methods that watchCounts needs of a supervisor.Manager, which has one subscription of a resource for all callers.
type subscriber interface {
	SubscribeResource(ctx context.Context, server, uri string) error
	UnsubscribeResource(ctx context.Context, server, uri string) error
}

// watchCounts counts the watchers of each resource: the first one subscribes at the server, and the last one
// unsubscribes. Without the count one watcher that leaves would end the updates of the others.
type watchCounts struct {
	mu        sync.Mutex
	resources map[[2]string]*watchedResource // by server and URI
}

// watchedResource is the count of one resource. Its numbers are guarded by watchCounts.mu.
type watchedResource struct {
	// watchers have subscribed and not left yet. users are these, and those that subscribe or leave just now; the
	// resource is forgotten when there are none.
	watchers, users int
	// changing has room for one value, which the watcher holds that subscribes or leaves. Without this order a watcher
	// that leaves as the last could end the subscription that a new one has just been given.
	changing chan struct{}
}

// addWatcher subscribes and counts one watcher. It waits for the watcher that is just leaving, until ctx ends. The caller
// must call end when it stops watching.
func (x *watchCounts) addWatcher(ctx context.Context, m subscriber, server, uri string) (end func(), err error) {
	key := [2]string{server, uri}
	r := x.enterResource(key)
	if !r.beginChange(ctx) {
		x.leaveResource(key, r)
		return nil, &messages.Error{Op: "watch", Server: server, Outcome: messages.OutcomeNotSent, Class: messages.ClassOf(ctx.Err()),
			Text: "another watcher of the resource still waits for the server's answer to its subscription", Err: ctx.Err()}
	}
	defer r.endChange()
	// Each watcher asks, because each must learn of a refusal; a second subscription changes nothing.
	if err := m.SubscribeResource(ctx, server, uri); err != nil {
		x.leaveResource(key, r)
		return nil, err
	}
	x.countWatcher(r, 1)
	return func() {
		// The resource is kept until the server has been asked, so that a new watcher finds this order.
		defer x.leaveResource(key, r)
		// ctx has ended by now, and the server must still be asked.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTime)
		defer cancel()
		// Without its turn this watcher leaves the subscription to the one that takes so long to subscribe.
		inTurn := r.beginChange(ctx)
		if inTurn {
			defer r.endChange()
		}
		if left := x.countWatcher(r, -1); left == 0 && inTurn {
			_ = m.UnsubscribeResource(ctx, server, uri) // at worst the server goes on to send updates that no watcher wants
		}
	}, nil
}

// enterResource counts a user of a resource, so that the resource is not forgotten while the user waits for its turn.
func (x *watchCounts) enterResource(key [2]string) *watchedResource {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.resources[key]
	if r == nil {
		if x.resources == nil {
			x.resources = map[[2]string]*watchedResource{}
		}
		r = &watchedResource{changing: make(chan struct{}, 1)}
		x.resources[key] = r
	}
	r.users++
	return r
}

// leaveResource removes a user, and forgets the resource with the last one.
func (x *watchCounts) leaveResource(key [2]string, r *watchedResource) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r.users--; r.users == 0 {
		delete(x.resources, key)
	}
}

// countWatcher adds n watchers and returns how many there are now.
func (x *watchCounts) countWatcher(r *watchedResource, n int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	r.watchers += n
	return r.watchers
}

// beginChange waits for the turn of this watcher. It returns false if ctx ended first.
func (r *watchedResource) beginChange(ctx context.Context) bool {
	select {
	case r.changing <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *watchedResource) endChange() { <-r.changing }
