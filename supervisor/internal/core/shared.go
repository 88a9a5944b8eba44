package core

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// Shared holds the values that the facade and the actors both use. Every field is safe for concurrent use.
type Shared struct {
	// cells has an entry from the moment a server is accepted until its removal has ended; only the supervisor actor writes it.
	cells sync.Map // server id → *actors.Cell
	// instances has the cells of servers' instances in the same way. They are found by name, and are in no list of servers.
	instances sync.Map // instance's name → *actors.Cell
	// Catalog has the newest snapshot, Hub the watchers of events. The registry and the hub publish without a turn of the supervisor.
	Catalog *actors.Catalog
	Hub     *actors.Hub
	// Registry points to the registry actor of the moment: a successor takes its place after a panic.
	Registry actors.Ref
	// tickets numbers the commands and barriers whose end a caller may wait for. A server's View shows the newest ticket that it
	// has answered, so a waiter compares numbers and needs no channel of its own.
	tickets atomic.Uint64
}

// CellOf returns the published state of a server, or of an instance; nil if none has that name, or its removal has ended.
func (s *Shared) CellOf(name string) *actors.Cell {
	if c, ok := s.cells.Load(name); ok {
		return c.(*actors.Cell)
	}
	if c, ok := s.instances.Load(name); ok {
		return c.(*actors.Cell)
	}
	return nil
}

// NamesWithInstances returns the ids of all servers, each followed by the names of its instances.
func (s *Shared) NamesWithInstances() []string {
	var all []string
	for _, name := range s.Names() {
		all = append(all, name)
		if c := s.CellOf(name); c != nil {
			for _, i := range c.Instances.All() {
				all = append(all, i.View().Name)
			}
		}
	}
	return all
}

// Names returns the ids of all servers, sorted.
func (s *Shared) Names() []string {
	var names []string
	s.cells.Range(func(k, _ any) bool {
		names = append(names, k.(string))
		return true
	})
	slices.Sort(names)
	return names
}

// NextTicket numbers a command or a barrier.
func (s *Shared) NextTicket() uint64 { return s.tickets.Add(1) }

// ShareOf returns the server's share of the memory budget. It is nil for a server that is not configured any more; a nil share
// counts nothing.
func (s *Shared) ShareOf(name string) *budget.Share {
	if c := s.CellOf(name); c != nil {
		return c.Share
	}
	return nil
}
