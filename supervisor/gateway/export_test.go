package gateway

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// Named is a thing of a server.
type Named struct{ Server, Name string }

// ShowNames returns the names that a gateway of this name shows.
func ShowNames(gateway string, prefix Prefix, all []Named) []string {
	g := &Gateway{naming: namingFor(gateway)}
	own := make([]named, len(all))
	for i, n := range all {
		own[i] = named{n.Server, n.Name}
	}
	return g.namesOf(prefix, own)
}

// MissEvents makes a gateway take note of events that were lost.
func (g *Gateway) MissEvents(ctx context.Context) {
	g.takeEvent(ctx, 0, messages.Event{Kind: messages.EventGap, Missed: 1})
}

// AddWatch makes who a watcher of a resource. The gateway calls tell with each update.
func (g *Gateway) AddWatch(ctx context.Context, server, uri string, who any, tell func(uri string)) error {
	return g.watches.addWatch(ctx, watchKey{server: server, uri: uri}, &watchWish{who: who, holder: who, tell: tell})
}

// NoteUpdate handles an update of a resource as if its server had sent it.
func (g *Gateway) NoteUpdate(ctx context.Context, server, uri string) {
	g.takeEvent(ctx, 0, messages.Event{Kind: messages.EventResourceUpdated, Server: server, URI: uri})
}

// ShareWindow sets the size of the windows that the agents of a principal share, before there are any.
func (g *Gateway) ShareWindow(size int64) { g.shared = size }

// KeepAtMost sets the bytes that the gateway keeps for all principals without a request that waits, before there are any.
func (g *Gateway) KeepAtMost(size int64) { g.kept = budget.New(size) }
