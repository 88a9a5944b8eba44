package gateway

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/joined"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// viewKey names a view: the server and the configured view that a path names, the configured view that the credential is bound to, all
// of them empty for everything, and the principal, whose instances of servers may offer other tools.
type viewKey struct{ server, path, bound, principal string }

func (k viewKey) compareKey(other viewKey) int {
	return cmp.Or(cmp.Compare(k.server, other.server), cmp.Compare(k.path, other.path), cmp.Compare(k.bound, other.bound),
		cmp.Compare(k.principal, other.principal))
}

// A view has the lists that the agents of a principal see by one path. Its rendering is replaced as a whole, and shared with
// the view of nobody where they have the same tools.
type view struct {
	g *Gateway
	viewKey
	made time.Time
	// scope is replaced when configured views are.
	scope atomic.Pointer[scope]

	// rendered is the tools, offered what there is beside them, and late what came too late for that; render is held while one of them is made.
	rendered atomic.Pointer[rendering]
	offered  [listKinds]atomic.Pointer[offerList]
	late     lateParts
	render   sync.Mutex

	mu       sync.Mutex
	sessions map[*session]struct{}
	listens  map[*listening]struct{}
	// wanted counts the sessions that have set a level of log messages, by its rank.
	wanted [noLevel]int
	// gone remembers where the names led that are not shown any more, so that a call of one says what became of its server.
	gone map[string]named
	// owners remembers where the prompts and resources lead that agents know; ownersSize is how many bytes that takes. noted are the
	// lists that it has.
	owners     map[offer]named
	ownersSize int
	noted      [listKinds]*offerList
	// known are the lists as agents know them, and served as they were given last, so that a subscription which begins after a change
	// tells of it; nil is one that nobody knows.
	known, served [listKinds]*listSum
	// firstKnown says of which lists no agent knew anything until the last comparison, and knownSince when the first one was read.
	firstKnown [listKinds]bool
	knownSince [listKinds]time.Time
	// gaveOther says of which lists an agent was given another one than the one that is known, since the last comparison.
	gaveOther [listKinds]bool
	// uncompared is what servers have said since the last comparison of prompts and resources; comparing is true while a goroutine
	// compares them, and compareAgain if it must do so once more.
	uncompared              changes
	comparing, compareAgain bool
}

// rendering is the tools of a view at one generation of the catalog, ready to be sent. It is immutable.
type rendering struct {
	generation uint64
	scope      *scope
	memory     *memory
	list       []*catalog.Entry
	entries    map[string]*catalog.Entry
	// bare leads from the servers' own names to what is shown, where one server has the name only: calls from inside of a
	// server's page (MCP Apps) know no other.
	bare map[string]*catalog.Entry
	*pages
}

// find returns the tool that a name leads to, nil if it leads to none.
func (r *rendering) find(name string) *catalog.Entry {
	if e := r.entries[name]; e != nil {
		return e
	}
	return r.bare[name]
}

// currentTools returns the rendering of the newest catalog.
func (v *view) currentTools() *rendering {
	s, within := v.g.all.Catalogs(), v.scope.Load()
	if r := v.rendered.Load(); r != nil && r.generation >= s.Generation() && r.scope == within && r.memory == v.g.memory.Load() {
		return r
	}
	v.render.Lock()
	defer v.render.Unlock()
	remembered := v.g.memory.Load()
	s, within = v.g.all.Catalogs(), v.scope.Load()
	old := v.rendered.Load()
	if old != nil && old.generation >= s.Generation() && old.scope == within && old.memory == remembered {
		return old
	}
	r := v.renderTools(s, within, remembered)
	if old == r {
		return r
	}
	if old != nil {
		v.rememberGone(old, r)
	}
	if r.scope != within || r.memory != remembered { // it is that of the view of nobody
		shared := *r
		shared.scope, shared.memory = within, remembered
		r = &shared
	}
	v.rendered.Store(r)
	return r
}

// maxGone bounds the names that are remembered.
const maxGone = 10_000

func (v *view) rememberGone(old, now *rendering) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, entry := range old.entries {
		if now.entries[name] == nil {
			if v.gone == nil || len(v.gone) >= maxGone {
				v.gone = map[string]named{}
			}
			v.gone[name] = named{entry.Tool.Server, entry.Tool.Name}
		}
	}
	for name := range v.gone {
		if now.entries[name] != nil {
			delete(v.gone, name)
		}
	}
}

// listEntries returns the tools that a scope shows, in the order of the servers' ids and of their own names. The catalog keeps the tools
// of a connection that was lost for a while, so that a program can wait for them; an agent that sees them would call them.
func (v *view) listEntries(s joined.Catalogs, within *scope, remembered *memory) []*catalog.Entry {
	whole := within.missing == "" && len(within.parts) == 0
	return slices.DeleteFunc(remembered.addTo(v.offeredEntries(s), s, v.g.all, v.server), func(e *catalog.Entry) bool {
		return e.State == catalog.Lost || !whole && !within.showsTool(e.Tool.Server, e.Tool.Name)
	})
}

