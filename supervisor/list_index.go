package supervisor

import (
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// maxIndex bounds what is remembered of one server, for resources and prompts each; maxIndexBytes bounds its URIs. A
	// server that has more is not remembered, and takes nothing of what is remembered of others.
	maxIndex      = 1 << 16
	maxIndexBytes = 4 << 20
)

// listIndex is what a manager remembers of servers' lists: the prompts whose qualified names do not say whose they are, and
// which server listed a resource last. It is a memory of answers, and never asked instead of a connected server. Safe for
// concurrent use.
type listIndex struct {
	mu        sync.Mutex
	prompts   map[string]map[string]string // server → qualified name → name
	resources map[string]listedURIs        // by server
}

// listedURIs are the URIs that a server listed, for those who were let in then.
type listedURIs struct {
	owner listOwner
	uris  map[string]bool
}

// listOwner is what decides which resources a server shows: how it is reached, and for which account.
type listOwner struct {
	spec    *Spec
	account string
}

// covers reports whether what was listed under b is there for o as well.
func (b listOwner) covers(o listOwner) bool {
	return b.account == o.account && (b.spec == o.spec || b.spec != nil && o.spec != nil && b.spec.SameConnection(*o.spec))
}

// addPrompts notes the prompts whose names carry a hash.
func (x *listIndex) addPrompts(prompts []messages.Prompt, naming messages.Naming) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range prompts {
		p := &prompts[i]
		if _, _, plain := naming.Split(p.Qualified); plain {
			continue
		}
		if x.prompts == nil {
			x.prompts = map[string]map[string]string{}
		}
		if own := x.prompts[p.Server]; own == nil || len(own) >= maxIndex {
			x.prompts[p.Server] = map[string]string{}
		}
		x.prompts[p.Server][p.Qualified] = p.Name
	}
}

func (x *listIndex) findPrompt(qualified string) (server, name string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for server, own := range x.prompts {
		if name, ok := own[qualified]; ok {
			return server, name, true
		}
	}
	return "", "", false
}

// forgetServer drops what is remembered of a server.
func (x *listIndex) forgetServer(server string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.prompts, server)
	delete(x.resources, server)
}

// setResources notes a server's resources, for those that context stands for. After an error what was known of it stands.
func (x *listIndex) setResources(server string, context listOwner, resources []messages.Resource, err error) {
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.resources, server)
	size := 0
	for i := range resources {
		size += len(resources[i].URI)
	}
	if len(resources) > maxIndex || size > maxIndexBytes {
		return
	}
	if x.resources == nil {
		x.resources = map[string]listedURIs{}
	}
	uris := make(map[string]bool, len(resources))
	for i := range resources {
		uris[resources[i].URI] = true
	}
	x.resources[server] = listedURIs{context, uris}
}

// serversListing are the servers, still known, that listed a resource when they were last asked for the same credentials. now says
// to whom a server's lists belong now, and whether there is such a server.
func (x *listIndex) serversListing(uri string, now func(server string) (listOwner, bool)) (servers []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for server, own := range x.resources {
		if context, known := now(server); !known || !own.owner.covers(context) {
			delete(x.resources, server)
		} else if own.uris[uri] {
			servers = append(servers, server)
		}
	}
	slices.Sort(servers)
	return servers
}

// listOwnerOf is to whom the lists of a server belong now.
func (m *Manager) listOwnerOf(server string) (b listOwner, known bool) {
	cell := m.shared.cellOf(server)
	if cell == nil {
		return b, false
	}
	b.spec = cell.View().Spec
	b.account = m.cfg.credentials.findCredential(server).actingAccount()
	return b, true
}
