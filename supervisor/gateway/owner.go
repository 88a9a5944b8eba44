package gateway

import (
	"context"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// maxOwnersSize bounds what a view remembers of the owners of resources, in bytes of their URIs. When it is full, it begins anew.
const maxOwnersSize = 1 << 20

// ownerOf returns the server that a resource belongs to: the first that lists it, else the first with a template that it fits. An agent
// that knows a resource of a server keeps that owner while the server is away: another server may list the same URI meanwhile, and
// would answer for it. Without an owner, why says which servers might be it. A view of one server has no other choice.
func (v *view) ownerOf(ctx context.Context, uri string) (server, why string) {
	if v.server != "" {
		return v.server, ""
	}
	known := v.knownOwner(uri)
	if known != "" && v.isAway(known) {
		return known, ""
	}
	server, ok := v.listedOwner(ctx, uri)
	if !ok && v.g.awaitFirstAttempts(ctx) {
		server, ok = v.listedOwner(ctx, uri)
	}
	switch {
	case ok:
	case known != "":
		return known, ""
	default:
		// A resource that is in no list can only belong to the one server that has resources at all.
		candidates := v.haveResources()
		if len(candidates) != 1 {
			return "", whyNoOwner(v, candidates)
		}
		server = candidates[0]
		if v.isAway(server) && !v.g.declaresResources(server) {
			return "", whyNoOwner(v, candidates)
		}
	}
	v.noteOwner(uri, server)
	return server, ""
}

// listedOwner returns the server that lists a resource, or a template that it fits.
func (v *view) listedOwner(ctx context.Context, uri string) (string, bool) {
	for _, r := range v.resources(ctx) {
		if r.URI == uri {
			return r.Server, true
		}
	}
	for _, t := range v.templates(ctx) {
		if t.URITemplate == uri || supervisor.TemplateFits(t.URITemplate, uri) {
			return t.Server, true
		}
	}
	return "", false
}

// haveResources returns the servers that may have resources: those that are connected and say so, and those that are away and have
// said so, or have not been seen connected. One that is switched off counts only if it has said so.
func (v *view) haveResources() (servers []string) {
	for _, name := range v.servers() {
		v.g.capabilitiesOf(name)
		switch has, seen := v.g.declared.Load(name); {
		case seen && has == false, !seen && !v.isAway(name):
		default:
			servers = append(servers, name)
		}
	}
	return servers
}

// capabilitiesOf returns what a connected server has declared, and remembers it for the time when it is away.
func (g *Gateway) capabilitiesOf(server string) *wire.Capabilities {
	c := g.all.Of(server).Capabilities(server)
	if c != nil {
		g.declared.Store(server, c.Resources)
	}
	return c
}

func (g *Gateway) declaresResources(server string) bool {
	has, _ := g.declared.Load(server)
	return has == true
}

// isAway reports whether a server is not connected, and not switched off either.
func (v *view) isAway(server string) bool {
	s, err := v.g.all.Of(server).ServerStatus(server)
	return err == nil && s.Status != messages.Disabled && v.g.capabilitiesOf(server) == nil
}

// knownOwner returns the server of which agents know a resource; empty if it is not remembered, or not shown any more.
func (v *view) knownOwner(uri string) string {
	v.mu.Lock()
	server := v.owners[uri]
	v.mu.Unlock()
	if server == "" || !v.g.all.Has(server) || !v.scope.Load().showsServer(server) {
		return ""
	}
	return server
}

// noteOwner remembers the owner of a resource, unless that of before is away.
func (v *view) noteOwner(uri, server string) {
	if known := v.knownOwner(uri); known == server || known != "" && v.isAway(known) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.owners[uri] == "" {
		if v.ownersSize += len(uri); v.owners == nil || v.ownersSize > maxOwnersSize {
			v.owners, v.ownersSize = map[string]string{}, len(uri)
		}
	}
	if v.ownersSize <= maxOwnersSize { // a URI that is larger than everything is not remembered
		v.owners[strings.Clone(uri)] = server
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
