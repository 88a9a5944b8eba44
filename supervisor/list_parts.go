package supervisor

import (
	"context"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// maxParallelLists bounds how many servers are asked at once for one list.
const maxParallelLists = 64

// listPart is one server's part of a list, or the error in its place.
type listPart[T any] struct {
	server string
	items  []T
	err    error
}

// gatherLists asks the named servers, or every connected one that the rules let be read, in parallel. The parts are in the order
// of the names. method is that of the request; own sets the server's id on each item.
func gatherLists[T any](
	ctx context.Context, m *Manager, method string, servers []string,
	list func(context.Context, *session.Session) (session.Listing[T], error), own func(item *T, server string),
) []listPart[T] {
	switch {
	case ctx == nil:
		return []listPart[T]{{err: refusal.NilContextError("read", "", "")}}
	case m.closing.Load():
		return []listPart[T]{{err: refusal.ClosedError("read")}}
	}
	if len(servers) == 0 {
		servers = m.readableServers(ctx)
	}
	// Each goroutine writes its own element, so no lock is needed.
	parts := make([]listPart[T], len(servers))
	// A slot is taken before the goroutine starts, so there are never more goroutines than slots.
	turns := make(chan struct{}, maxParallelLists)
	var wg sync.WaitGroup
	for i, server := range servers {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			p := &parts[i]
			p.server = server
			p.err = m.ReadLists(ctx, method, server, func(ctx context.Context, s *session.Session) error {
				got, err := list(ctx, s)
				// The session's own list is shared with other callers.
				p.items = slices.Clone(got.Items)
				return err
			})
			for k := range p.items {
				own(&p.items[k], server)
			}
		})
	}
	wg.Wait()
	return parts
}

// readableServers returns the connected servers whose resources and prompts the rules let be read, without those that are hidden from the
// request.
func (m *Manager) readableServers(ctx context.Context) []string {
	return slices.DeleteFunc(m.ConnectedServers(), func(name string) bool { return isHidden(ctx, name) || m.permissions.CheckRead(name) != nil })
}

// joinParts returns all items as one list, and the errors of the servers that failed as one error.
func joinParts[T any](parts []listPart[T]) ([]T, error) {
	// An empty list is not nil: it is written as JSON.
	out, errs := []T{}, []error(nil)
	for _, p := range parts {
		out = append(out, p.items...)
		if p.err != nil {
			errs = append(errs, p.err)
		}
	}
	if len(errs) > 0 {
		return out, joinedErrors(errs)
	}
	return out, nil
}

// ReadLists lets f read a list that the session of a server keeps, by the method that asks for it. Sessions share what they keep, so f must
// not change it.
func (m *Manager) ReadLists(ctx context.Context, method, server string, f func(context.Context, *session.Session) error) (err error) {
	defer func() {
		// A defect here costs this part, not the program.
		if r := recover(); r != nil {
			err = &Error{Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Server: server, Text: "a defect of mcpvisor ended the request"}
		}
	}()
	return m.readServer(ctx, method, server, f)
}

// readServer sends a request about what a server offers beside tools.
func (m *Manager) readServer(ctx context.Context, method, server string, f func(context.Context, *session.Session) error) error {
	if ctx == nil {
		return refusal.NilContextError(actors.OperationOf(method), server, "")
	}
	awake, _ := ctx.Value(awakeOnly{}).(bool)
	return m.calls.Handle(ctx, &actors.Request{Method: method, Server: server, Repeatable: true, AwakeOnly: awake, SkipsQueue: awake, Send: withoutResult(f)})
}

// awakeOnly is the key of a context in which lists are asked only of servers that are connected: on the account of the program, so that they
// take no slot of a caller.
type awakeOnly struct{}

// sendUnqueued sends a request that takes no slot and that no rule is about: it is about requests that already run, such as the
// status of a task, or about the connection itself. Behind a full queue it could not help.
func (m *Manager) sendUnqueued(ctx context.Context, method, server string, f func(context.Context, *session.Session) error) error {
	if ctx == nil {
		return refusal.NilContextError(actors.OperationOf(method), server, "")
	}
	return m.calls.Handle(ctx, &actors.Request{Method: method, Server: server, Repeatable: true, SkipsQueue: true, SkipsRules: true, Send: withoutResult(f)})
}

// withoutResult adapts the function of a request whose answer is read by the session, so that it has no result object.
func withoutResult(f func(context.Context, *session.Session) error) func(context.Context, *session.Session, *actors.Request) error {
	return func(ctx context.Context, s *session.Session, _ *actors.Request) error { return f(ctx, s) }
}

// Resources returns what the named servers let be read, in the order of the names and each server's own order; of every
// connected server if none is named. Lists are kept as long as the servers say that they are valid, so frequent calls
// cost little. The error joins one *Error per server that failed; the resources of the others are returned all the same.
func (m *Manager) Resources(ctx context.Context, servers ...string) ([]messages.Resource, error) {
	return joinParts(m.resourceParts(ctx, servers, nil))
}

// resourceParts keeps the servers apart, for a caller that must know which one failed. It calls seen, unless that is nil, with each list as soon as
// it is there, from several goroutines.
func (m *Manager) resourceParts(ctx context.Context, servers []string, seen func([]messages.Resource)) []listPart[messages.Resource] {
	return gatherLists(ctx, m, "resources/list", servers, func(ctx context.Context, s *session.Session) (session.Listing[messages.Resource], error) {
		got, err := s.Resources(ctx)
		if seen != nil {
			seen(got.Items)
		}
		return got, err
	}, func(r *messages.Resource, server string) { r.Server = server })
}

// ResourceTemplates returns the families of resources that servers let be read, under the rules of Resources.
func (m *Manager) ResourceTemplates(ctx context.Context, servers ...string) ([]messages.ResourceTemplate, error) {
	return joinParts(m.templateParts(ctx, servers, nil))
}

// templateParts is like resourceParts, for templates.
func (m *Manager) templateParts(ctx context.Context, servers []string, seen func([]messages.ResourceTemplate)) []listPart[messages.ResourceTemplate] {
	return gatherLists(ctx, m, "resources/templates/list", servers,
		func(ctx context.Context, s *session.Session) (session.Listing[messages.ResourceTemplate], error) {
			got, err := s.ResourceTemplates(ctx)
			if seen != nil {
				seen(got.Items)
			}
			return got, err
		}, func(t *messages.ResourceTemplate, server string) { t.Server = server })
}

// Prompts returns the prompts of servers, under the rules of Resources. Each has its Qualified name, mcp__{server}__{prompt}, by
// the rules of tools' names (Config.Naming).
func (m *Manager) Prompts(ctx context.Context, servers ...string) ([]messages.Prompt, error) {
	return joinParts(m.promptParts(ctx, servers, func(*messages.Prompt) {}))
}

// promptParts calls seen with each prompt as soon as its server has listed it, from several goroutines, so that a search can stop
// early. It remembers every listed prompt in the index.
func (m *Manager) promptParts(ctx context.Context, servers []string, seen func(*messages.Prompt)) []listPart[messages.Prompt] {
	parts := gatherLists(ctx, m, "prompts/list", servers, func(ctx context.Context, s *session.Session) (session.Listing[messages.Prompt], error) {
		return s.Prompts(ctx)
	}, func(p *messages.Prompt, server string) {
		p.Server, p.Qualified = server, m.cfg.Naming.Prompt(server, p.Name)
		seen(p)
	})
	for _, p := range parts {
		m.index.AddPrompts(p.items, m.cfg.Naming)
		m.forgetIfRemoved(p.server)
	}
	return parts
}
