package gateway

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// watches counts who watches which resource: the first one subscribes at the server, the last one unsubscribes. mu guards the map
// and what stands in it, and is not held while a server is asked.
type watches struct {
	g       *Gateway
	mu      sync.Mutex
	watched map[watchKey]*watchedOne
	// taken counts what is watched at each server or instance: those with a watchKey that has no uri.
	taken map[watchKey]*takenPlaces
	begun uint64 // how many watches have begun
	// sought are the wishes of agents for whose resources the gateway still looks for the server.
	sought map[*watchWish]struct{}
}

// watchWish is the wish of an agent (who) to watch a resource, in a place of holder; tell is called with each update.
type watchWish struct {
	uri         string
	who, holder any
	tell        func(uri string)
	// takenBack says that the agent has ended the watch before it began; watches.mu guards it.
	takenBack bool
}

// takenPlaces counts the resources that are watched at one server, and those that each holder watches there, alone or beside others.
type takenPlaces struct {
	all      int
	byHolder map[any]int
}

// holderOf returns the holder of the places that a request takes: the principal, which opens as many sessions as it likes; on lines the agent,
// because all agents of a person are one principal there.
func holderOf(r *serve.Request) any {
	if a := r.Session.Agent(); a != nil && r.Header == nil {
		return a
	}
	return r.Session.Principal.Name
}

// watchKey names a resource: of a server, or of the instance that it has for a principal.
type watchKey struct{ server, uri, principal string }

// watchedOne is one resource and those who watch it: *session and *listening. It stays in the map until the server was asked to end
// what nobody watches any more, so that a new watch waits for that and is not ended by it.
type watchedOne struct {
	tell map[any]*watcher
	// holders counts those of tell by the holders of their places.
	holders map[any]int
	// asking counts those who wait for the turn, or have it.
	asking int
	// turn holds a token while nobody asks the server. Who waits for it can go away, as its agent does.
	turn chan struct{}
}

// watcher is an agent that watches a resource. It goes when the server has refused, unless the server has agreed to another request of the
// same agent, or may do so.
type watcher struct {
	tell   func(uri string)
	holder any
	// number says in which order watches began, in which they are told and ended: that of a map would be another one each time.
	number uint64
	agreed bool
	asking int // requests under way
}

const (
	// maxWatched bounds what one agent watches.
	maxWatched = 256
	// turnWait is how long an agent waits for its turn at a server that is silent about a resource to the agents before it: each turn may take the server's
	// call timeout, and the last agent would wait for the sum. It is no multiple of a second, see settle.
	turnWait = 59900 * time.Millisecond
)

// seek notes a wish for whose resource the gateway looks for the server, so that its agent can take it back meanwhile. done forgets it.
func (w *watches) seek(wish *watchWish) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sought == nil {
		w.sought = map[*watchWish]struct{}{}
	}
	w.sought[wish] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.sought, wish)
	}
}

// addWatch lets an agent watch a resource, unless it has taken the wish back. The error is the server's, or that there is no place: the agent does not
// watch then, unless it did before.
func (w *watches) addWatch(ctx context.Context, to watchKey, wish *watchWish) error {
	who, holder := wish.who, wish.holder
	w.mu.Lock()
	if wish.takenBack {
		w.mu.Unlock()
		return nil
	}
	delete(w.sought, wish) // what it ends from now on is a watch
	one := w.placeFor(to, holder)
	if one == nil {
		w.mu.Unlock()
		return &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted, Server: to.server,
			Text: "as many of its resources are watched in this agent's name as are left for all others", Fix: "unsubscribe from others first"}
	}
	agent := one.tell[who]
	if agent == nil {
		w.begun++
		agent = &watcher{tell: wish.tell, holder: holder, number: w.begun}
		one.tell[who] = agent
		if one.holders[holder]++; one.holders[holder] == 1 {
			w.taken[to.ofServer()].byHolder[holder]++
		}
	}
	agent.asking++
	one.asking++
	w.mu.Unlock()
	m, ctx := w.g.all.Owner(supervisor.WithCaller(ctx, to.principal), to.server)
	waiting, stop := context.WithTimeoutCause(ctx, turnWait, &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassTimeout, Server: to.server,
		Text: "it has not answered those who asked for the same resource before", Fix: "call again later"})
	defer stop()
	err := w.askInTurn(waiting, one, func() error { return m.SubscribeResource(ctx, to.server, to.uri) })
	w.leaveTurn(to, one)
	w.mu.Lock()
	agent.asking--
	agent.agreed = agent.agreed || err == nil
	// It may have ended its watch meanwhile, and begun another one.
	isRefused := !agent.agreed && agent.asking == 0 && one.tell[who] == agent
	w.mu.Unlock()
	if isRefused {
		w.removeWatch(to, who)
	}
	return err
}

