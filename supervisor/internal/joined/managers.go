// Package joined makes several managers look like one to a gateway and to a control socket: that of a project, and those whose servers
// projects share.
//
// How it fits: packages gateway and control ask [Managers] where a server is, and for what is told of all servers. Everything else they
// ask the manager that has the server.
//
// Guarantees: a name means the same server in every answer, and what the rules of the first manager deny is denied for the servers of all.
//
// Not promised: that what is told of several managers is of one moment.
package joined

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Managers are those whose servers are shown together: the first is that of a project, the others are shared with other projects. A server hides
// those of the same name in the managers behind its own, whatever its state: what belongs to a project goes before what is the user's.
type Managers []*supervisor.Manager

// Of returns the manager that has a server, or an instance of one that is not hidden; the first if none has it.
func (ms Managers) Of(server string) *supervisor.Manager {
	if len(ms) > 1 {
		for i, m := range ms {
			if m.Server(server) != nil {
				if base, _, ok := m.InstanceOf(server); !ok || !ms.hides(i, base) {
					return m
				}
			}
		}
	}
	return ms[0]
}

// Owner returns the manager of a server, like Of, and the context of a request to it: the rules of the first manager count for
// the servers that it shares, too, beside those of their manager.
func (ms Managers) Owner(ctx context.Context, server string) (*supervisor.Manager, context.Context) {
	m := ms.Of(server)
	if m != ms[0] {
		ctx = supervisor.AlsoJudgedBy(ctx, ms[0])
	}
	return m, ctx
}

// Has reports whether a server is configured in one of them. An instance is none: what counts for its server would not be asked for it.
func (ms Managers) Has(server string) bool {
	m := ms.Of(server)
	_, _, isInstance := m.InstanceOf(server)
	return !isInstance && m.Server(server) != nil
}

// hides reports whether a server of the manager with this number is hidden by one of its name.
func (ms Managers) hides(i int, server string) bool {
	return slices.ContainsFunc(ms[:i], func(m *supervisor.Manager) bool { return m.Server(server) != nil })
}

