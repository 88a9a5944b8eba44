package remote

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Rights are the rights of a peer at a manager. The zero value is none.
type Rights struct {
	// Servers are names of servers, or beginnings of names with a "*" behind them; "*" is every server. The peer
	// learns of no others and may ask about no others.
	Servers []string
	// Commands are names of the commands of package messages, such as "CallTool": [Commands] lists all,
	// [ReadingCommands] and [CallingCommands] the harmless ones. "ProvideCredentials" sends a token to a server,
	// "RemoveServer" takes one away from all callers. "SetServers", "Reload" and "HandleRequests" (the peer gets the
	// questions of all servers, and answers them) are about every server, and need "*" in Servers.
	Commands []string
	// Templates are names in Config.Templates of the servers that AddServer and SetServers may add; "*" is all of
	// them.
	Templates []string
	// Addresses are addresses ("host:port") at which the peer may listen, besides the hosts that its certificate
	// names.
	Addresses []string
}

// Anybody is the key of Config.Rights for the peers that no other key matches.
const Anybody = "*"

// Everything returns the right to every command, for every server, with every template. It names the commands of this
// version: a command of a later version is part of it only if that version says so.
func Everything() Rights {
	return Rights{Servers: []string{"*"}, Commands: Commands(), Templates: []string{"*"}}
}

// rightsOf returns the rights of an identity: those of its own key, else of the longest key with "/*" that matches,
// else Anybody's. Keys are never combined, so that a more exact key can also take rights away.
func (c Config) rightsOf(identity string) Rights { return c.Rights[c.rightsKeyOf(identity)] }

// rightsKeyOf returns the key that counts for an identity. Where none matches it is the identity: the key that is missing.
func (c Config) rightsKeyOf(identity string) string {
	if _, ok := c.Rights[identity]; ok {
		return identity
	}
	best := ""
	for key := range c.Rights {
		if root, many := strings.CutSuffix(key, "*"); many && key != Anybody && len(key) > len(best) && strings.HasPrefix(identity, root) {
			best = key
		}
	}
	if _, ok := c.Rights[Anybody]; ok && best == "" {
		return Anybody
	}
	return cmp.Or(best, identity)
}

// matchesAny reports whether a name equals one of the patterns, or begins with the text before a pattern's "*".
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		root, many := strings.CutSuffix(p, "*")
		return p == name || many && strings.HasPrefix(name, root)
	})
}

// allowsAllServers reports whether the rights hold for every server. A pattern that happens to match all of today's
// servers is not enough.
func (r Rights) allowsAllServers() bool { return slices.Contains(r.Servers, "*") }

// allowsServer reports whether the rights hold for a server.
func (r Rights) allowsServer(name string) bool { return name != "" && matchesAny(r.Servers, name) }

func (r Rights) allowsTemplate(name string) bool {
	return slices.Contains(r.Templates, name) || slices.Contains(r.Templates, "*")
}

// validate returns the error of rights that would not do what they seem to say: a misspelt command would silently be
// no right.
func (r Rights) validate(key string, templates map[string]Template) error {
	at := func(text, fix string) error { return invalidError(fmt.Sprintf("the rights of %q: %s", key, text), fix) }
	// Without the slash, "…/agent*" would also match "…/agent-of-another".
	if root, many := strings.CutSuffix(key, "*"); many && key != Anybody && !strings.HasSuffix(root, "/") {
		return at("a key that means several identities ends with \"/*\"", `write it as "mcpvisor://cluster/agent/*", or give each its key`)
	}
	for _, name := range r.Commands {
		row, known := messageRules[name]
		if !known || !isAnswered(name) {
			return at(fmt.Sprintf("there is no command %q", name), "use names from remote.Commands")
		}
		if row.allServers && !r.allowsAllServers() {
			return at(name+" is about every server", `give it "*" in Servers, or leave the command out`)
		}
	}
	for _, name := range r.Templates {
		if _, known := templates[name]; !known && name != "*" {
			return at(fmt.Sprintf("there is no template %q", name), "add it to Config.Templates")
		}
	}
	return nil
}

// deniedError returns the error of a command that a peer may not send; it is not-sent.
func deniedError(op, server, text, fix string) error {
	return &messages.Error{Op: op, Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Server: server, Text: text, Fix: fix}
}
