package supervisor

import (
	"context"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/listindex"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// This file has the prompts, resources and templates of a lazy server that rests. A program that lists while it rests gets what the server
// listed last, as it gets the tools: it would not learn of the offers otherwise, and nothing else of them wakes the server.

// KeptList is one list of a server in the form in which the reader of ReadOrRecall keeps it. The manager remembers it, so that it must not
// change.
type KeptList = listindex.List

// Rests reports whether a lazy server has no connection because no caller has needed it for a while, or is being connected again by a request.
// Its lists are then those that it gave last. A server with an instance for each caller never rests in this sense: each instance may have
// other lists.
func (m *Manager) Rests(server string) bool {
	cell := m.shared.CellOf(server)
	if cell == nil {
		return false
	}
	v := cell.View()
	return mayRest(v.Spec) && v.State.Phase == messages.Pending && v.State.EverConnected && v.State.Cause == nil
}

// mayRest reports whether the lists of a server are remembered for its rest.
func mayRest(spec *messages.Spec) bool {
	return spec.Connect == messages.Lazy && spec.Share != messages.SharePrincipal && spec.InstanceOf == ""
}

// ReadOrRecall lets read make something of a list that the session of a server keeps, as ReadLists does, and remembers it if the server is lazy.
// A lazy server is not connected for it, and not kept from its rest: while it rests, its caller gets the remembered list, nil if there is none, judged as if the server was asked.
// Remembered is only what was listed under the same spec and for the same account.
func (m *Manager) ReadOrRecall(
	ctx context.Context, method, server string, read func(context.Context, *session.Session) (KeptList, error),
) (list KeptList, err error) {
	if m.Rests(server) {
		return m.recallList(ctx, method, server)
	}
	// The owner is read before the list: if the account changes meanwhile, the list counts for the old one and is dropped.
	owner, known := m.listOwnerOf(server)
	isLazy := known && mayRest(owner.Spec)
	if isLazy {
		ctx = context.WithValue(ctx, awakeOnly{}, true)
	}
	err = m.ReadLists(ctx, method, server, func(ctx context.Context, s *session.Session) (err error) {
		list, err = read(ctx, s)
		return err
	})
	switch {
	case err == nil && isLazy && list != nil:
		m.index.KeepList(server, method, owner, list)
		m.forgetIfRemoved(server)
	case err != nil && m.Rests(server): // it was let go at this very moment
		return m.recallList(ctx, method, server)
	}
	return list, err
}

// recallList returns the remembered list of a server that rests.
func (m *Manager) recallList(ctx context.Context, method, server string) (list KeptList, err error) {
	err = m.calls.Handle(ctx, &actors.Request{Method: method, Server: server, Repeatable: true, AwakeOnly: true, Recall: func() error {
		if owner, known := m.listOwnerOf(server); known {
			list = m.index.KeptList(server, method, owner)
		}
		return nil
	}})
	return list, err
}
