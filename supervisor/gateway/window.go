package gateway

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A window bounds what one agent has at one server: its requests there, by the size that their results are expected to have, and the
// results that it has not read. A request beyond it waits in the gateway. Nothing else keeps an agent that asks for much at once, and reads
// nothing, from filling the memory with results; and all agents share the connection to a server, so that the answers to others would come
// behind all of that.
//
// How large a result is becomes known by the results of before of the same tool. No agent waits long for what is only expected: if no answer
// comes for a while, as of slow tools that are called many times at once, its window doubles, unless what it has not read fills it.

const (
	// windowBytes is the size of a window. A request that is alone has room in it, however large its result is.
	windowBytes = 16 << 20
	// principalBytes is the size of the one window that all agents of a principal have over HTTP in the modern era. It is larger, because each of
	// them waits for the others: one that reads nothing holds them up until its connections are given up, after half a minute.
	principalBytes = 4 * windowBytes
	// leastExpected is the size that a result counts at least before it is there: of small ones as many are under way as a session may ask.
	leastExpected = 16 << 10
	// unknownExpected is the size of a result of which nothing is known, so that 32 are under way.
	unknownExpected = 512 << 10
	// quietTime is the time without an answer after which a window doubles while requests wait.
	quietTime = time.Second
	// maxSizes bounds the tools whose sizes are remembered; beyond it all are forgotten.
	maxSizes = 4096
)

// agentWindows are those of one agent, by server; over HTTP in the modern era, where nothing tells the agents of a principal apart, those of all
// of them. Agents share no lock: a request that has room waits for none but those of its own agent. mu guards everything but sizes, inUse and
// most; nothing else is called under it.
type agentWindows struct {
	sizes *expectedSizes
	// inUse counts the windows of all agents in which requests are.
	inUse *atomic.Int64
	// most is the size of a window.
	most int64

	mu       sync.Mutex
	byServer map[string]*window
}

// window has the requests of one agent at one server, from before they are sent until their answers are read or given up.
type window struct {
	agent    *agentWindows
	requests int
	// expected are the bytes of the results that are not there yet, unread those of the others.
	expected, unread int64
	// waiting counts those that wait. The one that is first has put a value into first, and alone looks for room.
	waiting int
	first   chan struct{}
	// changed is closed when there may be room; nil while no request looks for it.
	changed chan struct{}
	// quietSince counts while requests wait: since when no answer has come, and the window has not doubled. doublings says how often it has,
	// since the last answer.
	quietSince time.Time
	doublings  int
}

// place is a request's part of a window: the size of its result, and whether that is there.
type place struct {
	in       *window
	size     int64
	answered bool
}

// expectedSizes are the sizes that results are expected to have, by the tool, or by the server alone for what is no tool. They are read without
// a lock; mu is for those who add one.
type expectedSizes struct {
	mu  sync.Mutex
	all atomic.Pointer[map[named]*atomic.Int64] // a map is not changed after it is stored
}

// sizeOf returns the size that results are remembered to have; nil if none is.
func (t *expectedSizes) sizeOf(what named) *atomic.Int64 {
	if all := t.all.Load(); all != nil {
		return (*all)[what]
	}
	return nil
}

// expectedSize returns the size that a result is expected to have.
func (t *expectedSizes) expectedSize(what named) int64 {
	if size := t.sizeOf(what); size != nil {
		return max(size.Load(), leastExpected)
	}
	return unknownExpected
}

// learnSize takes note of a result's size. One that is larger than before counts at once, smaller ones by and by.
func (t *expectedSizes) learnSize(what named, size int64) {
	known := t.sizeOf(what)
	if known == nil {
		known = t.addSize(what, size)
	}
	for {
		before, after := known.Load(), size
		if size < before {
			after = before - (before-size)/8
		}
		if after == before || known.CompareAndSwap(before, after) {
			return
		}
	}
}

// addSize begins to remember a size.
func (t *expectedSizes) addSize(what named, size int64) *atomic.Int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.sizeOf(what); known != nil {
		return known
	}
	all := map[named]*atomic.Int64{}
	if before := t.all.Load(); before != nil && len(*before) < maxSizes {
		all = maps.Clone(*before)
	}
	all[what] = new(atomic.Int64)
	all[what].Store(size)
	t.all.Store(&all)
	return all[what]
}