// ofServer returns the key of the server, or of the instance.
func (k watchKey) ofServer() watchKey { return watchKey{server: k.server, principal: k.principal} }

// placeFor returns what is watched by this key, and makes a place for it if there is none yet; nil if there is none for the holder. A server
// has places for actors.MaxWatched resources. A holder gets one more while it has fewer than are free: so one alone has half of them at the
// most, and all that ask for as many as they can get have nearly the same. A resource that another agent watches already takes no place. The caller holds mu.
func (w *watches) placeFor(to watchKey, holder any) *watchedOne {
	if one := w.watched[to]; one != nil {
		return one
	}
	if w.watched == nil {
		w.watched, w.taken = map[watchKey]*watchedOne{}, map[watchKey]*takenPlaces{}
	}
	server := to.ofServer()
	p := w.taken[server]
	if p == nil {
		p = &takenPlaces{byHolder: map[any]int{}}
		w.taken[server] = p
	}
	if p.byHolder[holder] >= actors.MaxWatched-p.all {
		return nil
	}
	p.all++
	one := &watchedOne{tell: map[any]*watcher{}, holders: map[any]int{}, turn: make(chan struct{}, 1)}
	one.turn <- struct{}{}
	w.watched[to] = one
	return one
}

// askInTurn asks the server about a resource, unless ctx ends before it is the caller's turn.
func (w *watches) askInTurn(ctx context.Context, one *watchedOne, ask func() error) error {
	select {
	case <-one.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { one.turn <- struct{}{} }()
	return ask()
}

// leaveTurn forgets a resource that nobody watches, and about which nobody asks.
func (w *watches) leaveTurn(to watchKey, one *watchedOne) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.asking--; one.asking == 0 && len(one.tell) == 0 && w.watched[to] == one {
		delete(w.watched, to)
		server := to.ofServer()
		if w.taken[server].all--; w.taken[server].all == 0 {
			delete(w.taken, server)
		}
	}
}

// removeWatch ends it for who.
func (w *watches) removeWatch(to watchKey, who any) {
	w.mu.Lock()
	one := w.watched[to]
	if one == nil || one.tell[who] == nil {
		w.mu.Unlock()
		return
	}
	holder := one.tell[who].holder
	delete(one.tell, who)
	if one.holders[holder]--; one.holders[holder] == 0 {
		delete(one.holders, holder)
		places := w.taken[to.ofServer()].byHolder
		if places[holder]--; places[holder] == 0 {
			delete(places, holder)
		}
	}
	last := len(one.tell) == 0
	if last {
		one.asking++
	}
	w.mu.Unlock()
	if !last {
		return
	}
	w.g.work.Go(func() { // the agent does not wait for a server that it has left
		ctx, cancel := context.WithTimeout(supervisor.WithCaller(context.Background(), to.principal), workTimeout)
		defer cancel()
		_ = w.askInTurn(ctx, one, func() error { // a server that is gone has forgotten it
			w.mu.Lock()
			watched := len(one.tell) > 0
			w.mu.Unlock()
			if watched {
				return nil
			}
			return w.g.all.Of(to.server).UnsubscribeResource(ctx, to.server, to.uri)
		})
		w.leaveTurn(to, one)
	})
}

// countWatches returns how many resources who watches.
func (w *watches) countWatches(who any) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.watched {
		if one.tell[who] != nil {
			n++
		}
	}
	return n
}

// dropAll ends everything that who watches.
func (w *watches) dropAll(who any) { w.dropWatches(who, func(watchKey) bool { return true }) }

// removeWatchesOf ends the watch of one resource for who, whichever server it is at, also one whose server is sought still; false if there is none.
func (w *watches) removeWatchesOf(uri string, who any) bool {
	w.mu.Lock()
	takenBack := false
	for wish := range w.sought {
		if wish.uri == uri && wish.who == who {
			wish.takenBack, takenBack = true, true
		}
	}
	w.mu.Unlock()
	return w.dropWatches(who, func(to watchKey) bool { return to.uri == uri }) || takenBack
}

// dropWatches ends those watches of who that which names, and reports whether there are any.
func (w *watches) dropWatches(who any, which func(watchKey) bool) bool {
	w.mu.Lock()
	numbers := map[watchKey]uint64{}
	for to, one := range w.watched {
		if agent := one.tell[who]; agent != nil && which(to) {
			numbers[to] = agent.number
		}
	}
	w.mu.Unlock()
	all := slices.SortedFunc(maps.Keys(numbers), func(a, b watchKey) int { return cmp.Compare(numbers[a], numbers[b]) })
	for _, to := range all {
		w.removeWatch(to, who)
	}
	return len(all) > 0
}

