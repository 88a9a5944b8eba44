package remote

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Rights are what a peer may ask of a manager. The zero value is nothing.
type Rights struct {
	// Servers are names of servers, or beginnings of names with a "*" behind them; "*" is every server. A peer is told of
	// no others and may ask about no others.
	Servers []string
	// Commands are names of the commands of package messages, such as "CallTool": Commands lists all, ReadingCommands and
	// CallingCommands the harmless ones. "ProvideCredentials" sends a token to a server, "RemoveServer" takes one away from
	// everybody. "SetServers", "Reload" and "HandleRequests" (it takes all questions of servers, and the answers are the
	// peer's) are about every server, and need "*" in Servers.
	Commands []string
	// Templates are names in Config.Templates of what AddServer and SetServers may add; "*" is all of them.
	Templates []string
	// Addresses are where the peer may listen ("host:port"), beside the hosts that its certificate names.
	Addresses []string
}

// Anybody is the key of Config.Rights for the peers that no other key means.
const Anybody = "*"

// Everything is every command, for every server, with every template. It names the commands that exist in this version: a
// command that a later version adds is part of it only if that version says so.
func Everything() Rights {
	return Rights{Servers: []string{"*"}, Commands: Commands(), Templates: []string{"*"}}
}

// rightsOf are the rights of an identity: those of its own key, of the longest key with "/*" that means it, or Anybody's.
func (c Config) rightsOf(identity string) Rights {
	if r, ok := c.Rights[identity]; ok {
		return r
	}
	best, found := "", c.Rights[Anybody]
	for key, r := range c.Rights {
		if root, many := strings.CutSuffix(key, "*"); many && key != Anybody && len(root) > len(best) && strings.HasPrefix(identity, root) {
			best, found = root, r
		}
	}
	return found
}

// matchesAny reports whether a name is one of the patterns.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		root, many := strings.CutSuffix(p, "*")
		return p == name || many && strings.HasPrefix(name, root)
	})
}

func (r Rights) allowsAllServers() bool { return slices.Contains(r.Servers, "*") }

func (r Rights) allowsServer(name string) bool { return name != "" && matchesAny(r.Servers, name) }

func (r Rights) allowsTemplate(name string) bool {
	return slices.Contains(r.Templates, name) || slices.Contains(r.Templates, "*")
}

// validate refuses rights that cannot mean what they say.
func (r Rights) validate(key string, templates map[string]Template) error {
	at := func(text, fix string) error { return invalidError(fmt.Sprintf("the rights of %q: %s", key, text), fix) }
	if root, many := strings.CutSuffix(key, "*"); many && key != Anybody && !strings.HasSuffix(root, "/") {
		return at("a key that means several identities ends with \"/*\"", `write it as "mcpvisor://cluster/agent/*", or give each its key`)
	}
	for _, name := range r.Commands {
		row, known := messageRules[name]
		if !known || row.kind != kindCommand || row.failureReply == nil {
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

func deniedError(op, server, text, fix string) error {
	return &messages.Error{Op: op, Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Server: server, Text: text, Fix: fix}
}
