package gateway

import (
	"context"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// maxOwnersSize bounds what a view remembers of owners, in bytes of what they own. When it is full, it begins anew.
const maxOwnersSize = 1 << 20

// An offer is a prompt by the name that agents know, or a resource by its URI: its kind is promptList or resourceList.
type offer struct {
	kind listKind
	name string
}

// ownerOf returns where an offer leads: to the server that lists it, for a resource else to the first with a template that it fits. An agent
// that knows an offer of a server keeps that owner while the server is away: another server may list the same meanwhile, and would answer for
// it. Without an owner, why says which servers might be it. A view of one server has no other choice.
func (v *view) ownerOf(ctx context.Context, wanted offer) (to named, why string) {
	if v.server != "" {
		return named{v.server, wanted.name}, ""
	}
	known := v.knownOwner(wanted)
	if known.server != "" && v.isAway(known.server) {
		return known, ""
	}
	if known.server != "" && v.listsStill(ctx, wanted, known) {
		return known, ""
	}
	to, ok := v.listedOwner(ctx, wanted)
	if !ok && v.g.awaitFirstAttempts(ctx) {
		to, ok = v.listedOwner(ctx, wanted)
	}
	switch {
	case ok:
	case known.server != "":
		return known, ""
	default:
		// What is in no list can only belong to the one server that has such offers at all.
		candidates := v.haveList(wanted.kind)
		if len(candidates) != 1 || v.isAway(candidates[0]) && !v.g.declaresList(candidates[0], wanted.kind) {
			return named{}, whyNoOwner(v, candidates)
		}
		// It is not remembered: when there are more of them, another one may be its owner.
		to = named{candidates[0], wanted.name}
		if wanted.kind == promptList {
			to.name = strings.TrimPrefix(wanted.name, to.server+"__")
		}
		return to, ""
	}
	v.noteOwner(wanted, to)
	return to, ""
}

// listsStill reports whether the server of an offer that agents know lists it, or a template that it fits. No other server is asked, which may
// be silent.
func (v *view) listsStill(ctx context.Context, wanted offer, known named) bool {
	ctx, cancel := context.WithTimeout(ctx, partWait)
	defer cancel()
	has := func(kind listKind, isIt func(name string) bool) bool {
		part := v.awaitPart(ctx, kind, known.server)
		for i := range part.n {
			if name, _ := part.entry(i); isIt(name) {
				return true
			}
		}
		return false
	}
	return has(wanted.kind, func(name string) bool { return name == known.name }) ||
		wanted.kind == resourceList && has(templateList, func(template string) bool { return fits(template, wanted.name) })
}

// fits reports whether a URI fits a template, which it may also be itself.
func fits(template, uri string) bool {
	return template == uri || supervisor.TemplateFits(template, uri)
}

// listedOwner returns where an offer leads that is listed, or fits a template that is.
func (v *view) listedOwner(ctx context.Context, wanted offer) (to named, ok bool) {
	due := time.Now().Add(partWait)
	if to, ok = v.offersOf(ctx, wanted.kind, due).leads[wanted.name]; ok || wanted.kind != resourceList {
		return to, ok
	}
	templates := v.offersOf(ctx, templateList, due)
	for _, template := range templates.names {
		if fits(template, wanted.name) {
			return named{templates.leads[template].server, wanted.name}, true
		}
	}
	return named{}, false
}

// haveList returns the servers that may have a list: those that are connected and say so, and those that are away and have said so, or
// have not been seen connected. One that is switched off counts only if it has said so.
func (v *view) haveList(kind listKind) (servers []string) {
	for _, name := range v.servers() {
		v.g.capabilitiesOf(name)
		if _, seen := v.g.declared.Load(name); v.g.declaresList(name, kind) || !seen && v.isAway(name) {
			servers = append(servers, name)
		}
	}
	return servers
}

// capabilitiesOf returns what a connected server has declared, and remembers it for the time when it is away.
func (g *Gateway) capabilitiesOf(server string) *wire.Capabilities {
	c := g.all.Of(server).Capabilities(server)
	if c != nil {
		g.declared.Store(server, c)
	}
	return c
}

// declaresList reports whether a server has said that it has a list, when it was seen connected last.
func (g *Gateway) declaresList(server string, kind listKind) bool {
	c, _ := g.declared.Load(server)
	declared, ok := c.(*wire.Capabilities)
	return ok && lists[kind].has(declared)
}

// isAway reports whether a server is not connected, and not switched off either.
func (v *view) isAway(server string) bool {
	s, err := v.g.all.Of(server).ServerStatus(server)
	return err == nil && s.Status != messages.Disabled && v.g.capabilitiesOf(server) == nil
}

// knownOwner returns where agents know an offer to lead; nowhere if it is not remembered, or its server not shown any more.
func (v *view) knownOwner(known offer) named {
	v.mu.Lock()
	to := v.owners[known]
	v.mu.Unlock()
	if to.server == "" || !v.g.all.Has(to.server) || !v.scope.Load().showsServer(to.server) {
		return named{}
	}
	return to
}

// noteOwners remembers the owners of a list that an agent was given, once for each list.
func (v *view) noteOwners(kind listKind, l *offerList) {
	v.mu.Lock()
	noted := v.noted[kind] == l
	v.mu.Unlock()
	if noted || kind == templateList {
		return
	}
	for _, name := range l.names {
		v.noteOwner(offer{kind, name}, l.leads[name])
	}
	v.mu.Lock()
	v.noted[kind] = l
	v.mu.Unlock()
}

// noteOwner remembers where an offer leads, unless the server of before is away.
func (v *view) noteOwner(known offer, to named) {
	if before := v.knownOwner(known); before == to || before.server != "" && v.isAway(before.server) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, there := v.owners[known]; !there {
		if v.ownersSize += len(known.name); v.owners == nil || v.ownersSize > maxOwnersSize {
			v.owners, v.noted, v.ownersSize = map[offer]named{}, [listKinds]*offerList{}, len(known.name)
		}
	}
	if v.ownersSize <= maxOwnersSize { // a URI that is larger than everything is not remembered
		v.owners[offer{known.kind, strings.Clone(known.name)}] = named{to.server, strings.Clone(to.name)}
	}
}

// whyNoOwner says which of the candidates are away; empty if none is.
func whyNoOwner(v *view, candidates []string) string {
	var away []string
	for _, name := range candidates {
		if v.isAway(name) {
			away = append(away, messages.Line(name, 60))
		}
	}
	if len(away) == 0 {
		return ""
	}
	return ": no connected server lists it, and these are not connected: " + messages.Line(strings.Join(away, ", "), 400)
}