// enterWindow gives a request a place at a server, as soon as there is room. The error says that ctx has ended before; nothing was sent then.
func (a *agentWindows) enterWindow(ctx context.Context, server string, what named) (*place, error) {
	a.mu.Lock()
	w := a.byServer[server]
	if w == nil {
		if a.byServer == nil {
			a.byServer = map[string]*window{}
		}
		w = &window{agent: a}
		a.byServer[server] = w
	}
	if size := a.sizes.expectedSize(what); w.waiting == 0 && w.hasRoom(size) {
		defer a.mu.Unlock()
		return w.takePlace(size), nil
	}
	if w.waiting++; w.waiting == 1 {
		w.quietSince = time.Now()
	}
	if w.first == nil {
		w.first = make(chan struct{}, 1) // capacity 1: one is first
	}
	a.mu.Unlock()
	defer w.endWait()
	return w.awaitRoom(ctx, what)
}

// awaitRoom waits until a request is the first one that waits, and then until there is room.
func (w *window) awaitRoom(ctx context.Context, what named) (*place, error) {
	select {
	case w.first <- struct{}{}:
	case <-ctx.Done():
		return nil, waitEndedError(ctx, what)
	}
	defer func() { <-w.first }()
	for {
		w.agent.mu.Lock()
		w.doubleIfQuiet(time.Now())
		if size := w.agent.sizes.expectedSize(what); w.hasRoom(size) {
			defer w.agent.mu.Unlock()
			return w.takePlace(size), nil
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed, next := w.changed, time.NewTimer(time.Until(w.quietSince.Add(quietTime)))
		if w.isFull() {
			next.Stop() // it changes when the agent reads
		}
		w.agent.mu.Unlock()
		select {
		case <-changed:
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return nil, waitEndedError(ctx, what)
		}
		next.Stop()
	}
}

// hasRoom reports whether there is room for so many bytes more. The caller holds mu.
func (w *window) hasRoom(size int64) bool {
	return w.requests == 0 || w.expected+w.unread+size <= w.agent.most<<w.doublings
}

// isFull reports whether the agent has so much to read that it gets no more, however long it waits. The caller holds mu.
func (w *window) isFull() bool { return w.unread >= w.agent.most/2 }

// doubleIfQuiet doubles a window in which no answer has come for a while. The caller holds mu.
func (w *window) doubleIfQuiet(now time.Time) {
	if !w.isFull() && now.Sub(w.quietSince) >= quietTime && w.doublings < 16 {
		w.doublings++
		w.quietSince = now
	}
}

// takePlace makes a place. The caller holds mu.
func (w *window) takePlace(size int64) *place {
	if w.requests++; w.requests == 1 {
		w.agent.inUse.Add(1)
	}
	w.expected += size
	return &place{in: w, size: size}
}

// wakeFirst has the first one that waits look again. The caller holds mu.
func (w *window) wakeFirst() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

func (w *window) endWait() {
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	if w.waiting--; w.waiting == 0 {
		w.doublings = 0
	}
}

// noteAnswer says how large the answer is, which now waits for the agent.
func (p *place) noteAnswer(size int64) {
	w := p.in
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	w.expected -= p.size
	w.unread += size
	p.size, p.answered = size, true
	if w.doublings = 0; w.waiting > 0 {
		w.quietSince = time.Now()
	}
	w.wakeFirst()
}

// Release implements serve.Holding: the place is given back.
func (p *place) Release() {
	w := p.in
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	w.requests--
	if w.requests == 0 {
		w.agent.inUse.Add(-1)
	}
	if p.answered {
		w.unread -= p.size
	} else {
		w.expected -= p.size
	}
	w.wakeFirst()
}

// waitEndedError is the error of a request that had no room until its end.
func waitEndedError(ctx context.Context, what named) error {
	return &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassCanceled, Server: what.server, Tool: what.name,
		Text: "the request ended while it waited for its agent to read the results that it has already", Err: context.Cause(ctx)}
}

// windowsOf returns the windows of the agent of a request.
func (g *Gateway) windowsOf(r *serve.Request) *agentWindows {
	if a := r.Session.Agent(); a != nil {
		return a.State(func() any { return g.newWindows(windowBytes) }).(*agentWindows)
	}
	return g.agentsOf(r.Session.Principal.Name).windows
}

func (g *Gateway) newWindows(most int64) *agentWindows {
	return &agentWindows{sizes: &g.sizes, inUse: &g.windows, most: most}
}

// enterWindow gives a request its place, which it leaves when its answer is read.
func (g *Gateway) enterWindow(ctx context.Context, r *serve.Request, to named) (*place, error) {
	p, err := g.windowsOf(r).enterWindow(ctx, to.server, sizeKey(r, to))
	if err == nil {
		r.AfterAnswer(p)
	}
	return p, err
}

// sizeKey is by what the sizes of results are remembered: an agent makes up as many URIs and arguments as it likes, but no tools.
func sizeKey(r *serve.Request, to named) named {
	if r.Method == "tools/call" {
		return to
	}
	return named{server: to.server}
}
