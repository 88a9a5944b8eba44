package sim

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
)

// This file lets credentials appear by themselves (renews, in a scenario): the manager waits for them while a server has refused those that it has,
// and then connects the server without a command.

// renewal lets the manager wait for other credentials of a server. The token has it.
type renewal struct {
	// appeared is closed when others appear, and made anew for the next wait. waiting counts the waits.
	appeared chan struct{}
	waiting  int
}

// Await implements auth.Awaiter.
func (t *bearerToken) Await(ctx context.Context, _ http.Header) error {
	t.mu.Lock()
	if t.renewal.appeared == nil {
		t.renewal.appeared = make(chan struct{})
	}
	appeared := t.renewal.appeared
	t.renewal.waiting++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.renewal.waiting--
		t.mu.Unlock()
	}()
	select {
	case <-appeared:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// appear ends the waits for other credentials, and reports whether there are any.
func (t *bearerToken) appear() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renewal.waiting == 0 {
		return false
	}
	t.number++
	close(t.renewal.appeared)
	t.renewal.appeared = nil
	return true
}

// configureRenewals gives the manager the credentials of the servers that say renews.
func (w *simulation) configureRenewals(cfg *supervisor.Config) {
	if !slices.ContainsFunc(w.plan.Servers, func(s scenario.Server) bool { return s.Renews }) {
		return
	}
	cfg.AuthProvider = func(server string, _ messages.Spec) (transports.Authorizer, error) {
		if h := w.servers[server]; h != nil && h.server.Renews {
			return &h.token, nil
		}
		return nil, nil
	}
}

// renewAfter is the longest time from the end of a refusal until other credentials appear.
const renewAfter = 4 * time.Second

// planRenewal lets other credentials appear some time after a server has refused those that it was shown. In the record that is a reconnect
// of an owner, because it does the same. A few times they appear while the server refuses all, too.
func (h *simServer) planRenewal(f scenario.PlannedFault) {
	if !h.server.Renews || f.Fault != "unauthorized" {
		return
	}
	until := f.End
	if h.rng.IntN(4) == 0 {
		until = (f.Begin + f.End) / 2
	}
	for _, at := range []time.Duration{until, f.End} {
		h.w.timeline.planAction(at+time.Duration(1+h.rng.Int64N(int64(renewAfter))), h.server.Name, h.renewCredentials)
	}
}

// renewCredentials has other credentials appear, if the manager waits for them.
func (h *simServer) renewCredentials() {
	if !h.token.appear() {
		return
	}
	h.w.renewals++
	e := history.Event{Side: history.Owner, Kind: history.Command, Server: h.server.Name, Command: history.Renewal + h.w.renewals, Method: "reconnect"}
	h.w.recordEvent(e)
	h.w.needsWait = true
	h.w.users.runAsUser(func() {
		ctx, cancel := context.WithTimeout(context.Background(), settledTimeout)
		defer cancel()
		time.Sleep(noticeTime)
		_ = h.w.manager.Settled(ctx, h.server.Name) // its error tells of servers that cannot be connected, which the phases do as well
		// The answer to a reconnect says why there is no connection.
		if st, err := h.w.manager.ServerStatus(h.server.Name); err == nil && st.Status != messages.Connected {
			e.Class, e.Text = st.Class, st.Error
		}
		if shown := h.w.manager.Tools().Server(h.server.Name); len(shown) > 0 {
			e.Tools, e.Hash = len(shown), hashEntries(shown)
		}
		e.T, e.Kind = h.w.elapsedTime(), history.Done
		h.w.rec.Add(e)
	})
}

// noticeTime is the time in which the manager notices that other credentials have appeared. Until then it says that the server is at rest.
const noticeTime = time.Millisecond
