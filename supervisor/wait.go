package supervisor

import (
	"context"
	"sync"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/core"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

// Settled returns when none of the named servers, of all if none is named, changes its phase by itself any more: each is
// connected, has failed with the next attempt decided, is disabled, needs credentials, or rests. It waits for no other server, and
// says nothing about which of these it is: Ready does. The error is that of each server which is never tried again, because its spec
// cannot work or is refused (ErrNotConnected, with the reason and Error.Server); ErrUnknownServer for a name that no server has; ctx's
// error if that ended first.
func (m *Manager) Settled(ctx context.Context, servers ...string) error {
	var unusable []error
	err := m.awaitServers(ctx, servers, func(cells []*actors.Cell, ticket uint64) error {
		for _, cell := range cells {
			v, err := cell.Wait(ctx, func(v *actors.View) bool {
				// Seen says that the actor has handled all commands from before; without it an old settled state would be taken
				// for the new.
				return v.Seen >= ticket && v.State.Settled() && !isLost(v) && isRetryKnown(v) || v.State.Removing
			})
			if err != nil {
				return &Error{Op: opWait, Class: messages.ClassOf(err), Server: v.Name,
					Text: "still " + describePhase(v) + " when the context ended", Err: err}
			}
			if v.State.Phase == messages.Failed && v.State.Retry == messages.RetryNever {
				unusable = append(unusable, m.calls.NotReadyError(opWait, v.Name, nil))
			}
		}
		return nil
	})
	switch {
	case err != nil || len(unusable) == 0:
		return err
	case len(unusable) == 1:
		return unusable[0]
	}
	return joinedErrors(unusable)
}

// Ready returns nil when every named server can be called, and its tools are in the catalog: it is connected, or it is a lazy server
// that rests, which its first call connects. With no name it waits for all servers that are not disabled. A server that fails and
// is tried again is waited for, until ctx ends; one that nothing but a person or a command can connect ends the wait at
// once. The error is the one that a call of that server would get: ErrNotConnected with the reason and Error.RetryAfter,
// ErrNeedsAuth, ErrDisabled, ErrUnknownServer; if ctx ended first, errors.Is finds ctx's error, too.
func (m *Manager) Ready(ctx context.Context, servers ...string) error {
	if ctx == nil {
		server := ""
		if len(servers) == 1 {
			server = servers[0]
		}
		return refusal.NilContextError(opWait, server, "")
	}
	all := len(servers) == 0
	bounded, stop := context.WithCancel(ctx)
	defer stop()
	var once sync.Once
	var first error
	return m.awaitServers(ctx, servers, func(cells []*actors.Cell, ticket uint64) error {
		var waits sync.WaitGroup
		for _, cell := range cells {
			waits.Go(func() {
				if err := m.awaitReady(bounded, cell, ticket, all); err != nil {
					// The first server that cannot be called ends the waits for the others.
					once.Do(func() { first = err; stop() })
				}
			})
		}
		waits.Wait()
		return first
	})
}

// awaitReady waits until the server can be called. skipDisabled takes a server that is disabled or removed for one.
func (m *Manager) awaitReady(ctx context.Context, cell *actors.Cell, ticket uint64, skipDisabled bool) error {
	callable := false
	v, err := cell.Wait(ctx, func(v *actors.View) bool {
		callable = v.Seen >= ticket && !isLost(v) && (v.State.Phase == messages.Connected || v.State.Step == messages.Idle)
		return callable || v.State.Removing || v.Seen >= ticket && isOver(v)
	})
	if err == nil && callable || skipDisabled && (v.State.Removing || v.State.Phase == messages.Disabled) {
		return nil
	}
	return m.calls.NotReadyError(opWait, v.Name, err)
}

// isLost reports whether the connection has ended, or is being closed, and the server's actor has not announced it yet. A caller
// whose call has just ended with the connection is ahead of the actor, and another view follows.
func isLost(v *actors.View) bool { return v.Link != nil && !v.Link.Open() }

// isOver reports whether nothing but a person or a command can connect the server.
func isOver(v *actors.View) bool {
	switch v.State.Phase {
	case messages.Disabled, messages.NeedsAuth:
		return true
	case messages.Failed:
		return v.State.Retry == messages.RetryNever
	case messages.Pending, messages.Connected:
	}
	return false
}

// isRetryKnown reports whether the supervisor has answered a failure: a failed server without a Retry still waits for it.
func isRetryKnown(v *actors.View) bool {
	return v.State.Phase != messages.Failed || v.State.Retry != ""
}

// opWait is the operation in the errors of Settled and Ready.
const opWait = "wait"

// awaitServers calls await with the named servers, with all that exist now if none is named, and the ticket of the commands that
// were given before; then it waits until the catalog shows what the servers have announced.
func (m *Manager) awaitServers(ctx context.Context, servers []string, await func(cells []*actors.Cell, ticket uint64) error) error {
	ticket, err := m.awaitHandled(ctx, opWait)
	if err != nil {
		return err
	}
	all := len(servers) == 0
	if all {
		servers = m.Servers()
	}
	cells := make([]*actors.Cell, 0, len(servers))
	for _, name := range servers {
		cell := m.shared.CellOf(name)
		switch {
		case cell != nil:
			cells = append(cells, cell)
		case !all: // otherwise it was removed just now
			return m.unknownServerError(opWait, name)
		}
	}
	if err := await(cells, ticket); err != nil {
		return err
	}
	return m.awaitCatalog(ctx, opWait)
}

// awaitHandled returns when the supervisor has handled every command that was sent before it. The servers' actors get a barrier
// then, and have handled theirs when their View.Seen reaches the ticket that is returned.
func (m *Manager) awaitHandled(ctx context.Context, op string) (ticket uint64, err error) {
	return askSupervisor(ctx, m, op, "", func(reply func(uint64)) any { return core.Barrier{Reply: reply} })
}
