package actors

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Link is the way from a catalog entry to the connection that serves it: what a call needs and nothing that can change.
// It is the catalog's Route.
type Link struct {
	Server string
	Epoch  uint64
	Spec   *messages.Spec

	gate *session.Gate
	// lastUse is when a call last began, in Unix nanoseconds; kept only if the server can be let go when idle.
	lastUse *atomic.Int64
	// refused tells the server's actor of an error that says something about the connection.
	refused func(error)
}

// call runs one tool through the link's admission gate.
func (l *Link) call(ctx context.Context, tool string, args json.RawMessage) (session.Result, error) {
	if l.lastUse != nil {
		l.lastUse.Store(time.Now().UnixNano())
	}
	res, err := l.gate.Call(ctx, tool, args)
	if err != nil {
		switch messages.ClassOf(err) {
		case messages.ClassUnauthorized, messages.ClassNetwork:
			l.refused(err)
		}
	}
	return res, err
}
