package remote

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// What a peer may ask: decided by its rights, what it holds already, and the servers that there are.

// check says why a command is refused. What it asks to add becomes the spec of its template.
func (g *gatekeeper) check(r Rights, a arrived) error {
	name := nameOf(a.message)
	if !allows(r.Commands, name) {
		return denied("remote", "", fmt.Sprintf("the peer %q may not send %s", a.identity, name),
			fmt.Sprintf("add %q to the Commands of Config.Rights[%q] on the machine that runs the manager", name, a.identity))
	}
	if err := g.room(a); err != nil {
		return err
	}
	if row := table[name]; row.every && !r.everywhere() {
		return g.hidden(a.identity, "")
	}
	if err := g.named(r, a); err != nil {
		return err
	}
	switch m := a.message.(type) {
	case *messages.AddServer:
		spec, err := g.cfg.instantiate(r, m.GetName(), m.GetSpec())
		m.Spec = spec
		return err
	case *messages.SetServers:
		for server, p := range m.GetServers() {
			spec, err := g.cfg.instantiate(r, server, p)
			if err != nil {
				return err
			}
			m.Servers[server] = spec
		}
	}
	return nil
}

// room says that the peer, or all of them, have asked for too much that has not ended.
func (g *gatekeeper) room(a arrived) error {
	own := g.loads[a.identity]
	if own == nil {
		own = &load{}
	}
	switch a.message.(type) {
	case *messages.Unwatch:
		return nil
	case *messages.Watch, *messages.HandleRequests:
		if own.standing >= maxStanding || g.all.standing >= maxAllStanding {
			return exhausted(fmt.Sprintf("%d watches of this peer, and %d of all, are open already", own.standing, g.all.standing))
		}
		return nil
	}
	if own.commands >= maxCommands || own.commands > 0 && own.bytes+a.size > maxHeld ||
		g.all.commands >= maxAllCommands || g.all.commands > 0 && g.all.bytes+a.size > maxAllHeld {
		return exhausted(fmt.Sprintf("%d commands of this peer, and %d of all, wait for their reply already", own.commands, g.all.commands))
	}
	return nil
}

// named checks the servers that a command names. A tool that is called by its qualified name is looked up here, and called
// by its server's name, so that what was checked is what is called.
func (g *gatekeeper) named(r Rights, a arrived) error {
	row := table[nameOf(a.message)]
	if row.list != "" {
		for _, server := range texts(a.message, row.list) {
			if !r.server(server) {
				return g.hidden(a.identity, server)
			}
		}
	}
	if row.server == "" {
		return nil
	}
	server := text(a.message, row.server)
	if call, ok := a.message.(*messages.CallTool); ok && server == "" && !r.everywhere() {
		entry, known := g.manager.Tools().Lookup(call.GetTool())
		if !known || !r.server(entry.Tool.Server) {
			return g.hidden(a.identity, "")
		}
		call.Server, call.Tool = entry.Tool.Server, entry.Tool.Name
		return nil
	}
	if server == "" && r.everywhere() || r.server(server) {
		return nil
	}
	return g.hidden(a.identity, server)
}

// hidden says the same of a server that is not there and of one that the peer may not know.
func (g *gatekeeper) hidden(identity, server string) error {
	text := "the peer has no right to every server, and none is named that it may use"
	if server != "" {
		text = "there is no such server for this peer"
	}
	return denied("remote", server, text,
		fmt.Sprintf("name a server in Config.Rights[%q].Servers of the machine that runs the manager", identity))
}

// confine names the servers in a command that means all of them: those that the peer may know. It reports that there are
// none. Whose call it is, and its id, become the peer's own.
func (g *gatekeeper) confine(r Rights, m proto.Message) (empty bool) {
	row := table[nameOf(m)]
	if row.list == "" || r.everywhere() || len(texts(m, row.list)) > 0 {
		return false
	}
	var all []string
	for _, server := range g.manager.Servers() {
		if r.server(server) {
			all = append(all, server)
		}
	}
	setTexts(m, row.list, all)
	return len(all) == 0
}
