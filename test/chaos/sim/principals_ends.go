package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// This file judges by the connections that what ends a server ends its instances, and what changes it changes them.

// endsInstances is the time in which the connections of a server and of its instances are gone after a command that ends them: a call
// may end before, and a process that stays has to be killed.
const endsInstances = time.Minute

// The commands that end a server's connections, or replace them, in the words of a violation.
const (
	disabling    = "the disabling"
	removal      = "the removal"
	otherSpec    = "another specification"
	reconnection = "the reconnect"
)

// openConns returns the open connections of a server and of its instances, by their names and numbers. Only the loop calls it.
func (p *principals) openConns(server string) map[string]map[int]*simConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := map[string]map[int]*simConn{}
	for name, h := range p.hosts {
		if nameOf(name) == server {
			open[name] = maps.Clone(h.conns)
		}
	}
	return open
}

// endedBy returns the connections of a server and of its instances that a command ends, by their names and numbers. statuses are the
// manager's before the command. The server's own connection stays warm when it is disabled. An attempt that runs already is as good as the
// one that a reconnect asks for, so an instance that is still opening may stay.
func (p *principals) endedBy(server, command string, statuses []messages.Status) map[string]map[int]*simConn {
	ended := p.openConns(server)
	switch command {
	case disabling:
		delete(ended, server)
	case reconnection:
		for i := range statuses {
			if st := &statuses[i]; st.Status == messages.Pending && st.Step != messages.Closing {
				delete(ended, st.Name)
			}
		}
	}
	return ended
}

// expectEnded plans the look after a command that ends connections: none of those is left then. refused says later whether the command was
// refused.
func (p *principals) expectEnded(server, command string, statuses []messages.Status, refused func() bool) {
	before := p.endedBy(server, command, statuses)
	p.world.timeline.planAction(p.world.virtualNow+endsInstances, "", func() {
		if refused() || p.closing.Load() {
			return
		}
		open := p.openConns(server)
		for _, name := range slices.Sorted(maps.Keys(open)) {
			for _, number := range slices.Sorted(maps.Keys(open[name])) {
				if before[name][number] != nil {
					p.reportViolation("I16", name, fmt.Sprintf("connection %d of %s is there %s after %s of %s, which ends it", number, name, endsInstances, command, server))
				}
			}
		}
	})
}

// checkDialled judges that a server which its owner has disabled or removed is dialled for nobody.
func (p *principals) checkDialled(name string) {
	server := nameOf(name)
	at, isOff := p.off[server]
	if removed, isRemoved := p.removed[server]; isRemoved {
		at, isOff = removed, true
	}
	if isOff && p.world.virtualNow > at+time.Second {
		p.reportViolation("I16", name, fmt.Sprintf("%s was dialled, and its server was disabled or removed at %s", name, at))
	}
}

// checkConfig judges that an instance has the specification of its server, once the last command about it is long over.
func (p *principals) checkConfig(instance, server *messages.Status) {
	if p.world.virtualNow < p.commanded[server.Name]+endsInstances || instance.Config == nil || server.Config == nil {
		return
	}
	own, its := *instance.Config, *server.Config
	if own.InstanceIdle != its.InstanceIdle || own.CallTimeout != its.CallTimeout || own.URL != its.URL || !slices.Equal(own.Args, its.Args) || own.MaxMessage != its.MaxMessage {
		p.reportViolation("I16", instance.Name, fmt.Sprintf("%s has another specification than %s, %s after the last command about that", instance.Name, server.Name,
			p.world.virtualNow-p.commanded[server.Name]))
	}
}
