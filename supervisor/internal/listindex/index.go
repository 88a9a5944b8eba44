// Package listindex remembers what servers listed: which server has a prompt whose qualified name does not tell it, which servers
// listed a resource, and the lists of lazy servers. Package supervisor asks it for servers that are not connected; a connected server is
// asked itself.
//
//	var index listindex.Index
//	index.SetResources("files", owner, resources, nil)
//	servers := index.ServersListing("file:///a", ownerOf)
//
// Guarantees: no server takes room of another, and what was listed for one account answers for no other.
//
// Not promised: that everything is remembered. A server with more than 65,536 resources, or 4 MiB of URIs, is not remembered at all.
package listindex

import (
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// maxIndex bounds what is remembered of one server, for resources and prompts each; maxIndexBytes bounds its URIs. A server
	// with more resources is not remembered at all; a server with more prompts begins anew. Neither takes room of others.
	maxIndex      = 1 << 16
	maxIndexBytes = 4 << 20
)

// Index remembers servers' lists: the prompts whose qualified names do not contain the server, and which server listed a
// resource last. A connected server is always asked; the index speaks for those that are not connected. Safe for
// concurrent use.
type Index struct {
	mu        sync.Mutex
	prompts   map[string]map[string]string // server → qualified name → the server's own name
	resources map[string]listedURIs        // by server
	kept      map[string]*keptLists        // by server
}

// listedURIs are the URIs that a server listed, and for which account it did.
type listedURIs struct {
	owner Owner
	uris  map[string]bool
}

// Owner decides which resources a server shows: how it is reached, and for which account.
type Owner struct {
	Spec    *messages.Spec
	Account string
}

// covers reports whether what was listed for b may be used for o: the account is the same, and the connection would be too.
func (b Owner) covers(o Owner) bool {
	return b.Account == o.Account && (b.Spec == o.Spec || b.Spec != nil && o.Spec != nil && b.Spec.SameConnection(*o.Spec))
}

// AddPrompts remembers the prompts whose qualified names carry a hash in the place of a long name. Plain names can be split.
func (x *Index) AddPrompts(prompts []messages.Prompt, naming messages.Naming) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range prompts {
		p := &prompts[i]
		// Only a hash hides which server and prompt are meant.
		if _, _, plain := naming.Split(p.Qualified); plain {
			continue
		}
		if x.prompts == nil {
			x.prompts = map[string]map[string]string{}
		}
		// A server that lists prompts without end begins a new memory, and costs no other server.
		if own := x.prompts[p.Server]; own == nil || len(own) >= maxIndex {
			x.prompts[p.Server] = map[string]string{}
		}
		x.prompts[p.Server][p.Qualified] = p.Name
	}
}

// FindPrompt returns the server and the own name of a prompt that some server listed.
func (x *Index) FindPrompt(qualified string) (server, name string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for server, own := range x.prompts {
		if name, ok := own[qualified]; ok {
			return server, name, true
		}
	}
	return "", "", false
}

// ForgetServer drops what is remembered of a server, because it was removed or its account has changed.
func (x *Index) ForgetServer(server string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.prompts, server)
	delete(x.resources, server)
	delete(x.kept, server)
}

// SetResources replaces what is remembered of a server's resources, for the owner that context names. After an error the old list
// stays.
func (x *Index) SetResources(server string, context Owner, resources []messages.Resource, err error) {
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	// A list that is too long is not kept, and then the old one must not answer for it.
	delete(x.resources, server)
	// The bound is on bytes too: a URI may be long.
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

// ServersListing returns the servers that listed a resource, sorted. now returns whose lists a server gives now; entries of a
// server that is gone, or that listed for another owner, are dropped on the way.
func (x *Index) ServersListing(uri string, now func(server string) (Owner, bool)) (servers []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for server, own := range x.resources {
		// An entry for another owner would answer with resources that this account may not have.
		if context, known := now(server); !known || !own.owner.covers(context) {
			delete(x.resources, server)
		} else if own.uris[uri] {
			servers = append(servers, server)
		}
	}
	slices.Sort(servers)
	return servers
}
