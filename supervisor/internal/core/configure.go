package core

import (
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// replaceConfigured replaces the configured servers by the smallest change: servers whose spec is equal are left alone. The
// policies are stored first, so that no new server starts under the old ones, and checked again last for the servers that stay.
func (s *supervisor) replaceConfigured(ctx actor.Context, m ConfigureServers) config.Changes {
	if s.closing != nil {
		return config.Changes{}
	}
	// The specs belong to the caller, who may send the same map again.
	specs := maps.Clone(m.Specs)
	// A spec without a scope comes from the program itself, through Config.Servers or Configure.
	for name, spec := range specs {
		if spec.Scope == "" {
			spec.Scope = messages.ScopeRuntime
			specs[name] = spec
		}
	}
	if m.Managed != nil {
		s.Specs.SetManaged(*m.Managed)
	}
	// A server that is being removed and comes back counts with the spec that waits: otherwise two quick reloads would lose it.
	// The comparison is with what each server will have when all pending removals have ended.
	before := map[string]messages.Spec{}
	for name, r := range s.servers {
		if spec := r.configuredSpec(); spec != nil {
			before[name] = *spec
		}
	}
	// Removals come before additions, so that two servers never share a name or, more likely, a port.
	changes := config.Compare(before, specs)
	for _, name := range changes.Removed {
		r := s.servers[name]
		r.withdrawConfigured()
		if r.runtime == nil && !r.removing {
			s.dropSource(ctx, r, 0)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		spec := specs[name]
		// Equal specs are not touched at all: not even their actor gets a message.
		if r := s.servers[name]; r == nil || !sameSpec(r.configuredSpec(), &spec) {
			s.configureOne(ctx, name, &spec)
		}
	}
	if m.Managed != nil {
		s.recheckPolicies(ctx)
	}
	return changes
}

// configureOne puts one configured spec in force: it adds the server, queues the spec behind a removal, or replaces the old spec.
// A runtime spec of the same name stays in force.
func (s *supervisor) configureOne(ctx actor.Context, name string, spec *messages.Spec) {
	r := s.endInstanceNamed(ctx, name)
	switch {
	case s.closing != nil:
	case r == nil:
		r = s.addManagedServer(name)
		r.configured = spec
		s.startServer(ctx, r)
	// The name is free when the old connection is closed; finishRemoval takes the spec from here.
	case r.removing:
		r.waitingSpec = spec
	default:
		// A runtime spec of the same name wins, and is not disturbed.
		was := r.configured
		r.configured = spec
		if r.runtime == nil {
			// A person who enabled or disabled the server by hand is respected until the file changes its own word about that.
			wanted := !spec.Disabled
			if was != nil && was.Disabled == spec.Disabled {
				wanted = r.wanted
			}
			s.applySpec(ctx, r, wanted, 0)
		}
	}
}

// recheckPolicies applies the policies to the servers that stay: one that is refused now ends, one that was refused begins.
func (s *supervisor) recheckPolicies(ctx actor.Context) {
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		r := s.servers[name]
		if r.removing || r.pid == nil || r.owner != nil { // a successor's spawn checks the policies itself
			continue
		}
		// Only a changed answer is applied: anything else would interrupt servers for nothing.
		if cause := s.blockingCause(r); (cause == nil) != (r.blocked == nil) || cause != nil && *cause != *r.blocked {
			s.applySpec(ctx, r, r.wanted, 0)
		}
	}
}

// SetResult translates the changes for the facade: a replaced server stands in Added and Removed, as SetServers reports it.
func (m ConfigureServers) SetResult(c config.Changes) messages.SetServersResult {
	res := messages.SetServersResult{Added: []string{}, Removed: []string{}, Errors: map[string]string{}, Kept: c.Kept}
	// SetServers has no word for a replaced server, so it stands in both lists.
	res.Added = append(append(res.Added, c.Added...), c.Replaced...)
	res.Removed = append(append(res.Removed, c.Removed...), c.Replaced...)
	res.Adjusted = slices.Concat(c.Adjusted, c.Moved)
	for _, list := range [][]string{res.Added, res.Removed, res.Adjusted} {
		slices.Sort(list)
	}
	for name, spec := range m.Specs {
		if spec.Invalid != "" {
			res.Errors[name] = spec.Invalid
		}
	}
	return res
}
