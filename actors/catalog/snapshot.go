package catalog

import (
	"iter"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// State says how an entry can be called.
type State uint8

const (
	// Live: the server is connected and enabled, and Route leads to its connection.
	Live State = iota
	// Cached: a lazy server's tool as it was when the server was last connected. A call wakes the server.
	Cached
	// Lost: the connection is gone and may be back in a moment. The tool stays visible so that a short interruption does not
	// make it disappear and return. Nothing can be sent.
	Lost
)

// String returns the state in one lower-case word.
func (s State) String() string {
	switch s {
	case Live:
		return "live"
	case Cached:
		return "cached"
	case Lost:
		return "lost"
	}
	return "invalid"
}

// Entry is one tool. It is immutable, and so is what Tool points to.
type Entry struct {
	// Name is the qualified name, unique in the snapshot.
	Name string
	// Tool is the definition; Tool.Server is the server's id, also for an entry of an instance.
	Tool  *messages.Tool
	State State
	// Epoch is the connection attempt that serves the tool, or served it before it was lost.
	Epoch uint64
	// Route leads to the server's connection, as the server announced it; nil for a lost entry.
	Route any
}

// Snapshot is the set of tools at one moment: immutable, safe for concurrent use. Only Empty and Apply make one.
// generation counts the changes of the content since Empty.
type Snapshot struct {
	generation uint64
	name       func(server, tool string) string
	byName     *table[*Entry]
	sorted     []*Entry // by name
	servers    *table[*server]
}

// server has all that is known of one server. It is immutable like the rest.
type server struct {
	mark mark // of the last change that was applied
	// owner is the server that this one is an instance of, empty for a server itself.
	owner string
	state State
	// lost is the mark of the Lose that made the entries lost: the one that an Expire must match.
	lost    mark
	entries []*Entry
	refused []messages.QuarantinedTool
}

// mark orders the changes of one server: first by the attempt, then by the count within it.
type mark struct{ epoch, rev uint64 }

func (m mark) after(o mark) bool { return m.epoch > o.epoch || m.epoch == o.epoch && m.rev > o.rev }

// Empty returns the snapshot without tools, of generation 0, whose successors name tools by n.
func Empty(n messages.Naming) *Snapshot {
	return &Snapshot{name: n.Tool, byName: new(table[*Entry]), servers: new(table[*server])}
}

// Generation returns the number of changes of the content since Empty. Snapshots that descend from the same Empty in one line
// have equal content if their generations are equal.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Len returns the number of entries.
func (s *Snapshot) Len() int { return len(s.sorted) }

// Lookup returns the entry of a qualified name. It does not allocate.
func (s *Snapshot) Lookup(qualified string) (*Entry, bool) {
	e := s.byName.get(qualified)
	return e, e != nil
}

// LookupTool returns an entry by its server's id and the tool's own name. It does not allocate.
func (s *Snapshot) LookupTool(server, tool string) (*Entry, bool) {
	srv := s.servers.get(server)
	if srv == nil {
		return nil, false
	}
	return srv.findTool(tool)
}

// Server returns the entries of one server, sorted by the tool's own name. The slice is the snapshot's own: read it only.
func (s *Snapshot) Server(server string) []*Entry {
	if srv := s.servers.get(server); srv != nil {
		return slices.Clip(srv.entries)
	}
	return nil
}

// Servers returns the ids of the servers that have an entry, sorted; those of instances are not among them.
func (s *Snapshot) Servers() []string {
	var ids []string
	for id, srv := range s.servers.all {
		if len(srv.entries) > 0 && srv.owner == "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Remembered returns the ids of all servers whose mark is kept, with entries or without, sorted: those that Forget would drop.
func (s *Snapshot) Remembered() []string {
	var ids []string
	for id := range s.servers.all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// All yields every entry, sorted by qualified name.
func (s *Snapshot) All() iter.Seq[*Entry] { return slices.Values(s.sorted) }

// Refused returns the tools that a server announced and that are not in the catalog, sorted by the tool's own name, each
// with the reason: the server lists a name twice, or the qualified name is another tool's.
func (s *Snapshot) Refused(server string) []messages.QuarantinedTool {
	if srv := s.servers.get(server); srv != nil {
		return slices.Clone(srv.refused)
	}
	return nil
}

// findTool returns the entry of a tool's own name, by bisection.
func (s *server) findTool(tool string) (*Entry, bool) {
	i, ok := slices.BinarySearchFunc(s.entries, tool, func(e *Entry, tool string) int {
		return strings.Compare(e.Tool.Name, tool)
	})
	if !ok {
		return nil, false
	}
	return s.entries[i], true
}
