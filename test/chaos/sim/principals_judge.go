package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// This file judges what is promised of instances: nothing of one caller reaches another's, each caller has at most one of a server and a
// server no more than its bound, and they end with their server, after idleness, and with nothing left.

// checkCaller judges on whose behalf an instance is dialled, or a message sent to it: the credentials are chosen by that. The server's
// own connection also answers the lists and pings of callers that have no instance, and the question before them in the modern era.
func (p *principals) checkCaller(name, principal, caller, what string) {
	anybody := strings.HasSuffix(what, "/list") || strings.HasPrefix(what, "notifications/") || slices.Contains([]string{"answer", "ping", "server/discover", "initialize"}, what)
	if caller != principal && (principal != "" || !anybody) {
		p.reportViolation("I3", name, fmt.Sprintf("%q went to %s with the credentials of %q", what, name, caller))
	}
}

// checkAnswer judges that a question of an instance was put to its own caller: every answer names who gave it.
func (p *principals) checkAnswer(name, principal, body string) {
	for _, before := range []string{`"for":"`, `"type":"text","text":"`, `"uri":"file:///`} {
		_, rest, found := strings.Cut(body, before)
		if caller, _, _ := strings.Cut(rest, `"`); found && caller != principal {
			p.reportViolation("I3", name, fmt.Sprintf("a question of %s was put to the caller %q", name, caller))
		}
	}
}

// nameOf returns the server of an instance.
func nameOf(instance string) string {
	server, _, _ := strings.Cut(instance, "@")
	return server
}

// recordHost judges what a server's end has seen. Only the loop calls it.
func (p *principals) recordHost(name, principal string, e history.Event) {
	p.mu.Lock()
	h, u := p.hosts[name], p.useOf(name)
	c, known := p.calls[e.Call]
	p.mu.Unlock()
	p.expectUpdate(name, principal, e)
	switch e.Kind {
	case history.Received:
		p.checkCaller(name, principal, e.By, cmp.Or(e.Method, "answer"))
		if e.Method == "" {
			p.checkAnswer(name, principal, e.Text)
		}
		if e.Method != "tools/call" || !known {
			return
		}
		p.mu.Lock()
		u.reached = p.world.virtualNow
		p.mu.Unlock()
		switch {
		case c.caller != principal || c.server != nameOf(name):
			p.reportViolation("I3", name, fmt.Sprintf("the call %s of %q for %s reached %s", e.Call, c.caller, c.server, name))
		case c.server == rulesServer && c.tool == deniedTool || c.caller == refusedCaller && c.tool == refusedPut:
			p.reportViolation("I3", name, fmt.Sprintf("the call %s of %q reached the server, and its tool %s is refused", e.Call, c.caller, c.tool))
		}
	case history.Answered:
		if e.Method == "tools/call" && known {
			p.mu.Lock()
			u.reached = p.world.virtualNow
			p.mu.Unlock()
		}
	case history.Open:
		p.tellStory("%s was dialled", name)
		p.checkDialled(name)
		p.checkOnlyConn(name, h)
	case history.Released, history.Refused, history.Down:
		p.tellStory("%s: %s", name, e.Kind)
		p.mu.Lock()
		defer p.mu.Unlock()
		idle := time.Duration(p.specs[nameOf(name)].InstanceIdle)
		if now := p.world.elapsedTime(); principal != "" && e.Kind == history.Released && !p.closing.Load() && u.disturbed+disturbedFor < now && now < u.reached+idle-time.Second {
			story := slices.Clone(p.story[max(0, len(p.story)-6):])
			p.reportWith("I12", name, fmt.Sprintf("%s ended %s after its last use, and may only after %s", name, now-u.reached, idle), story)
		} else if principal != "" && e.Kind == history.Released && !p.closing.Load() && u.disturbed+disturbedFor < now && p.isWatched(name, now-time.Second) {
			p.reportWith("I12", name, fmt.Sprintf("%s ended, and its resource is watched since %s", name, p.watchOf(name).since), slices.Clone(p.story[max(0, len(p.story)-6):]))
		}
	default:
	}
}

// checkOnlyConn judges that a connection of an instance which was just dialled is its only one. Within one instant ends count before
// begins, as in the judge of servers: the release of the connection before may be told after the dial.
func (p *principals) checkOnlyConn(name string, h *simServer) {
	if len(h.conns) < 2 {
		return
	}
	before := slices.Sorted(maps.Keys(h.conns))
	before = before[:len(before)-1]
	p.world.timeline.planAction(p.world.virtualNow+1, "", func() {
		if slices.ContainsFunc(before, func(number int) bool { return h.conns[number] != nil }) {
			p.reportViolation("I6", name, fmt.Sprintf("%s was dialled while another connection of it was open", name))
		}
	})
}

// disturbedFor is the time after a fault or a command in which an instance may end for it: a call may take so long.
const disturbedFor = 2 * time.Minute

// checkEnd judges how a call ended.
func (p *principals) checkEnd(id string, c principalCall, target string, raw []byte, err error) {
	own := nameFor(c.server, c.caller)
	var typed *supervisor.Error
	switch answered := textAfter(raw, `\"call\":\"`, '\\'); {
	case err == nil && answered != "" && answered != id:
		p.reportViolation("I3", own, "the call "+id+" got the answer of "+answered)
	case target != c.server && target != own && (err == nil || messages.OutcomeOf(err) != messages.OutcomeNotSent):
		p.reportViolation("I3", target, fmt.Sprintf("a call of %q for the instance %s, which is another's, ended as %v", c.caller, target, err))
	case err != nil && errors.As(err, &typed) && !slices.Contains([]string{"", c.server, own, target}, typed.Server):
		p.reportViolation("I3", own, fmt.Sprintf("the call %s of %q for %s ended with an error of %s", id, c.caller, c.server, typed.Server))
	}
}