// tellUpdated tells those who watch a resource, or what contains it, of an update.
//
// 2025-11-25: the URI of an update "might be a sub-resource of the one that the client actually subscribed to".
func (w *watches) tellUpdated(server, uri string) {
	principal := ""
	if owner, caller, ok := w.g.all.Of(server).InstanceOf(server); ok {
		server, principal = owner, caller
	}
	for _, n := range w.noticesFor(func(to watchKey) bool {
		return to.server == server && to.principal == principal && (to.uri == uri || strings.HasPrefix(uri, strings.TrimSuffix(to.uri, "/")+"/"))
	}) {
		n.agent.tell(uri)
	}
}

// tellMissed tells those who watch resources of these servers that each may have changed, because notices of updates were lost: an agent that
// is told of too much reads once more, and one that is told of too little never does.
func (w *watches) tellMissed(isTheirs func(server string) bool) {
	for _, n := range w.noticesFor(func(to watchKey) bool { return isTheirs(to.server) }) {
		n.agent.tell(n.uri)
	}
}

// updateNotice is the update of a resource that the gateway sends to one agent which watches it.
type updateNotice struct {
	uri   string
	agent *watcher
}

// noticesFor returns those who watch resources that which names, in the order in which their watches began.
func (w *watches) noticesFor(which func(watchKey) bool) (all []updateNotice) {
	w.mu.Lock()
	for to, one := range w.watched {
		if !which(to) {
			continue
		}
		for _, agent := range one.tell {
			all = append(all, updateNotice{to.uri, agent})
		}
	}
	w.mu.Unlock()
	slices.SortFunc(all, func(a, b updateNotice) int { return cmp.Compare(a.agent.number, b.agent.number) })
	return all
}

// subscribeAgent handles resources/subscribe.
func (g *Gateway) subscribeAgent(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	st, agent := stateOf(r.Session), r.Session
	wish := &watchWish{who: st, holder: holderOf(r)}
	wish.uri, _ = rawjson.Text(rawjson.Member(r.Params, "uri"))
	defer g.watches.seek(wish)()
	to, e := v.watchable(ctx, r)
	if e != nil {
		return nil, e
	}
	if g.watches.countWatches(st) >= maxWatched {
		return nil, &serve.Error{Code: serve.CodeBusy, Message: "too many resources are being watched"}
	}
	wish.tell = func(uri string) {
		if !v.scope.Load().showsServer(to.server) {
			return
		}
		agent.Notify("updated "+uri, "notifications/resources/updated", append(rawjson.AppendText([]byte(`{"uri":`), uri), '}'))
	}
	err := g.watches.addWatch(ctx, to, wish)
	if st.gone.Load() { // the request came through while its session ended: nobody would end the watch any more
		g.watches.removeWatch(to, st)
	}
	if err != nil {
		return nil, failedRead(err, false)
	}
	return []byte("{}"), nil
}

// unsubscribeAgent handles resources/unsubscribe.
func (g *Gateway) unsubscribeAgent(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	uri, _ := rawjson.Text(rawjson.Member(r.Params, "uri"))
	if g.watches.removeWatchesOf(uri, stateOf(r.Session)) {
		return []byte("{}"), nil
	}
	if _, e := v.watchable(ctx, r); e != nil {
		return nil, e
	}
	return []byte("{}"), nil
}

// watchable returns the resource that a request names, with its owner.
func (v *view) watchable(ctx context.Context, r *serve.Request) (watchKey, *serve.Error) {
	uri, ok := rawjson.Text(rawjson.Member(r.Params, "uri"))
	if !ok || uri == "" {
		return watchKey{}, serve.InvalidParams(r.Method + " names no uri")
	}
	to, why := v.ownerOf(ctx, offer{resourceList, uri})
	if to.server == "" {
		return watchKey{}, unknownResource(uri, why, false)
	}
	return v.keyOf(to.server, uri), nil
}

// keyOf returns the key of a resource: that of the principal's own instance, if the server has instances.
func (v *view) keyOf(server, uri string) watchKey {
	key := watchKey{server: server, uri: uri}
	if s, err := v.g.all.Of(server).ServerStatus(server); err == nil && s.Config != nil && s.Config.Share == messages.SharePrincipal {
		key.principal = v.principal
	}
	return key
}

// listening is one subscriptions/listen: what its agent wants to be told.
type listening struct {
	request *serve.Request
	// number says in which order subscriptions began: they are told in it.
	number uint64
	wants  [noticeKinds]bool
	// meta is the _meta that every notification carries, so that the agent knows to which listen it belongs.
	meta []byte
	// tasks are the ids of the tasks whose state it wants.
	tasks map[string]bool
}

