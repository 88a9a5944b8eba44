package gateway

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Prefix says which names carry the id of their server, as server__name.
type Prefix string

const (
	// PrefixAlways gives it to every name: a name never changes because of another server.
	PrefixAlways Prefix = "always"
	// PrefixConflict gives it to the names that several servers have.
	PrefixConflict Prefix = "conflict"
	// PrefixNever gives it to no name of the first server that has it, in the order of the servers' ids, and to those of the
	// others, which would be lost.
	PrefixNever Prefix = "never"
)

// Valid reports whether p is one of the three.
func (p Prefix) Valid() bool { return p == PrefixAlways || p == PrefixConflict || p == PrefixNever }

// mcpPrefix is what messages.Naming puts before its names, and what the names of a gateway lack: agents put it there themselves.
const mcpPrefix = "mcp__"

// namingFor returns the rule of the names for agents that name the gateway so, and put mcp__{gateway}__ before a name: both together
// have at most 64 characters.
func namingFor(gateway string) messages.Naming {
	return messages.Naming{Limit: messages.DefaultNameLimit - len(mcpPrefix+gateway+"__") + len(mcpPrefix)}
}

// prefixedName returns server__name, shortened with a hash where it is too long.
func (g *Gateway) prefixedName(server, name string) string {
	return strings.TrimPrefix(g.naming.Tool(server, name), mcpPrefix)
}

// splitName takes a plain prefixed name apart.
func (g *Gateway) splitName(shown string) (server, name string, ok bool) {
	return g.naming.Split(mcpPrefix + shown)
}

// fitsModel reports whether a name without its server is short enough for the models.
func (g *Gateway) fitsModel(name string) bool { return len(name) <= g.naming.Limit-len(mcpPrefix) }

// A named thing is one of a server: its id and its own name.
type named struct{ server, name string }

// prefixWithin returns the rule for the names of a view, with this scope.
func (v *view) prefixWithin(s *scope) Prefix {
	if v.server != "" {
		return PrefixNever
	}
	return s.prefix
}

// namesOf returns the name of each thing in a view, in their order, which is that of the servers' ids. It is a pure function. A name that another thing has with its prefix is never given without one: of a tool b__read of a, and
// read of b, both carry theirs.
func (g *Gateway) namesOf(prefix Prefix, all []named) []string {
	count := make(map[string]int, len(all))
	if prefix == PrefixConflict {
		for _, n := range all {
			count[n.name]++
		}
	}
	shown, bare := make([]string, len(all)), make([]bool, len(all))
	for i, n := range all {
		switch prefix {
		case PrefixConflict:
			bare[i] = count[n.name] == 1
		case PrefixNever:
			bare[i] = count[n.name] == 0
			count[n.name]++
		default:
		}
		bare[i] = bare[i] && g.fitsModel(n.name)
		if shown[i] = n.name; !bare[i] {
			shown[i] = g.prefixedName(n.server, n.name)
		}
	}
	// Each turn gives some things their prefix. Names get longer with it and are bounded, so the turns are few.
	for changed := prefix != PrefixAlways; changed; {
		changed = false
		prefixed := make(map[string]bool, len(all))
		for i := range all {
			if !bare[i] {
				prefixed[shown[i]] = true
			}
		}
		for i, n := range all {
			if bare[i] && prefixed[n.name] {
				bare[i], shown[i], changed = false, g.prefixedName(n.server, n.name), true
			}
		}
	}
	return shown
}

// withName returns a definition with another name, and all else byte for byte.
func withName(raw []byte, name, shown string) []byte {
	if name == shown {
		return raw
	}
	return rawjson.With(raw, "name", rawjson.AppendText(nil, shown))
}
