package gateway

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/joined"
)

// memory has the tools of servers that are in their first attempt, as they were in an earlier run: an agent that comes while servers start
// gets them at once, and most agents list once. It is a value: what is forgotten leaves another one. A call of such a tool waits for its
// server, like each call of a server on its way.
type memory struct {
	entries map[string][]*catalog.Entry
	// instructions are those of the servers of entries; they are told once only, when an agent comes.
	instructions map[string]string
}

const (
	// maxMemory bounds the definitions that are remembered for all servers together, in bytes.
	maxMemory = 16 << 20
	// listedWithin is how long after a server has connected its tools are in the catalog.
	listedWithin = 500 * time.Millisecond
)

// recallTools returns what is remembered of the servers on their way; nil if there is nothing.
func (g *Gateway) recallTools() *memory {
	entries, instructions, size := map[string][]*catalog.Entry{}, map[string]string{}, 0
	for _, name := range g.all.Servers() {
		tools, said := g.all.Of(name).RememberedTools(name)
		for i := range tools {
			size += len(tools[i].Raw)
		}
		if len(tools) == 0 || size > maxMemory {
			continue
		}
		instructions[name] = said
		for i := range tools {
			tool := tools[i]
			if tool.Server = name; tool.Raw == nil {
				continue // its definition is not known as the server wrote it
			}
			entries[name] = append(entries[name], &catalog.Entry{Tool: &tool, State: catalog.Cached})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return &memory{entries, instructions}
}

// forgetTools drops what is remembered of servers that have connected, failed or gone. A server that has connected has its tools in the
// catalog a moment later; late says that this moment has passed.
func (g *Gateway) forgetTools(ctx context.Context, late bool) {
	old := g.memory.Load()
	if old == nil {
		return
	}
	now, catalogs := &memory{map[string][]*catalog.Entry{}, old.instructions}, g.all.Catalogs()
	for name, entries := range old.entries {
		s, err := g.all.Of(name).ServerStatus(name)
		connected := err == nil && s.Status == messages.Connected
		switch {
		case err != nil, s.Status != messages.Pending && !connected, s.Attempts > 0, connected && late, catalogs.Have(name):
		case connected:
			now.entries[name] = entries
			g.work.Go(func() {
				if waitFor(ctx, listedWithin) {
					g.forgetTools(ctx, true)
					g.noteChange(func(said *saidChanges) { said.addEvent(whose{server: name}, messages.EventTools) })
				}
			})
		default:
			now.entries[name] = entries
		}
	}
	if len(now.entries) == 0 {
		now = nil
	}
	g.memory.CompareAndSwap(old, now) // another call has seen a later state
}

// newestUnknown returns when the newest first attempt of a server began whose tools are not remembered; zero if there is none.
func (g *Gateway) newestUnknown() (newest time.Time) {
	m := g.memory.Load()
	for _, s := range g.all.Status() {
		if !isFirstAttempt(&s) || m != nil && m.entries[s.Name] != nil {
			continue
		}
		if s.Since.IsZero() { // it is just being made
			return time.Now()
		}
		if s.Since.After(newest) {
			newest = s.Since
		}
	}
	return newest
}

// isFirstAttempt reports whether a server has neither connected nor failed yet.
func isFirstAttempt(s *messages.Status) bool {
	return s.InstanceOf == "" && s.Status == messages.Pending && s.Attempts == 0 && s.Restarts == 0
}

// addTo adds to the entries of a path those that are remembered, in the order of the others. What the catalog has counts.
func (m *memory) addTo(entries []*catalog.Entry, s joined.Catalogs, all joined.Managers, only string) []*catalog.Entry {
	if m == nil {
		return entries
	}
	for name, remembered := range m.entries {
		if only == "" || only == name {
			if !s.Have(name) {
				entries = append(entries, all.Permitted(name, remembered)...)
			}
		}
	}
	joined.SortEntries(entries)
	return entries
}
