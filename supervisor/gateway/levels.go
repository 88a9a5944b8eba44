package gateway

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

const (
	// levelTimeout bounds the request for a level, which an agent that sets one waits for.
	levelTimeout = 5 * time.Second
	// unsetLevel is the level of an agent that has set none, and what a server is asked for when no agent wants anything else any more:
	// the protocol has no request to take a level back.
	unsetLevel = "info"
	// raisedLevelRest is how long a server goes on sending what the last request has wanted: an agent that wants messages wants them of its next
	// request, too, which then asks for nothing.
	raisedLevelRest = 5 * time.Second
)

// askedLevels are the levels of log messages that servers of the legacy era were asked for. A connection has one level for all agents: the
// finest that the server's configuration, a session which shows the server, or a request at it wants.
type askedLevels struct {
	mu       sync.Mutex
	byServer map[string]*askedLevel
	// requests counts the requests of the modern era that are under way, by the level that they want.
	requests map[levelAsker]*[noLevel]int
	// resting has what a server keeps for some time after the last request that wanted it.
	resting map[levelAsker]levelRest
}

// A levelRest is a rank that a server keeps, and until when.
type levelRest struct {
	rank  int
	until time.Time
}

// A levelAsker is a principal that has requests at a server.
type levelAsker struct{ server, principal string }

// addRequest counts a request that wants a level. It reports whether that is more than its asker has.
func (a *askedLevels) addRequest(asker levelAsker, rank int) (more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts := a.requests[asker]
	if counts == nil {
		if a.requests == nil {
			a.requests, a.resting = map[levelAsker]*[noLevel]int{}, map[levelAsker]levelRest{}
		}
		counts = new([noLevel]int)
		a.requests[asker] = counts
	}
	rested, rests := a.resting[asker]
	more = finestOf(counts[:]) > rank && (!rests || rested.rank > rank)
	counts[rank]++
	return more
}

// removeRequest takes a request out. It reports whether a rest begins with it, which endRests ends.
func (a *askedLevels) removeRequest(asker levelAsker, rank int) (begins bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts := a.requests[asker]
	if counts[rank]--; finestOf(counts[:]) <= rank {
		return false
	}
	if finestOf(counts[:]) == noLevel {
		delete(a.requests, asker)
	}
	rested, rests := a.resting[asker]
	if !rests {
		rested.until = time.Now().Add(raisedLevelRest)
	}
	if !rests || rank < rested.rank {
		rested.rank = rank
		a.resting[asker] = rested
	}
	return !rests
}

// endRests ends all rests whose time has passed. Those that began together end together: the server is then asked once for the level that is left, and
// not for what one of them still wants.
func (a *askedLevels) endRests() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(a.resting, func(_ levelAsker, rest levelRest) bool { return !now.Before(rest.until) })
}

// finestRequest returns the rank of the finest level that a request at a server wants, or has wanted just now; of an instance, a request of
// its principal.
func (a *askedLevels) finestRequest(server, principal string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	finest := noLevel
	for asker, counts := range a.requests {
		if asker.server == server && (principal == "" || asker.principal == principal) {
			finest = min(finest, finestOf(counts[:]))
		}
	}
	for asker, rest := range a.resting {
		if asker.server == server && (principal == "" || asker.principal == principal) {
			finest = min(finest, rest.rank)
		}
	}
	return finest
}

// finestOf returns the first rank of which there is one, noLevel if there is none.
func finestOf(counts []int) int {
	for rank, n := range counts {
		if n > 0 {
			return rank
		}
	}
	return noLevel
}

// raiseLevel has the server of a request of the modern era asked for the level that the request wants, if that server knows a level of its
// connection only. It returns when that was given to the connection, and does not wait for the answer. lower must be called when the request
// has ended.
func (g *Gateway) raiseLevel(r *serve.Request, server string) (lower func()) {
	rank := levelRank(r.LogLevel)
	if rank < 0 || g.all.Of(server).EraOf(server) == messages.EraModern {
		return func() {}
	}
	asker := levelAsker{server, r.Session.Principal.Name}
	if g.levels.addRequest(asker, rank) {
		posted := make(chan struct{})
		if g.askBehind(func(ctx context.Context) { g.askServer(ctx, asker, func() { close(posted) }) }) {
			<-posted
		}
	}
	return func() {
		if g.levels.removeRequest(asker, rank) && g.lifetime.Err() == nil {
			g.work.Go(func() {
				if !waitFor(g.lifetime, raisedLevelRest) {
					return
				}
				g.levels.endRests()
				ctx, cancel := context.WithTimeout(g.lifetime, levelTimeout)
				defer cancel()
				g.askServer(ctx, asker, func() {})
			})
		}
	}
}

// An askedLevel is the level that one server, or instance, was last asked for. Whoever has put a value into turn owns the other fields.
type askedLevel struct {
	turn  chan struct{} // of capacity 1
	epoch uint64        // of the connection that was asked
	level string        // empty: nothing but what the configuration wants
}

// askedOf returns what a server was asked for; nil if it was not, and is not to be.
func (a *askedLevels) askedOf(server string, wanted bool) *askedLevel {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.byServer[server]
	if l == nil && wanted {
		if a.byServer == nil {
			a.byServer = map[string]*askedLevel{}
		}
		l = &askedLevel{turn: make(chan struct{}, 1)}
		a.byServer[server] = l
	}
	return l
}

