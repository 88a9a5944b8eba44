package catalog

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Kind says what a Change does.
type Kind uint8

const (
	// Announce: these are all the tools of a connection, reached by Route. They replace all earlier ones of the server.
	Announce Kind = iota
	// Cache: these are all the tools that a server had when it was last connected. Route may be nil.
	Cache
	// Lose: the connection is gone. The tools stay, marked Lost, until an Announce replaces them or an Expire drops them.
	// A server that is lost already stays lost by the first Lose.
	Lose
	// Expire: the tools that are still lost by the Lose of this Epoch, with this Rev or an earlier one, are dropped.
	Expire
	// Withdraw: the server's tools are dropped, its mark stays.
	Withdraw
	// Forget: the server's tools are dropped and its mark too. Only for a server that can send no further change.
	Forget
)

// String returns the kind in one lower-case word.
func (k Kind) String() string {
	switch k {
	case Announce:
		return "announce"
	case Cache:
		return "cache"
	case Lose:
		return "lose"
	case Expire:
		return "expire"
	case Withdraw:
		return "withdraw"
	case Forget:
		return "forget"
	}
	return "invalid"
}

// Change is one statement of a server about its tools. The tools are copied, but not what their schemas point to, which
// must not be changed afterwards.
type Change struct {
	Kind   Kind
	Server string
	// Of is set for an instance of a server: that server's id. The instance's tools are found by Server alone (LookupTool, Server),
	// have the id and the qualified names of Of, and are in no list.
	Of         string
	Epoch, Rev uint64
	// Tools and Route count for Announce and Cache only. A tool's Server is set to the change's. Route should be
	// comparable, a pointer best: a value that is not comparable counts as a new route every time.
	Tools []messages.Tool
	Route any
}

// Apply applies the changes in their order, and copies once for all of them. It reports whether the content differs: an
// entry was added, dropped, or has another definition, state, epoch or route. The generation is higher by one then.
//
// If nothing changed at all the result is s itself. If the accepted changes leave the content as it was (a list
// announced again), the result has the generation and the content of s and the newer marks: it must be the base of the next
// Apply, but need not be published.
//
// The cost is that of the tools mentioned, and a copy of one pointer for every tool that is not.
func (s *Snapshot) Apply(changes ...Change) (*Snapshot, bool) {
	e := edit{base: s}
	for _, c := range changes {
		e.applyChange(c)
	}
	return e.buildSnapshot()
}

// edit collects what a batch of changes does to a snapshot.
type edit struct {
	base    *Snapshot
	touched map[string]*server // nil for a forgotten server
	names   map[string]*Entry  // all names of the touched servers, before and after; nil for a name that no tool has now
}

// applyChange applies one change, if it is newer than the last one that was applied for the server.
func (e *edit) applyChange(c Change) {
	// A server may occur several times in a batch: the latest state counts.
	old, known := e.touched[c.Server]
	if !known {
		old = e.base.servers.get(c.Server)
	}
	at := mark{c.Epoch, c.Rev}
	switch c.Kind {
	case Announce, Cache, Lose, Withdraw:
		if old == nil || at.after(old.mark) {
			e.putServer(c.Server, old, e.successorOf(c, old))
		}
	case Expire:
		// An Expire counts only for the loss that scheduled it: the tools may have been announced, and lost again, since.
		if old != nil && old.state == Lost && old.lost.epoch == at.epoch && !old.lost.after(at) {
			if old.mark.after(at) {
				at = old.mark
			}
			e.putServer(c.Server, old, &server{mark: at, owner: old.owner})
		}
	case Forget:
		if old != nil {
			e.putServer(c.Server, old, nil)
		}
	}
}

// successorOf returns what a newer change makes of a server.
func (e *edit) successorOf(c Change, old *server) *server {
	at := mark{c.Epoch, c.Rev}
	switch c.Kind {
	case Announce:
		return e.buildServer(c, Live)
	case Cache:
		return e.buildServer(c, Cached)
	case Lose:
		lost := loseServer(old, at)
		lost.owner = c.Of
		return lost
	default: // Withdraw
		return &server{mark: at, owner: c.Of}
	}
}

