package daemon

import (
	"context"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// agentRoots are the directories in which the agents of a project work that have declared roots. Many servers ask for the roots when their
// connection begins and never again, when no request of an agent is under way: they get these, which the agents that share them have.
type agentRoots struct {
	mu sync.Mutex
	// agents counts those of each directory.
	agents map[string]int
	// changed tells the servers that the directories have changed; nil before there are servers.
	changed func()
}

// share makes the servers of a manager get the directories, and be told when these change. The names of others do not count: those are
// servers of the user's, which agents of other projects share.
func (a *agentRoots) share(m *supervisor.Manager, q *gateway.Questions) {
	q.ShareRoots(func(server string) []messages.Root {
		if _, err := m.ServerStatus(server); err != nil {
			return nil
		}
		return a.list()
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed = m.RootsChanged
}

// list returns the directories, sorted.
func (a *agentRoots) list() []messages.Root {
	a.mu.Lock()
	defer a.mu.Unlock()
	roots := make([]messages.Root, 0, len(a.agents))
	for _, dir := range slices.Sorted(maps.Keys(a.agents)) {
		roots = append(roots, messages.Root{URI: uriOf(dir), Name: filepath.Base(dir)})
	}
	return roots
}

// uriOf returns the file: URI of an absolute path.
func uriOf(dir string) string {
	path := filepath.ToSlash(dir)
	if !strings.HasPrefix(path, "/") { // C:/Users
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// add counts an agent (1), or one that goes (-1), and tells the servers if another directory comes or the last agent of one goes.
func (a *agentRoots) add(dir string, n int) {
	a.mu.Lock()
	if a.agents == nil {
		a.agents = map[string]int{}
	}
	before := len(a.agents)
	if a.agents[dir] += n; a.agents[dir] == 0 {
		delete(a.agents, dir)
	}
	changed := a.changed
	if len(a.agents) == before {
		changed = nil
	}
	a.mu.Unlock()
	if changed != nil {
		changed()
	}
}

// rootsWatch is the service of one agent. It notices that the agent has declared roots: in the legacy era at the beginning, in the modern one
// with any request.
type rootsWatch struct {
	serve.Service
	roots *agentRoots
	dir   string
	seen  atomic.Bool
}

func (w *rootsWatch) Describe(s *serve.Session) (serve.Description, *serve.Error) {
	w.look(s.Capabilities)
	return w.Service.Describe(s)
}

func (w *rootsWatch) Handle(ctx context.Context, r *serve.Request) ([]byte, *serve.Error) {
	if r.Modern() {
		w.look(r.Capabilities)
	}
	return w.Service.Handle(ctx, r)
}

// look looks for roots in what an agent has declared.
func (w *rootsWatch) look(capabilities []byte) {
	if !w.seen.Load() && rawjson.IsObject(rawjson.Member(capabilities, "roots")) && w.seen.CompareAndSwap(false, true) {
		w.roots.add(w.dir, 1)
	}
}

// end is called when the agent has gone and no request of it runs.
func (w *rootsWatch) end() {
	if w.seen.Load() {
		w.roots.add(w.dir, -1)
	}
}