// checkFull judges that a caller is refused an instance for the sake of the others only if there are as many as may be. most is how many there
// were, at the beginning of the call or at its end.
func (p *principals) checkFull(id, server string, most int, err error) {
	p.mu.Lock()
	bound := p.specs[server].MaxInstances
	p.mu.Unlock()
	if errors.Is(err, supervisor.ErrTooManyInstances) && most < bound {
		p.reportViolation("I21", server, fmt.Sprintf("the call %s was refused because there are as many instances as may be, and there are %d of %d", id, most, bound))
	}
}

// glance judges what the manager says of its instances while nothing moves, and plans the next glance.
func (p *principals) glance() {
	if next := p.world.virtualNow + glanceEvery/3; next < p.world.plan.End-time.Minute {
		p.world.timeline.planAction(next, "", p.glance)
	}
	m := p.manager
	if m == nil {
		return
	}
	statuses, snapshot := map[string]messages.Status{}, m.Tools()
	counts := map[string]int{}
	for _, st := range m.Status() {
		statuses[st.Name] = st
		if st.InstanceOf != "" {
			counts[st.InstanceOf]++
		}
		p.checkIdle(&st)
	}
	for _, name := range slices.Sorted(maps.Keys(statuses)) {
		st := statuses[name]
		if server, there := statuses[st.InstanceOf]; there {
			p.checkConfig(&st, &server)
		}
	}
	for server := range p.servers {
		listed := m.Instances(server)
		if most := p.specs[server].MaxInstances; len(listed) > most || counts[server] > most {
			p.reportViolation("I6", server, fmt.Sprintf("%s has the instances %q, and may have %d", server, listed, most))
		}
		for _, name := range listed {
			if _, there := statuses[name]; !there {
				p.reportViolation("I12", name, name+" is remembered as an instance, and it has ended")
			}
		}
		p.checkTools(snapshot, server)
	}
	for e := range snapshot.All() {
		if !slices.Contains(snapshot.Server(e.Tool.Server), e) {
			p.reportViolation("I14", e.Tool.Server, "the tool "+e.Name+" of an instance stands in the list of all")
		}
	}
	for _, name := range snapshot.Servers() {
		if p.servers[name].Name == "" {
			p.reportViolation("I14", name, "the list of all names the instance "+name)
		}
	}
}

// checkTools judges what each caller is offered of a server: the tools of its own instance or of the server, and none that is refused.
func (p *principals) checkTools(snapshot *supervisor.Snapshot, server string) {
	for _, caller := range principalNames {
		name := nameFor(server, caller)
		for _, e := range snapshot.Server(name) {
			if server == rulesServer && e.Tool.Name == deniedTool {
				p.reportViolation("I1", name, "the tool "+e.Name+" of "+name+" is offered, and a rule denies it")
			}
		}
		seen := ""
		for _, e := range p.manager.ToolsFor(supervisor.WithCaller(context.Background(), caller)) {
			switch {
			case e.Tool.Server != server:
			case caller == refusedCaller && e.Tool.Name == refusedPut:
				p.reportViolation("I3", name, fmt.Sprintf("%q is offered %s, which Config.Allow refuses to it", caller, e.Name))
			case !slices.Contains(snapshot.Server(name), e) && !slices.Contains(snapshot.Server(server), e):
				p.reportViolation("I14", name, fmt.Sprintf("%q is offered %s of another's instance", caller, e.Name))
			case e.Name == seen:
				p.reportViolation("I14", name, fmt.Sprintf("%q is offered %s twice", caller, e.Name))
			}
			seen = e.Name
		}
	}
}

// checkIdle judges that an instance which nobody has used for long enough is gone.
func (p *principals) checkIdle(st *messages.Status) {
	if st.InstanceOf == "" {
		return
	}
	p.mu.Lock()
	u, idle := *p.useOf(st.Name), time.Duration(p.specs[st.InstanceOf].InstanceIdle)
	p.mu.Unlock()
	// The timer of a longer time than the spec's now may have been armed, and a removal takes as long as a stubborn process.
	if late := p.world.virtualNow - max(u.last, u.disturbed) - idle; st.Status == messages.Connected && u.running == 0 && !u.subscribed && late > 3*time.Minute {
		p.reportViolation("I12", st.Name, fmt.Sprintf("%s is there %s after its last use, and its idle time is %s", st.Name, p.world.virtualNow-u.last, idle))
	}
}

// checkNoneLeft judges that the instances of a server have ended with it. since is the time of the command.
func (p *principals) checkNoneLeft(server, why string, since time.Duration) {
	if p.world.virtualNow < since+30*time.Second {
		return // their processes may still be ending
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.hosts)) {
		if name != server && nameOf(name) == server && len(p.hosts[name].conns) > 0 {
			p.reportWith("I6", name, fmt.Sprintf("%s has a connection %s after its server's end: %s", name, p.world.virtualNow-since, why), p.story)
		}
	}
}

// checkClosed judges that nothing is left after Close.
func (p *principals) checkClosed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.hosts)) {
		if len(p.hosts[name].conns) > 0 {
			p.reportWith("I12", name, name+" has a connection after Close", p.story)
		}
	}
}
