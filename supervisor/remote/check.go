package remote

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// What a peer may ask: decided by its rights, what it holds already, and the servers that there are.

// checkCommand says why a command is refused. What it asks to add becomes the spec of its template.
func (g *peerAuthorizer) checkCommand(r Rights, a peerCommand) error {
	name := messageName(a.message)
	if !matchesAny(r.Commands, name) {
		return deniedError("remote", "", fmt.Sprintf("the peer %q may not send %s", a.identity, name),
			fmt.Sprintf("add %q to the Commands of Config.Rights[%q] on the machine that runs the manager", name, a.identity))
	}
	if err := g.checkLimits(a); err != nil {
		return err
	}
	if row := messageRules[name]; row.allServers && !r.allowsAllServers() {
		return g.hiddenServerError(a.identity, "")
	}
	if err := g.checkServerNames(r, a); err != nil {
		return err
	}
	switch m := a.message.(type) {
	case *messages.AddServer:
		spec, err := g.cfg.instantiateSpec(r, m.GetName(), m.GetSpec())
		m.Spec = spec
		return err
	case *messages.SetServers:
		for server, p := range m.GetServers() {
			spec, err := g.cfg.instantiateSpec(r, server, p)
			if err != nil {
				return err
			}
			m.Servers[server] = spec
		}
	}
	return nil
}

// checkLimits says that the peer, or all of them, have asked for too much that has not ended.
func (g *peerAuthorizer) checkLimits(a peerCommand) error {
	own := g.usages[a.identity]
	if own == nil {
		own = &usage{}
	}
	switch a.message.(type) {
	case *messages.Unwatch:
		return nil
	case *messages.Watch, *messages.HandleRequests:
		if own.longLived >= maxLongLived || g.totalUsage.longLived >= maxAllLongLived {
			return exhaustedError(fmt.Sprintf("%d watches of this peer, and %d of all, are open already", own.longLived, g.totalUsage.longLived))
		}
		return nil
	}
	if own.commands >= maxCommands || own.commands > 0 && own.bytes+a.size > maxCommandBytes ||
		g.totalUsage.commands >= maxAllCommands || g.totalUsage.commands > 0 && g.totalUsage.bytes+a.size > maxAllCommandBytes {
		return exhaustedError(fmt.Sprintf("%d commands of this peer, and %d of all, wait for their reply already", own.commands, g.totalUsage.commands))
	}
	return nil
}

// checkServerNames checks the servers that a command names. A tool that is called by its qualified name is looked up here, and called
// by its server's name, so that what was checked is what is called.
func (g *peerAuthorizer) checkServerNames(r Rights, a peerCommand) error {
	row := messageRules[messageName(a.message)]
	if row.list != "" {
		for _, server := range stringsField(a.message, row.list) {
			if !r.allowsServer(server) {
				return g.hiddenServerError(a.identity, server)
			}
		}
	}
	if row.server == "" {
		return nil
	}
	server := stringField(a.message, row.server)
	if call, ok := a.message.(*messages.CallTool); ok && server == "" && !r.allowsAllServers() {
		entry, known := g.manager.Tools().Lookup(call.GetTool())
		if !known || !r.allowsServer(entry.Tool.Server) {
			return g.hiddenServerError(a.identity, "")
		}
		call.Server, call.Tool = entry.Tool.Server, entry.Tool.Name
		return nil
	}
	if server == "" && r.allowsAllServers() || r.allowsServer(server) {
		return nil
	}
	return g.hiddenServerError(a.identity, server)
}

// hiddenServerError says the same of a server that is not there and of one that the peer may not know.
func (g *peerAuthorizer) hiddenServerError(identity, server string) error {
	text := "the peer has no right to every server, and none is named that it may use"
	if server != "" {
		text = "there is no such server for this peer"
	}
	return deniedError("remote", server, text,
		fmt.Sprintf("name a server in Config.Rights[%q].Servers of the machine that runs the manager", identity))
}

// confineServers names the servers in a command that means all of them: those that the peer may know. It reports that there are
// none. Whose call it is, and its id, become the peer's own.
func (g *peerAuthorizer) confineServers(r Rights, m proto.Message) (empty bool) {
	row := messageRules[messageName(m)]
	if row.list == "" || r.allowsAllServers() || len(stringsField(m, row.list)) > 0 {
		return false
	}
	var all []string
	for _, server := range g.manager.Servers() {
		if r.allowsServer(server) {
			all = append(all, server)
		}
	}
	setStringsField(m, row.list, all)
	return len(all) == 0
}
