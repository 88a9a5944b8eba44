package remote

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

// The checks of a peer's command: its rights, its limits, and the servers that there are. They run in the actor
// peerAuthorizer.

// checkCommand returns the error with which a command is refused, nil if it may go on. It replaces the specs that the
// command asks to add by those of their templates. The order of the checks matters: a peer without the right to a
// command learns nothing else.
func (g *peerAuthorizer) checkCommand(r Rights, a peerCommand) error {
	name := messageName(a.message)
	if !matchesAny(r.Commands, name) {
		return deniedError("remote", "", fmt.Sprintf("the peer %q may not send %s", a.identity, name),
			fmt.Sprintf("add %q to the Commands of Config.Rights[%q] on the machine that runs the manager", name, g.cfg.rightsKeyOf(a.identity)))
	}
	// A peer that may send the command learns of the end whatever servers it may use: the same for each of them.
	if g.ended {
		return refusal.ClosedError("remote")
	}
	// The limits come before anything that costs a look at the manager.
	if err := g.checkLimits(a); err != nil {
		return err
	}
	if row := messageRules[name]; row.allServers && !r.allowsAllServers() {
		return g.hiddenServerError(a.identity, "")
	}
	if err := g.checkServerNames(r, a); err != nil {
		return err
		// The specs come last, because they depend on the command's right and its servers.
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

// checkLimits returns an error of ClassExhausted if the peer, or all peers together, have too many commands open. The
// first command of a peer always passes, however large it is: otherwise a limit below MaxMessage would refuse it for
// ever.
func (g *peerAuthorizer) checkLimits(a peerCommand) error {
	own := g.usages[a.identity]
	if own == nil {
		own = &usage{}
	}
	switch a.message.(type) {
	case *messages.Unwatch:
		return nil // it only makes room
	case *messages.Watch, *messages.HandleRequests:
		// One that replaces the actor's own needs no further place.
		if _, watch := a.message.(*messages.Watch); watch && g.watches[a.longLivedKey()] != nil || !watch && g.handlers[a.longLivedKey()] != nil {
			return nil
		}
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

// checkServerNames checks the servers that a command names. A tool that is called by its qualified name is looked up
// here and then called by its server's name, so that the checked tool is the called tool, even if the names change in
// between.
func (g *peerAuthorizer) checkServerNames(r Rights, a peerCommand) error {
	row := messageRules[messageName(a.message)]
	if row.list != "" {
		for _, server := range stringsField(a.message, row.list) {
			// One hidden server refuses the whole command: a shorter list would tell that the rest exists.
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
	// A command without a server means any server, which needs the right to all.
	if server == "" && r.allowsAllServers() || r.allowsServer(server) {
		return nil
	}
	return g.hiddenServerError(a.identity, server)
}

// hiddenServerError returns the same error for a server that does not exist and for one that the peer may not use, so
// that the peer cannot tell them apart.
func (g *peerAuthorizer) hiddenServerError(identity, server string) error {
	// A manager that closes takes its servers away one after the other: none of them is hidden from the peer then.
	if err := g.closedError(); err != nil {
		return err
	}
	text := "the peer has no right to every server, and none is named that it may use"
	if server != "" {
		text = "there is no such server for this peer"
	}
	return deniedError("remote", server, text,
		fmt.Sprintf("name a server in Config.Rights[%q].Servers of the machine that runs the manager", g.cfg.rightsKeyOf(identity)))
}

// closedError returns the error of a command to a manager that has begun to close, nil before.
func (g *peerAuthorizer) closedError() error {
	if g.ended || g.manager.IsClosed() {
		return refusal.ClosedError("remote")
	}
	return nil
}

// confineServers writes the names of the servers that the peer may use into a command that would otherwise mean all
// of them. It reports that there are none: the command must not go on then, because an empty list means all.
func (g *peerAuthorizer) confineServers(r Rights, m proto.Message) (empty bool) {
	row := messageRules[messageName(m)]
	if row.list == "" || r.allowsAllServers() || len(stringsField(m, row.list)) > 0 {
		return false
	}
	var all []string
	// The names of this moment: a server that is added later is not in the reply.
	for _, server := range g.manager.Servers() {
		if r.allowsServer(server) {
			all = append(all, server)
		}
	}
	setStringsField(m, row.list, all)
	return len(all) == 0
}