func (a *askedLevels) forgetServer(server string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byServer, server)
}

// setLevel sets the level of a session, and has the servers of its view asked if they are to send more or less.
func (g *Gateway) setLevel(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	level, _ := rawjson.Text(rawjson.Member(r.Params, "level"))
	rank := levelRank(level)
	if rank < 0 {
		return nil, serve.InvalidParams("the level must be one of " + strings.Join(messages.LogLevels, ", "))
	}
	if v.setLevel(stateOf(r.Session), rank) {
		g.askForLevels(ctx, v)
	}
	return []byte("{}"), nil
}

// setLevel notes the level that a session wants. It reports whether that changes the finest one of the view.
func (v *view) setLevel(st *session, rank int) (changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, live := v.sessions[st]; !live {
		return false
	}
	before := v.finestRank()
	if st.leveled.Load() {
		v.wanted[st.level.Load()]--
	}
	v.wanted[rank]++
	st.level.Store(int32(rank))
	st.leveled.Store(true)
	return v.finestRank() != before
}

// finestRank returns the rank of the finest level that a session of the view has set, that of none if there is none. The caller holds mu.
func (v *view) finestRank() int { return finestOf(v.wanted[:]) }

// noLevel is the rank behind the most severe level.
const noLevel = 8

// finestLevel returns the finest level that the sessions which show a server want, requests at it, or its configuration; empty if that is
// the configuration's alone.
func (g *Gateway) finestLevel(server, configured string) string {
	owner := g.ownerOf(server)
	finest := g.levels.finestRequest(owner.server, owner.principal)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.views {
		if v.server != "" && v.server != owner.server || owner.principal != "" && owner.principal != v.principal || !v.scope.Load().showsServer(owner.server) {
			continue
		}
		v.mu.Lock()
		finest = min(finest, v.finestRank())
		v.mu.Unlock()
	}
	if rank := levelRank(configured); finest == noLevel || rank >= 0 && rank <= finest {
		return ""
	}
	return messages.LogLevels[finest]
}

// askForLevels has the connected servers of a view asked, and the instances of its principal, in parallel.
func (g *Gateway) askForLevels(ctx context.Context, v *view) {
	ctx, cancel := context.WithTimeout(ctx, levelTimeout)
	defer cancel()
	g.askServers(ctx, v.servers(), v.principal)
}

// askServers has servers asked, and the instances of a principal, in parallel.
func (g *Gateway) askServers(ctx context.Context, servers []string, principal string) {
	var all sync.WaitGroup
	for _, server := range servers {
		all.Go(func() { g.askServer(ctx, levelAsker{server, principal}, func() {}) })
	}
	all.Wait()
}

// askServer has a server asked, and the instances of the principal, in parallel. It calls posted once, when all connections have what they are
// asked for, and returns when all have answered.
func (g *Gateway) askServer(ctx context.Context, asker levelAsker, posted func()) {
	servers := []string{asker.server}
	for _, instance := range g.all.Of(asker.server).Instances(asker.server) {
		if g.ownerOf(instance).principal == asker.principal {
			servers = append(servers, instance)
		}
	}
	var given, answered sync.WaitGroup
	given.Add(len(servers))
	for _, server := range servers {
		answered.Go(func() { g.askForLevel(ctx, server, sync.OnceFunc(given.Done)) })
	}
	given.Wait()
	posted()
	answered.Wait()
}

// askForLevel asks a connected server, or instance, for the level that is wanted now, unless its connection was asked for it. One that
// refuses chooses its level itself. It calls posted as soon as the connection has the request, and also if there is none, or the answer to another
// one comes first: what waits for that is not held up by a server that is busy.
func (g *Gateway) askForLevel(ctx context.Context, server string, posted func()) {
	defer posted()
	m := g.all.Of(server)
	if c := m.Capabilities(server); c == nil || !c.Logging {
		return
	}
	l := g.levels.askedOf(server, g.finestLevel(server, "") != "")
	if l == nil {
		return
	}
	select {
	case l.turn <- struct{}{}:
	default:
		posted()
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	defer func() { <-l.turn }()
	// What is wanted is read after the turn has come, so the last one to ask is not behind the times.
	st, err := m.ServerStatus(server)
	if err != nil || st.Status != messages.Connected {
		return // its connection will be asked when there is one
	}
	configured := ""
	if st.Config != nil {
		configured = st.Config.LogLevel
	}
	if l.epoch != st.Epoch {
		l.epoch, l.level = st.Epoch, ""
	}
	if level := g.finestLevel(server, configured); level != l.level {
		l.level = level
		// An agent that goes now does not take the request back: others want the level, and ask for none that is noted.
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), levelTimeout)
		defer cancel()
		defer context.AfterFunc(g.lifetime, cancel)()
		m.PostLogLevel(asking, server, cmp.Or(level, configured, unsetLevel), posted)
	}
}

// askBehind asks in the background. It reports false if the gateway has ended.
func (g *Gateway) askBehind(ask func(ctx context.Context)) bool {
	if g.lifetime.Err() != nil {
		return false
	}
	g.work.Go(func() {
		ctx, cancel := context.WithTimeout(g.lifetime, levelTimeout)
		defer cancel()
		ask(ctx)
	})
	return true
}

// levelRank returns the place of a level, from the least severe; -1 for what is none.
func levelRank(level string) int {
	for i, l := range messages.LogLevels {
		if l == level {
			return i
		}
	}
	return -1
}
