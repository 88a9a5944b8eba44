package catalog

import (
	"iter"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// State says what stands behind an entry.
type State uint8

const (
	// Live: the server is connected and enabled, and Route leads to its connection.
	Live State = iota
	// Cached: a lazy server's tool as it was when the server was last connected. A call wakes the server.
	Cached
	// Lost: the connection is gone and may be back in a moment. The tool stays in sight so that a blip does not make it
	// flap. Nothing can be sent.
	Lost
)

// String is the state in one lower-case word.
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
	// Tool is the definition; Tool.Server is the server's id.
	Tool  *messages.Tool
	State State
	// Epoch is the connection attempt that serves the tool, or served it before it was lost.
	Epoch uint64
	// Route is what the server announced as the way to its connection, nil for a lost entry.
	Route any
}

// Snapshot is the set of tools at one moment: immutable, safe for concurrent use. Only Empty and Apply make one.
type Snapshot struct {
	generation uint64
	name       func(server, tool string) string
	byName     *table[*Entry]
	sorted     []*Entry // by name
	servers    *table[*server]
}

// server is what is known of one server. It is immutable like the rest.
type server struct {
	mark    mark // of the last change that was applied
	state   State
	lost    mark // of the Lose that made the entries lost
	entries []*Entry
	refused []messages.QuarantinedTool
}

// mark orders the changes of one server.
type mark struct{ epoch, rev uint64 }

func (m mark) after(o mark) bool { return m.epoch > o.epoch || m.epoch == o.epoch && m.rev > o.rev }

// Empty is the snapshot without tools, of generation 0, whose successors name tools by n.
func Empty(n messages.Naming) *Snapshot {
	return &Snapshot{name: n.Tool, byName: new(table[*Entry]), servers: new(table[*server])}
}

// Generation rises by one with every change of the content. Snapshots that descend from the same Empty and have equal
// generations have equal content, as long as only one line of descent is applied.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Len is the number of entries.
func (s *Snapshot) Len() int { return len(s.sorted) }

// Lookup finds an entry by its qualified name. It does not allocate.
func (s *Snapshot) Lookup(qualified string) (*Entry, bool) {
	e := s.byName.get(qualified)
	return e, e != nil
}

// LookupTool finds an entry by its server's id and the tool's own name. It does not allocate.
func (s *Snapshot) LookupTool(server, tool string) (*Entry, bool) {
	srv := s.servers.get(server)
	if srv == nil {
		return nil, false
	}
	return srv.findTool(tool)
}

// Server is the entries of one server, sorted by the tool's own name. The slice is the snapshot's own: read it only.
func (s *Snapshot) Server(server string) []*Entry {
	if srv := s.servers.get(server); srv != nil {
		return slices.Clip(srv.entries)
	}
	return nil
}

// Servers is the ids of the servers that have an entry, sorted.
func (s *Snapshot) Servers() []string {
	var ids []string
	for id, srv := range s.servers.all {
		if len(srv.entries) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Remembered is the ids of all servers whose mark is kept, with entries or without, sorted: what Forget would shorten.
func (s *Snapshot) Remembered() []string {
	var ids []string
	for id := range s.servers.all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// All is every entry, sorted by qualified name.
func (s *Snapshot) All() iter.Seq[*Entry] { return slices.Values(s.sorted) }

// Refused is the tools that a server announced and that are not in the catalog, sorted by the tool's own name, each
// with the reason: the server lists a name twice, or the qualified name is another tool's.
func (s *Snapshot) Refused(server string) []messages.QuarantinedTool {
	if srv := s.servers.get(server); srv != nil {
		return slices.Clone(srv.refused)
	}
	return nil
}

func (s *server) findTool(tool string) (*Entry, bool) {
	i, ok := slices.BinarySearchFunc(s.entries, tool, func(e *Entry, tool string) int {
		return strings.Compare(e.Tool.Name, tool)
	})
	if !ok {
		return nil, false
	}
	return s.entries[i], true
}