// offeredEntries returns the tools of the servers of the path, which the caller may change.
func (v *view) offeredEntries(s joined.Catalogs) (entries []*catalog.Entry) {
	if v.principal == "" {
		return v.g.all.Entries(s, v.server)
	}
	if entries = v.g.all.EntriesFor(v.principal); v.server != "" {
		entries = slices.DeleteFunc(entries, func(e *catalog.Entry) bool { return e.Tool.Server != v.server })
	}
	return entries
}

// renderTools renders a snapshot. It may be older than what it renders, and is then rendered again.
func (v *view) renderTools(s joined.Catalogs, within *scope, remembered *memory) *rendering {
	entries := v.listEntries(s, within, remembered)
	if v.principal != "" {
		// Most principals see what everybody sees: one rendering serves them all.
		if common := v.commonView().currentTools(); slices.Equal(common.list, entries) {
			return common
		}
	}
	all := make([]named, len(entries))
	for i, entry := range entries {
		all[i] = named{entry.Tool.Server, entry.Tool.Name}
	}
	r := &rendering{generation: s.Generation(), scope: within, memory: remembered, list: entries, bare: map[string]*catalog.Entry{},
		entries: make(map[string]*catalog.Entry, len(all))}
	definitions := make([][]byte, len(entries))
	for i, shown := range v.g.namesOf(v.prefixWithin(within), all) {
		entry := entries[i]
		r.entries[shown] = entry
		if _, several := r.bare[entry.Tool.Name]; several {
			r.bare[entry.Tool.Name] = nil
		} else {
			r.bare[entry.Tool.Name] = entry
		}
		definitions[i] = withName(entry.Tool.Raw, entry.Tool.Name, shown)
	}
	r.pages = renderPages(toolList, definitions)
	return r
}

// commonView returns the same view for agents without a principal's own instances.
func (v *view) commonView() *view {
	key := v.viewKey
	key.principal = ""
	v.g.mu.Lock()
	defer v.g.mu.Unlock()
	common := v.g.views[key]
	if common == nil {
		common = v.g.addView(key)
	}
	return common
}

// findTool returns where a name leads: to an entry, or to a server whose tools are not shown now. The scope may hide the tool.
func (v *view) findTool(name string) (to named, ok bool) {
	if e := v.currentTools().find(name); e != nil {
		return named{e.Tool.Server, e.Tool.Name}, true
	}
	v.mu.Lock()
	to, ok = v.gone[name]
	v.mu.Unlock()
	if ok {
		return to, v.g.all.Has(to.server)
	}
	if v.server != "" {
		return named{v.server, name}, true
	}
	if to.server, to.name, ok = v.g.splitName(name); ok && v.g.all.Has(to.server) {
		return to, true
	}
	return named{}, false
}

// servers returns the ids of the servers of the view.
func (v *view) servers() []string {
	if v.server != "" {
		return []string{v.server}
	}
	within := v.scope.Load()
	return slices.DeleteFunc(v.g.all.Servers(), func(name string) bool { return !within.showsServer(name) })
}

// session has the gateway's own part of a session of the legacy era.
type session struct {
	view  *view
	agent *serve.Session
	// number says in which order sessions began: they are notified in it.
	number uint64
	// gone is true once the session has ended.
	gone atomic.Bool
	// level is the rank of the least severe log messages that the agent wants.
	level atomic.Int32
	asker

	mu sync.Mutex
	// running are the requests about which a server may ask, the newest last.
	running []runningRequest
}

// stateOf returns the gateway's part of a session.
func stateOf(s *serve.Session) *session { return s.State.(*session) }

// addSession makes the state of a new session, which gets notices from now on.
func (v *view) addSession(s *serve.Session) {
	st := &session{view: v, agent: s, number: v.g.arrivals.Add(1)}
	st.level.Store(int32(levelRank(unsetLevel))) // the level is the server's choice until the agent sets one
	st.prepareAnswers(v.g, st)
	s.State = st
	v.mu.Lock()
	if v.sessions == nil {
		v.sessions = map[*session]struct{}{}
	}
	v.sessions[st] = struct{}{}
	v.mu.Unlock()
	v.noteAgent()
}

// isUsed reports whether agents are told of changes of the view.
func (v *view) isUsed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.sessions)+len(v.listens) > 0
}

// removeSession forgets a session. It reports whether that changes the finest level of log messages that the view's sessions want.
func (v *view) removeSession(st *session) (changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, live := v.sessions[st]; live && st.leveled.Load() {
		before := v.finestRank()
		v.wanted[st.level.Load()]--
		changed = v.finestRank() != before
	}
	delete(v.sessions, st)
	if len(v.sessions) == 0 {
		v.sessions = nil // a map keeps the memory of its most members
	}
	return changed
}
