package control

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/control/internal/fence"
)

// A peer is the other side of one connection. The system is asked about it once, when the first request has come.
type peer struct {
	examine func() (fence.Peer, fence.Decision) // cached; safe for concurrent use
}

// peerKey is the key of a connection's peer in its context.
type peerKey struct{}

// withPeer is http.Server.ConnContext. It runs in the loop that accepts connections, so it only reads the clock: the
// time tells later whether a process id was reused.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	// A process that began later cannot be the one that connected.
	accepted := fence.Now()
	return context.WithValue(ctx, peerKey{}, &peer{
		sync.OnceValues(func() (fence.Peer, fence.Decision) { return fence.Examine(conn, accepted) }),
	})
}

// peerOf returns the peer of a request; the zero Peer if nothing is known.
func peerOf(ctx context.Context) fence.Peer {
	if p, ok := ctx.Value(peerKey{}).(*peer); ok {
		from, _ := p.examine()
		return from
	}
	return fence.Peer{}
}

// authorizePeer returns the context of a request whose peer has the right to it, and for the others the reason as an error. reads is
// true for a request that a peer with ReadOnly may send. onRefused, if not nil, is called for the refused ones. Grants for a
// session are limited to the peer's terminal, and the record of calls gets the peer's process.
func authorizePeer(ctx context.Context, reads bool, onRefused func(server, text string)) (context.Context, error) {
	p, ok := ctx.Value(peerKey{}).(*peer)
	if !ok { // the handler is not behind a socket: a test
		return ctx, nil
	}
	// The first request of a connection pays for the examination; it reads files and may wait for a second.
	from, v := p.examine()
	if v.Right < fence.ReadOnly || v.Right < fence.FullAccess && !reads {
		text := v.Reason
		// The process is named, so that the person finds out which program was refused.
		if from.PID() != 0 {
			text = fmt.Sprintf("process %d (%s) may not use the control socket: %s", from.PID(), from.Program(), v.Reason)
		}
		if onRefused != nil {
			onRefused(v.Server, text)
		}
		return nil, &messages.Error{Op: "control", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied,
			Text: "what keeps the servers of this project refuses this: " + text, Fix: v.Fix, Err: messages.ErrDenied}
	}
	caller := from.Session()
	if caller == "" { // a caller of its own, so that it shares no grants
		caller = rand.Text()
	}
	// "Allow for this session" holds for calls with the same caller: for those of one terminal.
	return supervisor.ScopeGrants(audit.WithPeer(ctx, from.PID(), from.Program()), caller), nil
}