// Servers returns the names of all that are not hidden, sorted.
func (ms Managers) Servers() []string {
	if len(ms) == 1 {
		return ms[0].Servers()
	}
	var names []string
	for i, m := range ms {
		for _, name := range m.Servers() {
			if !ms.hides(i, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// Status returns the statuses of all that are not hidden, sorted by name.
func (ms Managers) Status() []messages.Status {
	if len(ms) == 1 {
		return ms[0].Status()
	}
	all := []messages.Status{}
	for i, m := range ms {
		for _, s := range m.Status() {
			if name := s.Name; i == 0 || !ms.hides(i, name) && (s.InstanceOf == "" || !ms.hides(i, s.InstanceOf)) {
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b messages.Status) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Catalogs are the catalogs of all managers at one moment. Their generation rises with each of them.
type Catalogs []*catalog.Snapshot

// Catalogs returns them as they are now.
func (ms Managers) Catalogs() Catalogs {
	all := make(Catalogs, len(ms))
	for i, m := range ms {
		all[i] = m.Tools()
	}
	return all
}

// Generation returns a number that rises with each change.
func (c Catalogs) Generation() (n uint64) {
	for _, s := range c {
		n += s.Generation()
	}
	return n
}

// Entries returns the tools of all servers that are not hidden, sorted by their servers; those of one server if it is named.
func (ms Managers) Entries(all Catalogs, only string) (entries []*catalog.Entry) {
	for i, s := range all {
		servers := s.Servers()
		if only != "" {
			servers = []string{only}
		}
		for _, server := range servers {
			if i == 0 || !ms.hides(i, server) {
				entries = append(entries, ms.permitted(i, s.Server(server))...)
			}
		}
	}
	if len(ms) > 1 {
		SortEntries(entries)
	}
	return entries
}

// Have reports whether one of them has tools of a server.
func (c Catalogs) Have(server string) bool {
	return slices.ContainsFunc(c, func(s *catalog.Snapshot) bool { return len(s.Server(server)) > 0 })
}

// Permitted leaves out of a server's tools what the rules of the first manager always deny.
func (ms Managers) Permitted(server string, entries []*catalog.Entry) []*catalog.Entry {
	return ms.permitted(slices.Index(ms, ms.Of(server)), entries)
}

// SortEntries sorts by the servers' ids and their own names.
func SortEntries(entries []*catalog.Entry) {
	slices.SortFunc(entries, func(a, b *catalog.Entry) int {
		return cmp.Or(strings.Compare(a.Tool.Server, b.Tool.Server), strings.Compare(a.Tool.Name, b.Tool.Name))
	})
}

// EntriesFor returns what a principal may call, of all servers, in the same order.
func (ms Managers) EntriesFor(principal string) (entries []*catalog.Entry) {
	for i, m := range ms {
		offered := m.ToolsFor(supervisor.WithCaller(context.Background(), principal))
		if i > 0 {
			offered = slices.DeleteFunc(offered, func(e *catalog.Entry) bool { return ms.hides(i, e.Tool.Server) })
		}
		entries = append(entries, ms.permitted(i, offered)...)
	}
	SortEntries(entries)
	return entries
}

// permitted leaves out what the rules of the first manager always deny; the rules of a tool's own manager have been applied.
func (ms Managers) permitted(i int, entries []*catalog.Entry) []*catalog.Entry {
	if i == 0 || !slices.ContainsFunc(entries, func(e *catalog.Entry) bool { return ms[0].AlwaysDenies(e.Tool) }) {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e *catalog.Entry) bool { return ms[0].AlwaysDenies(e.Tool) })
}

// OwnerOfQualified returns the manager of a tool or prompt by its qualified name, and the context of a request to it, like Owner.
func (ms Managers) OwnerOfQualified(ctx context.Context, qualified string) (*supervisor.Manager, context.Context) {
	if len(ms) == 1 {
		return ms[0], ctx
	}
	for i, m := range ms {
		switch e, ok := m.Tools().Lookup(qualified); {
		case !ok:
		case ms.hides(i, e.Tool.Server):
			return ms[0], ctx // which knows no such name
		default:
			return ms.Owner(ctx, e.Tool.Server)
		}
	}
	// It is in no list now; a plain name says which server it belongs to.
	for _, server := range ms.Servers() {
		if strings.HasPrefix(qualified, "mcp__"+server+"__") {
			return ms.Owner(ctx, server)
		}
	}
	return ms[0], ctx
}

// Settled waits for the named servers, for all if none is named, as that of a manager does.
func (ms Managers) Settled(ctx context.Context, servers ...string) error {
	errs := make([]error, len(ms))
	var wait sync.WaitGroup
	for i, m := range ms {
		own := slices.DeleteFunc(slices.Clone(servers), func(name string) bool { return ms.Of(name) != m })
		if len(servers) == 0 || len(own) > 0 {
			wait.Go(func() { errs[i] = m.Settled(ctx, own...) })
		}
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Reload makes every manager read its files, and returns what has changed in all of them. What is wrong with files is told once: those of
// the first manager are among its own and the user's.
func (ms Managers) Reload(ctx context.Context) (supervisor.ReloadResult, error) {
	var shared []supervisor.ReloadResult
	// The shared servers first: what the project hides of them must be there before.
	for _, m := range ms[1:] {
		res, err := m.Reload(ctx)
		if err != nil {
			return supervisor.ReloadResult{}, err
		}
		shared = append(shared, res)
	}
	all, err := ms[0].Reload(ctx)
	if err != nil {
		return all, err
	}
	for _, res := range shared {
		for _, part := range []struct{ to, from *[]string }{
			{&all.Added, &res.Added}, {&all.Removed, &res.Removed}, {&all.Replaced, &res.Replaced}, {&all.Adjusted, &res.Adjusted},
			{&all.Moved, &res.Moved}, {&all.Kept, &res.Kept},
		} {
			*part.to = slices.Sorted(slices.Values(slices.Concat(*part.to, *part.from)))
		}
		for name, remark := range res.Remarks {
			if all.Remarks == nil {
				all.Remarks = map[string]string{}
			}
			all.Remarks[name] = remark
		}
	}
	return all, nil
}

// ToolsOf returns the entries of the named servers, of all if none is named, as that of a manager does.
func (ms Managers) ToolsOf(ctx context.Context, servers ...string) (entries []*catalog.Entry, err error) {
	if len(ms) == 1 {
		return ms[0].ToolsOf(ctx, servers...)
	}
	if len(servers) == 0 {
		entries = ms.Entries(ms.Catalogs(), "")
		slices.SortFunc(entries, func(a, b *catalog.Entry) int { return strings.Compare(a.Name, b.Name) })
		return entries, nil
	}
	for _, name := range servers {
		i := slices.Index(ms, ms.Of(name))
		own, err := ms[i].ToolsOf(ctx, name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, ms.permitted(i, own)...)
	}
	return entries, nil
}

// ListOf asks for a list of the named servers, each at its manager, and joins the answers in the order of the managers; of all connected
// ones that are not hidden if none is named. The error is about those whose part is missing.
func ListOf[T any](ctx context.Context, ms Managers, servers []string,
	list func(m *supervisor.Manager, ctx context.Context, servers ...string) ([]T, error),
) ([]T, error) {
	if len(ms) == 1 {
		return list(ms[0], ctx, servers...)
	}
	parts, errs := make([][]T, len(ms)), make([]error, len(ms))
	var wait sync.WaitGroup
	for i, m := range ms {
		own := slices.DeleteFunc(slices.Clone(servers), func(name string) bool { return ms.Of(name) != m })
		if len(servers) == 0 {
			own = slices.DeleteFunc(m.ConnectedServers(), func(name string) bool { return ms.hides(i, name) || !m.MayRead(name) || !ms[0].MayRead(name) })
		}
		if len(own) > 0 {
			asked := ctx
			if i > 0 {
				asked = supervisor.AlsoJudgedBy(ctx, ms[0])
			}
			wait.Go(func() { parts[i], errs[i] = list(m, asked, own...) })
		}
	}
	wait.Wait()
	all := slices.Concat(parts...)
	if all == nil {
		all = []T{} // a list without an entry, not the lack of one
	}
	return all, errors.Join(errs...)
}