// notifyListener sends a notification with further members of its params, without braces.
func (l *listening) notifyListener(method string, members []byte) {
	b := append([]byte(`{`), l.meta...)
	if len(members) > 0 {
		b = append(append(b, ','), members...)
	}
	l.request.Notify(method, append(b, '}'))
}

// serveListen handles subscriptions/listen: it stays until the agent goes, or the endpoint ends.
//
// 2026-07-28: "The server MUST send notifications/subscriptions/acknowledged as the first message on the stream", with the subset
// of the filter that it honours.
func (g *Gateway) serveListen(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	filter := rawjson.Member(r.Params, "notifications")
	if filter != nil && !rawjson.IsObject(filter) {
		return nil, serve.InvalidParams("notifications must be an object")
	}
	l := &listening{request: r, number: g.arrivals.Add(1), meta: append(append([]byte(`"_meta":{"`+reserved+`subscriptionId":`), r.ID...), '}')}
	honoured := []byte{}
	want := func(name string) bool {
		if string(rawjson.Member(filter, name)) != "true" {
			return false
		}
		honoured = append(appendComma(honoured), `"`+name+`":true`...)
		return true
	}
	for n := range noticeKinds {
		l.wants[n] = want(notices[n].filter)
	}
	if ids := rawjson.Member(filter, "taskIds"); rawjson.IsArray(ids) {
		if !declaresTasks(r) {
			return nil, errNoTasks()
		}
		honoured = append(append(appendComma(honoured), `"taskIds":`...), v.listenToTasks(l, ids)...)
	}
	// The agent may ask for resources that nobody can watch; those that can are named in the acknowledgement.
	defer g.watches.dropAll(l)
	uris := []byte{}
	if list := rawjson.Member(filter, "resourceSubscriptions"); rawjson.IsArray(list) {
		n := 0
		for a := rawjson.ArrayAt(list, 0, 0); a.Next() && n < maxWatched; n++ {
			uri, ok := rawjson.Text(a.Skip())
			if !ok {
				continue
			}
			if to, _ := v.ownerOf(ctx, offer{resourceList, uri}); to.server != "" && g.watches.addWatch(ctx, v.keyOf(to.server, uri), &watchWish{who: l, holder: holderOf(r), tell: func(uri string) {
				if !v.scope.Load().showsServer(to.server) {
					return
				}
				l.notifyListener("notifications/resources/updated", rawjson.AppendText([]byte(`"uri":`), uri))
			}}) == nil {
				uris = rawjson.AppendText(appendComma(uris), uri)
			}
		}
		honoured = append(append(append(appendComma(honoured), `"resourceSubscriptions":[`...), uris...), ']')
	}
	if ctx.Err() != nil { // the agent has gone while its resources were subscribed to
		return nil, errListenEnded()
	}
	l.notifyListener("notifications/subscriptions/acknowledged", append(append([]byte(`"notifications":{`), honoured...), '}'))
	v.addListening(l)
	defer v.removeListening(l)
	v.tellOutdated(l)
	g.tellEndedTasks(l)
	select {
	case <-ctx.Done():
		return nil, errListenEnded()
	case <-r.Closing():
		return append(append([]byte(`{"resultType":"complete",`), l.meta...), '}'), nil
	}
}

func errListenEnded() *serve.Error {
	return &serve.Error{Code: serve.CodeInternal, Message: "the subscription was ended"}
}

func appendComma(b []byte) []byte {
	if len(b) > 0 {
		return append(b, ',')
	}
	return b
}

func (v *view) addListening(l *listening) {
	v.mu.Lock()
	if v.listens == nil {
		v.listens = map[*listening]struct{}{}
	}
	v.listens[l] = struct{}{}
	v.mu.Unlock()
	v.noteAgent()
}

// tellOutdated notifies a subscription of the lists that agents were given last as they are no more: what changed between a list and the
// subscription that follows it would be lost otherwise. What nobody has kept watch over since is compared by the next comparison.
func (v *view) tellOutdated(l *listening) {
	var outdated [noticeKinds]bool
	unwatched := false
	v.mu.Lock()
	for kind, served := range v.served {
		switch n := lists[kind].notice; {
		case !l.wants[n] || served == nil:
		case v.known[kind] == nil:
			v.known[kind], unwatched = served, true
		default:
			outdated[n] = outdated[n] || *v.known[kind] != *served
		}
	}
	v.mu.Unlock()
	for n, changed := range outdated {
		if changed {
			l.notifyListener(notices[n].method, nil)
		}
	}
	if unwatched {
		v.g.noteChange(func(*saidChanges) {})
	}
}

func (v *view) removeListening(l *listening) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.listens, l)
}
