package gateway

import (
	"context"
	"sync"
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
	// leastExpected is the size that a result counts at least before it is there: of small ones as many are under way as a session may ask.
	leastExpected = 16 << 10
	// unknownExpected is the size of a result of which nothing is known, so that 32 are under way.
	unknownExpected = 512 << 10
	// quietTime is the time without an answer after which a window doubles while requests wait.
	quietTime = time.Second
	// maxSizes bounds the tools whose sizes are remembered; beyond it all are forgotten.
	maxSizes = 4096
)

// windows are those of all agents and servers. mu guards everything; nothing else is called under it.
type windows struct {
	mu    sync.Mutex
	byKey map[windowKey]*window
	// sizes are those that results are expected to have, by the tool, or by the server alone for what is no tool.
	sizes map[named]int64
}

type windowKey struct{ agent, server string }

// window has the requests of one agent at one server, from before they are sent until their answers are read or given up.
type window struct {
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
	all      *windows
	key      windowKey
	in       *window
	size     int64
	answered bool
}

// expectedSize returns the size that a result is expected to have. The caller holds mu.
func (t *windows) expectedSize(what named) int64 {
	size, known := t.sizes[what]
	if !known {
		return unknownExpected
	}
	return max(size, leastExpected)
}

// learnSize takes note of a result's size. One that is larger than before counts at once, smaller ones by and by.
func (t *windows) learnSize(what named, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.sizes[what]
	if known && size < before {
		size = before - (before-size)/8
	}
	if !known && len(t.sizes) >= maxSizes {
		t.sizes = nil
	}
	if t.sizes == nil {
		t.sizes = map[named]int64{}
	}
	t.sizes[what] = size
}

// enter gives a request a place, as soon as there is room. The error says that ctx has ended before; nothing was sent then.
func (t *windows) enter(ctx context.Context, key windowKey, what named) (*place, error) {
	t.mu.Lock()
	w := t.byKey[key]
	if w == nil {
		if t.byKey == nil {
			t.byKey = map[windowKey]*window{}
		}
		w = &window{}
		t.byKey[key] = w
	}
	if size := t.expectedSize(what); w.waiting == 0 && w.hasRoom(size) {
		defer t.mu.Unlock()
		return t.takePlace(key, w, size), nil
	}
	if w.waiting++; w.waiting == 1 {
		w.quietSince = time.Now()
	}
	if w.first == nil {
		w.first = make(chan struct{}, 1) // capacity 1: one is first
	}
	t.mu.Unlock()
	defer t.endWait(key, w)
	return t.awaitRoom(ctx, key, w, what)
}

// awaitRoom waits until a request is the first one that waits, and then until there is room.
func (t *windows) awaitRoom(ctx context.Context, key windowKey, w *window, what named) (*place, error) {
	select {
	case w.first <- struct{}{}:
	case <-ctx.Done():
		return nil, waitEndedError(ctx, what)
	}
	defer func() { <-w.first }()
	for {
		t.mu.Lock()
		w.doubleIfQuiet(time.Now())
		if size := t.expectedSize(what); w.hasRoom(size) {
			defer t.mu.Unlock()
			return t.takePlace(key, w, size), nil
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed, next := w.changed, time.NewTimer(time.Until(w.quietSince.Add(quietTime)))
		if w.isFull() {
			next.Stop() // it changes when the agent reads
		}
		t.mu.Unlock()
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
	return w.requests == 0 || w.expected+w.unread+size <= windowBytes<<w.doublings
}

// isFull reports whether the agent has so much to read that it gets no more, however long it waits. The caller holds mu.
func (w *window) isFull() bool { return w.unread >= windowBytes/2 }

// doubleIfQuiet doubles a window in which no answer has come for a while. The caller holds mu.
func (w *window) doubleIfQuiet(now time.Time) {
	if !w.isFull() && now.Sub(w.quietSince) >= quietTime && w.doublings < 16 {
		w.doublings++
		w.quietSince = now
	}
}

// takePlace makes a place. The caller holds mu.
func (t *windows) takePlace(key windowKey, w *window, size int64) *place {
	w.requests++
	w.expected += size
	return &place{all: t, key: key, in: w, size: size}
}

// wakeFirst has the first one that waits look again. The caller holds mu.
func (w *window) wakeFirst() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// dropUnused forgets a window that no request uses. The caller holds mu.
func (t *windows) dropUnused(key windowKey, w *window) {
	if w.requests == 0 && w.waiting == 0 {
		delete(t.byKey, key)
	}
}

func (t *windows) endWait(key windowKey, w *window) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.waiting--; w.waiting == 0 {
		w.doublings = 0
	}
	t.dropUnused(key, w)
}

// noteAnswer says how large the answer is, which now waits for the agent.
func (p *place) noteAnswer(size int64) {
	if p == nil {
		return
	}
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	w := p.in
	w.expected -= p.size
	w.unread += size
	p.size, p.answered = size, true
	if w.doublings = 0; w.waiting > 0 {
		w.quietSince = time.Now()
	}
	w.wakeFirst()
}

// leave gives the place back.
func (p *place) leave() {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.in.requests--
	if p.answered {
		p.in.unread -= p.size
	} else {
		p.in.expected -= p.size
	}
	p.in.wakeFirst()
	p.all.dropUnused(p.key, p.in)
}

// waitEndedError is the error of a request that had no room until its end.
func waitEndedError(ctx context.Context, what named) error {
	return &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassCanceled, Server: what.server, Tool: what.name,
		Text: "the request ended while it waited for its agent to read the results that it has already", Err: context.Cause(ctx)}
}

// enterWindow gives a request its place, which it leaves when its answer is read. Over HTTP in the modern era it has none (nil): nothing
// tells the agents of a principal apart there, and they must not wait for each other.
func (g *Gateway) enterWindow(ctx context.Context, r *serve.Request, to named) (*place, error) {
	agent := r.Session.Agent()
	if agent == "" {
		return nil, nil //nolint:nilnil // no place, and no failure
	}
	p, err := g.windows.enter(ctx, windowKey{agent, to.server}, sizeKey(r, to))
	if err == nil {
		r.AfterAnswer(p.leave)
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
