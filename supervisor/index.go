package supervisor

import (
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// maxIndex bounds each part of an index. When it is full it is forgotten and learned anew.
const maxIndex = 1 << 16

// index is what a manager remembers of servers' lists: the prompts whose qualified names do not say whose they are, and
// which server listed a resource last. It is a memory of answers, and never asked instead of a connected server. Safe for
// concurrent use.
type index struct {
	mu        sync.Mutex
	prompts   map[string][2]string       // qualified name → server, name
	resources map[string]map[string]bool // server → its URIs
	count     int                        // of URIs
}

// learn notes the prompts whose names carry a hash.
func (x *index) learn(prompts []messages.Prompt, naming messages.Naming) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range prompts {
		p := &prompts[i]
		if _, _, plain := naming.Split(p.Qualified); plain {
			continue
		}
		if x.prompts == nil || len(x.prompts) >= maxIndex {
			x.prompts = map[string][2]string{}
		}
		x.prompts[p.Qualified] = [2]string{p.Server, p.Name}
	}
}

func (x *index) prompt(qualified string) (server, name string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	pair, ok := x.prompts[qualified]
	return pair[0], pair[1], ok
}

// list notes a server's resources. After an error what was known of it stands.
func (x *index) list(server string, resources []messages.Resource, err error) {
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count -= len(x.resources[server])
	delete(x.resources, server)
	if len(resources) == 0 || len(resources) > maxIndex {
		return
	}
	if x.resources == nil || x.count+len(resources) > maxIndex {
		x.resources, x.count = map[string]map[string]bool{}, 0
	}
	uris := make(map[string]bool, len(resources))
	for i := range resources {
		uris[resources[i].URI] = true
	}
	x.resources[server] = uris
	x.count += len(uris)
}

// away are the servers, still known, that listed a resource when they were last asked.
func (x *index) away(uri string, known func(server string) bool) (servers []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for server, uris := range x.resources {
		if !known(server) {
			x.count -= len(uris)
			delete(x.resources, server)
		} else if uris[uri] {
			servers = append(servers, server)
		}
	}
	slices.Sort(servers)
	return servers
}
