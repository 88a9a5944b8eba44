package catalog

import (
	"cmp"
	"errors"
	"fmt"
)

// Check verifies the invariants C1 to C6 of the package comment and returns every violation. It visits every entry, so
// it is for tests, the harness and debug builds.
func (s *Snapshot) Check() error {
	var errs []error
	fail := func(number, format string, args ...any) {
		errs = append(errs, fmt.Errorf(number+": "+format, args...))
	}
	// Every entry by name must be in the sorted list, and the other way round.
	named := 0
	for range s.byName.all {
		named++
	}
	if named != len(s.sorted) {
		fail("C1", "%d entries by name, %d in order", named, len(s.sorted))
	}
	for i, e := range s.sorted {
		if s.byName.get(e.Name) != e {
			fail("C1", "%s is not found by its name", e.Name)
		}
		if i > 0 && s.sorted[i-1].Name >= e.Name {
			fail("C2", "%s stands before %s", s.sorted[i-1].Name, e.Name)
		}
		if srv := s.servers.get(e.Tool.Server); srv == nil {
			fail("C4", "%s is of server %q, which is not known", e.Name, e.Tool.Server)
		}
	}
	// Every entry of a server must be in both, under the name that the naming gives it.
	owned := 0
	for id, srv := range s.servers.all {
		// An instance has its server's names, and is in no list.
		owner := cmp.Or(srv.owner, id)
		if srv.owner == "" {
			owned += len(srv.entries)
		}
		for i, e := range srv.entries {
			first := srv.entries[0]
			if srv.owner == "" && s.byName.get(e.Name) != e {
				fail("C1", "%s of server %q is not found by its name", e.Name, id)
			}
			if i > 0 && srv.entries[i-1].Tool.Name >= e.Tool.Name {
				fail("C2", "server %q has %q before %q", id, srv.entries[i-1].Tool.Name, e.Tool.Name)
			}
			if want := s.name(owner, e.Tool.Name); e.Name != want {
				fail("C3", "server %q, tool %q is called %s instead of %s", id, e.Tool.Name, e.Name, want)
			}
			if e.Tool.Server != owner {
				fail("C4", "%s of server %q stands in the list of %q", e.Name, e.Tool.Server, id)
			}
			moved := sameRoute(e.Route, e.Route) && !sameRoute(e.Route, first.Route) // a route may not be comparable
			if e.State != srv.state || e.Epoch != first.Epoch || moved {
				fail("C5", "%s is %v of epoch %d, its server is %v of %d", e.Name, e.State, e.Epoch, srv.state, first.Epoch)
			}
			if e.State == Lost && e.Route != nil {
				fail("C5", "%s is lost and has a route", e.Name)
			}
			if e.Epoch > srv.mark.epoch {
				fail("C6", "%s is of epoch %d, its server's mark of %d", e.Name, e.Epoch, srv.mark.epoch)
			}
		}
	}
	if owned != len(s.sorted) {
		fail("C1", "the servers have %d entries, the list %d", owned, len(s.sorted))
	}
	return errors.Join(errs...)
}
