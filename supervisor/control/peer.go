package control

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/control/internal/fence"
)

// peer is the other side of one connection. The system is asked once, when the first request has come.
type peer struct {
	examine func() (fence.Peer, fence.Decision)
}

type peerKey struct{}

// withPeer is http.Server.ConnContext. It runs where connections are accepted, so it reads nothing but a clock.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	accepted := fence.Now()
	return context.WithValue(ctx, peerKey{}, &peer{
		sync.OnceValues(func() (fence.Peer, fence.Decision) { return fence.Examine(conn, accepted) }),
	})
}

// peerOf is the peer of a request; the zero Peer where nothing is known.
func peerOf(ctx context.Context) fence.Peer {
	if p, ok := ctx.Value(peerKey{}).(*peer); ok {
		from, _ := p.examine()
		return from
	}
	return fence.Peer{}
}

// authorizePeers answers those who may have an answer, and tells the others why they may not. What changes nothing is asked with
// GET. refused is told of the others.
func authorizePeers(h http.Handler, onRefused func(server, text string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := r.Context().Value(peerKey{}).(*peer)
		if !ok {
			h.ServeHTTP(w, r)
			return
		}
		from, v := p.examine()
		if v.Right < fence.ReadOnly || v.Right < fence.FullAccess && r.Method != http.MethodGet {
			text := v.Reason
			if from.PID() != 0 {
				text = fmt.Sprintf("process %d (%s) may not use the control socket: %s", from.PID(), from.Program(), v.Reason)
			}
			if onRefused != nil {
				onRefused(v.Server, text)
			}
			writeError(w, &messages.Error{Op: "control", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied,
				Text: "the mcpvisor up of this project refuses this: " + text, Fix: v.Fix, Err: messages.ErrDenied})
			return
		}
		caller := from.Session()
		if caller == "" { // nobody else's grants are this one's
			caller = rand.Text()
		}
		ctx := supervisor.ScopeGrants(audit.WithPeer(r.Context(), from.PID(), from.Program()), caller)
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}
