package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
)

// This file adds the name that was probably meant to the error of a request that names what does not exist. The name is one that
// the caller may use: nothing else may be learned from a misspelt one.

const (
	// nearestTime bounds what an error takes longer because of the search: Config.Allow is asked, or a server for its list. One that rests is
	// not connected for it.
	nearestTime = time.Second
	// maxNearestAsked bounds about how many near names of one error Config.Allow is asked.
	maxNearestAsked = 3
)

// withNearest returns an error of a request that names what does not exist with the nearest name that does; any other error as it is.
func (m *Manager) withNearest(ctx context.Context, r *actors.Request, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Nearest != "" || m.closing.Load() {
		return err
	}
	var search func(context.Context, *actors.Request) string
	switch {
	case errors.Is(e, messages.ErrUnknownServer) && m.shared.CellOf(r.Server) == nil:
		search = m.nearestServer
	case errors.Is(e, messages.ErrUnknownTool) && r.Method == actors.CallTool:
		search = m.nearestTool
	case errors.Is(e, messages.ErrUnknownPrompt) && r.Method == actors.GetPrompt:
		search = m.nearestPrompt
	case errors.Is(e, messages.ErrUnknownResource) && r.Method == actors.ReadResource:
		search = m.nearestResource
	default:
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, nearestTime)
	defer cancel()
	near := search(context.WithValue(bounded, awakeOnly{}, true), r)
	// What has the very name is on its way in or out.
	if near == "" || near == r.Name || near == r.Server {
		return err
	}
	// The error is copied, because the original may be shared.
	found := *e
	found.Nearest, found.Fix = near, fmt.Sprintf("did you mean %q?", messages.Line(near, 200))
	return &found
}

// nearestTool returns the tool that a call probably means: its own name if the call names a server that is configured, else its qualified
// name.
func (m *Manager) nearestTool(ctx context.Context, r *actors.Request) string {
	server, word, own := r.Server, r.Name, r.Server != ""
	if !own {
		if owner, tool, plain := m.cfg.Naming.Split(r.Name); plain && m.isConfigured(owner) {
			server, word = owner, tool
		}
	}
	offered := m.unaskedToolsOf(ctx, m.Tools())
	if server != "" {
		if base, _, ok := m.InstanceOf(server); ok {
			server = base
		}
		// The server's name is right, so it must not make tools of it look alike.
		offered = slices.DeleteFunc(offered, func(e *Entry) bool { return e.Tool.Server != server })
		entry := m.nearestEntry(ctx, word, offered, func(e *Entry) string { return e.Tool.Name })
		switch {
		case entry == nil:
			return ""
		case own:
			return entry.Tool.Name
		}
		return entry.Name
	}
	if entry := m.nearestEntry(ctx, word, offered, func(e *Entry) string { return e.Name }); entry != nil {
		return entry.Name
	}
	// A model that leaves out the server means the only tool of that name.
	offered = slices.DeleteFunc(offered, func(e *Entry) bool { return e.Tool.Name != word })
	if len(offered) == 1 && m.mayBeNamed(ctx, offered[0]) {
		return offered[0].Name
	}
	return ""
}

// nearestEntry returns the entry whose name is nearest to word, of those that the caller may use; nil if none is near.
func (m *Manager) nearestEntry(ctx context.Context, word string, entries []*Entry, name func(*Entry) string) *Entry {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = name(e)
	}
	for range maxNearestAsked {
		at := slices.Index(names, messages.Nearest(word, names))
		if at < 0 {
			return nil
		}
		if m.mayBeNamed(ctx, entries[at]) {
			return entries[at]
		}
		names[at] = ""
	}
	return nil
}

// mayBeNamed reports whether the caller may be told of a tool: no rule of the second judge, and no Config.Allow, refuses every call of it.
func (m *Manager) mayBeNamed(ctx context.Context, e *Entry) bool {
	if e.Name == "" || m.refusesAlways(ctx, e.Tool) {
		return false
	}
	other := secondJudge(ctx)
	if other == nil || other == m {
		return true
	}
	return !isHidden(ctx, e.Tool.Server) && !other.AlwaysDenies(e.Tool) && !other.refusesAlways(withoutSecondJudge(ctx), e.Tool)
}

// nearestServer returns the server that a request probably means, of those of which the caller may use something.
func (m *Manager) nearestServer(ctx context.Context, r *actors.Request) string {
	names := slices.DeleteFunc(slices.Clone(m.Servers()), func(name string) bool {
		other := secondJudge(ctx)
		return !m.MayRead(name) || isHidden(ctx, name) || other != nil && !other.MayRead(name)
	})
	near := messages.Nearest(r.Server, names)
	if near == "" || m.cfg.Allow == nil && (secondJudge(ctx) == nil || secondJudge(ctx).cfg.Allow == nil) {
		return near
	}
	// The functions decide about tools: the caller may know a server of which it may call one.
	offered := slices.DeleteFunc(m.unaskedToolsOf(ctx, m.Tools()), func(e *Entry) bool { return e.Tool.Server != near })
	if slices.ContainsFunc(offered[:min(len(offered), maxNearestAsked)], func(e *Entry) bool { return m.mayBeNamed(ctx, e) }) {
		return near
	}
	return ""
}

// nearestPrompt returns the prompt that a request probably means, by the name that it used: of its server's list, which the server is asked
// for unless it is kept.
func (m *Manager) nearestPrompt(ctx context.Context, r *actors.Request) string {
	server, own := r.Server, true
	servers := []string{server}
	if server == "" {
		own = false
		if servers = m.readableServers(ctx); len(servers) == 0 {
			return ""
		}
	}
	names := []string{}
	for _, part := range m.promptParts(ctx, servers, func(*messages.Prompt) {}) {
		for i := range part.items {
			if own {
				names = append(names, part.items[i].Name)
			} else {
				names = append(names, part.items[i].Qualified)
			}
		}
	}
	return messages.Nearest(r.Name, names)
}

// nearestResource returns the URI that a read probably means, of the lists that the caller may read.
func (m *Manager) nearestResource(ctx context.Context, r *actors.Request) string {
	servers := []string{r.Server}
	if r.Server == "" {
		if servers = m.readableServers(ctx); len(servers) == 0 {
			return ""
		}
	}
	uris := []string{}
	for _, part := range m.resourceParts(ctx, servers, nil) {
		for i := range part.items {
			uris = append(uris, part.items[i].URI)
		}
	}
	return messages.Nearest(r.Name, uris)
}
