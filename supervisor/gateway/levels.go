package gateway

import (
	"cmp"
	"context"
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
)

// askedLevels are the levels of log messages that servers of the legacy era were asked for. A connection has one level for all agents: the
// finest that the server's configuration or a session wants which shows the server.
type askedLevels struct {
	mu       sync.Mutex
	byServer map[string]*askedLevel
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
func (v *view) finestRank() int {
	for rank, sessions := range v.wanted {
		if sessions > 0 {
			return rank
		}
	}
	return noLevel
}

// noLevel is the rank behind the most severe level.
const noLevel = 8

// finestLevel returns the finest level that the sessions which show a server want, or its configuration; empty if that is the
// configuration's alone.
func (g *Gateway) finestLevel(server, configured string) string {
	owner, finest := g.ownerOf(server), noLevel
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
	var all sync.WaitGroup
	for _, server := range v.servers() {
		all.Go(func() { g.askForLevel(ctx, server) })
		for _, instance := range g.all.Of(server).Instances(server) {
			if g.ownerOf(instance).principal == v.principal {
				all.Go(func() { g.askForLevel(ctx, instance) })
			}
		}
	}
	all.Wait()
}

// askForLevel asks a connected server, or instance, for the level that is wanted now, unless its connection was asked for it. One that
// refuses chooses its level itself.
func (g *Gateway) askForLevel(ctx context.Context, server string) {
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
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return
	}
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
		_ = m.SetLogLevel(ctx, server, cmp.Or(level, configured, unsetLevel))
	}
}

// askBehind does the same as askForLevels or askForLevel for nobody who waits.
func (g *Gateway) askBehind(ask func(ctx context.Context)) {
	if g.lifetime.Err() != nil {
		return
	}
	g.work.Go(func() {
		ctx, cancel := context.WithTimeout(g.lifetime, levelTimeout)
		defer cancel()
		ask(ctx)
	})
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
