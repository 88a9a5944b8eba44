package daemon

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errNoStart = errors.New("it cannot start")

// The servers of a directory end when no agent and no command has used them for the idle time, and with them those that no other directory
// shares. A directory that cannot start ends with its last user, and makes room for the next attempt at once.
func TestServersEndWhenNoAgentHasUsedThem(t *testing.T) {
	for what, c := range map[string]struct {
		users  int
		set    func(h *host)
		after  func(d *daemon, h *host) // follows the release, 30 s later
		within time.Duration            // the host ends so long after the release; 0 for not at all
	}{
		"its last agent leaves":       {users: 1, within: time.Minute},
		"another one stays":           {users: 2},
		"they are held":               {users: 1, set: func(h *host) { h.held = true }},
		"an agent comes back in time": {users: 1, after: func(d *daemon, h *host) { d.mu.Lock(); h.users++; d.mu.Unlock() }},
		"the daemon ends meanwhile":   {users: 1, after: func(d *daemon, _ *host) { d.mu.Lock(); d.ending = true; d.mu.Unlock() }},
		"they could not start":        {users: 1, set: func(h *host) { h.err = errNoStart }, within: time.Nanosecond},
		"and another one tries":       {users: 2, set: func(h *host) { h.err = errNoStart }, within: time.Nanosecond},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &daemon{idle: time.Minute, hosts: map[string]*host{}, parts: map[string]*part{}}
				own, shared := d.partFor("own", func() *part { return &part{} }), d.partFor("shared", func() *part { return &part{} })
				if d.partFor("shared", func() *part { return &part{} }) != shared {
					t.Fatal("another directory does not share the part")
				}
				h := &host{key: "k", users: c.users, parts: []*part{own, shared}}
				d.hosts["k"] = h
				if c.set != nil {
					c.set(h)
				}
				d.releaseHost(h)
				if c.after != nil {
					time.Sleep(30 * time.Second)
					c.after(d, h)
				}
				at := func(when time.Duration, isThere bool) {
					time.Sleep(when)
					synctest.Wait()
					d.mu.Lock()
					defer d.mu.Unlock()
					if (d.hosts["k"] == h) != isThere {
						t.Errorf("after %v the host is there: %v", when, d.hosts["k"] == h)
					}
					if c.users == 1 && (d.parts["own"] == own) != isThere {
						t.Errorf("after %v its own part is there: %v", when, d.parts["own"] == own)
					}
					if d.parts["shared"] != shared {
						t.Error("what another directory shares is gone")
					}
				}
				if c.within > time.Nanosecond {
					at(c.within-time.Nanosecond, true)
					at(time.Nanosecond, false)
				}
				at(time.Hour, c.within == 0)
				d.closing.Wait()
				d.leavePart(shared)
				if c.within > 0 && c.users == 1 && len(d.parts) != 0 {
					t.Errorf("%d parts are left", len(d.parts))
				}
			})
		})
	}
}
