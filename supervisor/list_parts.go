package supervisor

import (
	"context"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// maxParallelLists is how many servers are asked at a time for their part of one list.
const maxParallelLists = 64

// listPart is what one server gave of a list.
type listPart[T any] struct {
	server string
	items  []T
	err    error
}

// gatherLists asks the named servers, or every connected one, at once. The parts are in the order of the names.
func gatherLists[T any](
	ctx context.Context, m *Manager, servers []string,
	list func(context.Context, *session.Session) (session.Listing[T], error), own func(item *T, server string),
) []listPart[T] {
	if len(servers) == 0 {
		servers = m.readableServers()
	}
	parts := make([]listPart[T], len(servers))
	turns := make(chan struct{}, maxParallelLists)
	var wg sync.WaitGroup
	for i, server := range servers {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			p := &parts[i]
			p.server = server
			defer func() {
				if r := recover(); r != nil { // a defect of ours costs this part, not the program
					p.items, p.err = nil, &Error{Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic,
						Server: server, Text: "a defect of mcpvisor ended the request"}
				}
			}()
			p.err = m.readServer(ctx, server, true, func(ctx context.Context, s *session.Session) error {
				got, err := list(ctx, s)
				p.items = slices.Clone(got.Items) // what the session keeps is shared
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

// readableServers is the connected servers whose resources and prompts the rules let be read.
func (m *Manager) readableServers() []string {
	return slices.DeleteFunc(m.ConnectedServers(), func(name string) bool { return m.permissions.checkRead(name) != nil })
}

// joinParts is the parts as one list, and the errors of the servers that failed.
func joinParts[T any](parts []listPart[T]) ([]T, error) {
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

// sendRequest is the way of everything that is asked of one server and is no tool call.
func (m *Manager) sendRequest(ctx context.Context, server string, repeatable bool, f func(context.Context, *session.Session) error) error {
	if m.closing.Load() {
		return closedError("read")
	}
	return m.calls.SendRequest(ctx, actors.Request{Server: server, Repeatable: repeatable, Send: f})
}

// sendUnqueued is ask for what is about requests that are under way, or about the connection: it does not wait for its turn.
func (m *Manager) sendUnqueued(ctx context.Context, server string, repeatable bool, f func(context.Context, *session.Session) error) error {
	if m.closing.Load() {
		return closedError("read")
	}
	return m.calls.SendRequest(ctx, actors.Request{Server: server, Repeatable: repeatable, SkipsQueue: true, Send: f})
}

// Resources is what the named servers let be read, in the order of the names and each server's own order; what every
// connected server does if none is named. Lists are kept as long as the servers say that they are valid: asking often
// costs little. The error joins one *Error per server that failed; the others' part is there all the same.
func (m *Manager) Resources(ctx context.Context, servers ...string) ([]messages.Resource, error) {
	return joinParts(m.resourceParts(ctx, servers))
}

func (m *Manager) resourceParts(ctx context.Context, servers []string) []listPart[messages.Resource] {
	return gatherLists(ctx, m, servers, func(ctx context.Context, s *session.Session) (session.Listing[messages.Resource], error) {
		return s.Resources(ctx)
	}, func(r *messages.Resource, server string) { r.Server = server })
}

// ResourceTemplates is the families of resources that servers let be read, as Resources.
func (m *Manager) ResourceTemplates(ctx context.Context, servers ...string) ([]messages.ResourceTemplate, error) {
	return joinParts(m.templateParts(ctx, servers))
}

func (m *Manager) templateParts(ctx context.Context, servers []string) []listPart[messages.ResourceTemplate] {
	return gatherLists(ctx, m, servers,
		func(ctx context.Context, s *session.Session) (session.Listing[messages.ResourceTemplate], error) {
			return s.ResourceTemplates(ctx)
		}, func(t *messages.ResourceTemplate, server string) { t.Server = server })
}

// Prompts is the prompts of servers, as Resources. Each has its Qualified name, mcp__{server}__{prompt}, by the rules of
// tools' names (Config.Naming).
func (m *Manager) Prompts(ctx context.Context, servers ...string) ([]messages.Prompt, error) {
	return joinParts(m.promptParts(ctx, servers, func(*messages.Prompt) {}))
}

// promptParts has seen called with each prompt when its server has told of it, from several goroutines.
func (m *Manager) promptParts(ctx context.Context, servers []string, seen func(*messages.Prompt)) []listPart[messages.Prompt] {
	parts := gatherLists(ctx, m, servers, func(ctx context.Context, s *session.Session) (session.Listing[messages.Prompt], error) {
		return s.Prompts(ctx)
	}, func(p *messages.Prompt, server string) {
		p.Server, p.Qualified = server, m.cfg.Naming.Prompt(server, p.Name)
		seen(p)
	})
	for _, p := range parts {
		m.index.addPrompts(p.items, m.cfg.Naming)
	}
	return parts
}