// putServer replaces a server, and the entries that its names lead to.
func (e *edit) putServer(id string, old, now *server) {
	if e.touched == nil {
		e.touched, e.names = map[string]*server{}, map[string]*Entry{}
	}
	e.touched[id] = now
	// The names of an instance's tools are those of its server's.
	if old != nil && old.owner != "" || now != nil && now.owner != "" {
		return
	}
	if old != nil {
		for _, entry := range old.entries {
			// Names are entered as gone, and entered again below if the new state has them.
			e.names[entry.Name] = nil
		}
	}
	if now != nil {
		for _, entry := range now.entries {
			e.names[entry.Name] = entry
		}
	}
}

// entryNamed returns the entry that has a name at this point of the batch.
func (e *edit) entryNamed(name string) *Entry {
	if entry, ok := e.names[name]; ok {
		return entry
	}
	return e.base.byName.get(name)
}

// buildServer makes the entries of a whole list. It reuses every entry of the base that is unchanged, and every definition that is
// unchanged although its entry is not: after a reconnect all definitions are shared with the snapshot before. A tool whose name
// is taken is left out, with the reason.
func (e *edit) buildServer(c Change, state State) *server {
	out := &server{mark: mark{c.Epoch, c.Rev}, owner: c.Of, state: state, entries: make([]*Entry, 0, len(c.Tools))}
	owner := cmp.Or(c.Of, c.Server)
	// The comparison is with the base and not with the batch, so that equal content shares its pointers.
	before := e.base.servers.get(c.Server)
	mine := make(map[string]bool, len(c.Tools))
	for i := range c.Tools {
		t := &c.Tools[i]
		var prev *Entry
		if before != nil {
			prev, _ = before.findTool(t.Name)
		}
		var name string
		if prev != nil {
			// The name follows from the server and the tool's own name.
			name = prev.Name
		} else {
			name = e.base.name(owner, t.Name)
		}
		if mine[name] {
			out.addRefused(t.Name, "the server lists two tools under this name; the first one is offered")
			continue
		}
		// Two tools of different servers have one name only if their hashes collide.
		if h := e.entryNamed(name); h != nil && h.Tool.Server != owner {
			out.addRefused(t.Name,
				fmt.Sprintf("its qualified name %s is that of server %q, tool %q", name, h.Tool.Server, h.Tool.Name))
			continue
		}
		mine[name] = true
		shared := e.sharedTool(c.Of, t)
		switch {
		case prev == nil && shared != nil:
			prev = &Entry{Name: name, Tool: shared, State: state, Epoch: c.Epoch, Route: c.Route}
		case prev == nil || !sameTool(prev.Tool, t):
			// The entry and its tool are one allocation: a catalog may have ten thousand.
			both := &struct {
				Entry
				tool messages.Tool
			}{Entry{Name: name, State: state, Epoch: c.Epoch, Route: c.Route}, *t}
			both.tool.Server, both.Tool = owner, &both.tool
			prev = &both.Entry
		case prev.State != state || prev.Epoch != c.Epoch || !sameRoute(prev.Route, c.Route):
			prev = &Entry{Name: name, Tool: prev.Tool, State: state, Epoch: c.Epoch, Route: c.Route}
		}
		out.entries = append(out.entries, prev)
	}
	slices.SortFunc(out.entries, func(a, b *Entry) int { return strings.Compare(a.Tool.Name, b.Tool.Name) })
	slices.SortStableFunc(out.refused, func(a, b messages.QuarantinedTool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// sharedTool returns the definition of a server's tool for an instance of it that lists the same one: a hundred instances of a server
// with a thousand tools hold these once. It is nil if the definitions differ.
func (e *edit) sharedTool(server string, t *messages.Tool) *messages.Tool {
	if server == "" {
		return nil
	}
	srv := e.base.servers.get(server)
	if srv == nil {
		return nil
	}
	if entry, ok := srv.findTool(t.Name); ok && sameTool(entry.Tool, t) {
		return entry.Tool
	}
	return nil
}

// addRefused notes a tool that is left out.
func (s *server) addRefused(tool, reason string) {
	s.refused = append(s.refused, messages.QuarantinedTool{Name: tool, Reason: reason})
}

// loseServer marks the entries as lost. Entries that were lost before keep the mark of that loss, to which their Expire belongs:
// otherwise failing attempts could keep them visible for ever.
func loseServer(old *server, at mark) *server {
	out := &server{mark: at, state: Lost, lost: at}
	if old == nil {
		return out
	}
	// A lost server keeps its reasons too.
	out.refused = old.refused
	if old.state == Lost {
		out.lost, out.entries = old.lost, old.entries
		return out
	}
	for _, e := range old.entries {
		out.entries = append(out.entries, &Entry{Name: e.Name, Tool: e.Tool, State: Lost, Epoch: e.Epoch})
	}
	return out
}

// buildSnapshot returns the result of the batch, and whether its content differs.
func (e *edit) buildSnapshot() (*Snapshot, bool) {
	base := e.base
	// A mark alone changes nothing that a reader sees, but must be kept.
	// instances says that the tools of an instance differ, which no name shows.
	servers, marks, refusals, instances := base.servers.startEdit(), false, false, false
	for id, srv := range e.touched {
		before := base.servers.get(id)
		if srv == before {
			continue // touched and put back
		}
		marks = true
		refusals = refusals || !slices.Equal(refusedBy(srv), refusedBy(before))
		instances = instances || !slices.Equal(instanceEntries(srv), instanceEntries(before))
		if srv == nil {
			servers.delete(id)
		} else {
			servers.set(id, srv)
		}
	}
	if !marks {
		return base, false
	}
	next := *base
	next.servers = servers.next

	var changed []nameChange
	byName := base.byName.startEdit()
	for name, entry := range e.names {
		switch {
		case base.byName.get(name) == entry:
			continue
		case entry == nil:
			byName.delete(name)
		default:
			byName.set(name, entry)
		}
		changed = append(changed, nameChange{name, entry})
	}
	if len(changed) > 0 {
		// The changed names are merged into the sorted list in one pass.
		slices.SortFunc(changed, func(a, b nameChange) int { return strings.Compare(a.name, b.name) })
		next.byName, next.sorted = byName.next, mergeSorted(base.sorted, changed)
	}
	if len(changed) == 0 && !refusals && !instances {
		return &next, false
	}
	next.generation++
	return &next, true
}

// nameChange is a name with its new entry, nil if the name is gone.
type nameChange struct {
	name  string
	entry *Entry
}

// refusedBy returns the tools that a server's list left out; nil for no server.
func refusedBy(s *server) []messages.QuarantinedTool {
	if s == nil {
		return nil
	}
	return s.refused
}

// instanceEntries returns the entries of an instance; nil for a server itself.
func instanceEntries(s *server) []*Entry {
	if s == nil || s.owner == "" {
		return nil
	}
	return s.entries
}

// mergeSorted copies the stretches between the changed names, which it finds by bisection: a change of few names costs few
// comparisons.
func mergeSorted(old []*Entry, changed []nameChange) []*Entry {
	out := make([]*Entry, 0, len(old)+len(changed))
	for _, c := range changed {
		i, found := slices.BinarySearchFunc(old, c.name, func(e *Entry, name string) int {
			return strings.Compare(e.Name, name)
		})
		out = append(out, old[:i]...)
		if c.entry != nil {
			out = append(out, c.entry)
		}
		if found {
			i++
		}
		old = old[i:]
	}
	return append(out, old...)
}

// sameRoute compares routes, whose types may not be comparable: such routes differ.
func sameRoute(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if !reflect.ValueOf(a).Comparable() || !reflect.ValueOf(b).Comparable() {
		return false
	}
	return a == b
}
