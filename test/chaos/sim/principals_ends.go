package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// This file judges by the connections that what ends a server ends its instances, and what changes it changes them.

// endsInstances is the time in which the connections of a server and of its instances are gone after a command that ends them: a call
// may end before, and a process that stays has to be killed.
const endsInstances = time.Minute

// disabling is the command that disables a server.
const disabling = "the disabling"

// openConns returns the numbers of the open connections of a server and of its instances, by their names. Only the loop calls it.
func (p *principals) openConns(server string) map[string][]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := map[string][]int{}
	for name, h := range p.hosts {
		for number := range h.conns {
			if nameOf(name) == server {
				open[name] = append(open[name], number)
			}
		}
	}
	return open
}

// expectEnded plans the look after a command that ends a server, or replaces its connection: none of the connections of before is left
// then, but for the server's own that is disabled, which stays warm. refused says later whether the command was refused.
func (p *principals) expectEnded(server, command string, refused func() bool) {
	before := p.openConns(server)
	if command == disabling {
		delete(before, server)
	}
	p.world.timeline.planAction(p.world.virtualNow+endsInstances, "", func() {
		if refused() || p.closing.Load() {
			return
		}
		for name, now := range p.openConns(server) {
			for _, number := range now {
				if slices.Contains(before[name], number) {
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
