package invariant

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The gateway lets an agent have so many bytes of results under way at one server, and keeps what is beyond that back. It expects unknownResult of a tool
// that has given no result yet, and leastResult of the small ones that it knows. Agents of the modern era over HTTP share one window by their principal. A
// window in which calls wait doubles after windowQuiet without an answer.
const (
	sessionWindow   = 16 << 20
	principalWindow = 64 << 20
	unknownResult   = 512 << 10
	leastResult     = 16 << 10
	windowQuiet     = time.Second
)

// agentWindow follows the calls that share a window, in time.
type agentWindow struct {
	most int
	// waiting are those that are kept back, the oldest first; places what is expected of the others, and taken its sum.
	waiting []*history.CallRecord
	places  map[*history.CallRecord]int
	taken   int
	// quietSince is since when no answer has come while calls wait, and doublings how often the window has doubled since.
	quietSince time.Duration
	doublings  int
}

// passedOnAt returns when a call comes to the manager at the latest: when it begins, but for the call of an agent, which the gateway may keep back.
func (c *checker) passedOnAt(call *history.CallRecord) time.Duration {
	if exit, ok := c.windowExits(call.Server)[call]; ok {
		return exit
	}
	return c.x.Event(call.Begin).T
}

// windowExits returns for the calls that agents make at a server when the gateway passes them on, at the latest: that of a call which is answered
// before is when it is answered.
func (c *checker) windowExits(server string) map[*history.CallRecord]time.Duration {
	exits, known := c.exitCache[server]
	if !known {
		if c.exitCache == nil {
			c.exitCache = map[string]map[*history.CallRecord]time.Duration{}
		}
		exits = c.findExits(server)
		c.exitCache[server] = exits
	}
	return exits
}

func (c *checker) findExits(server string) map[*history.CallRecord]time.Duration {
	type step struct {
		t    time.Duration
		call *history.CallRecord
		act  func(w *agentWindow, t time.Duration, call *history.CallRecord)
	}
	keys := c.windowKeys()
	windows, steps := map[string]*agentWindow{}, []step(nil)
	sizes, exits := resultSizes{c: c, server: server, known: map[string]int{}}, map[*history.CallRecord]time.Duration{}
	begins := func(w *agentWindow, t time.Duration, call *history.CallRecord) {
		sizes.noteCall(call, true)
		w.addCall(t, call)
	}
	isKnown := func(_ *agentWindow, _ time.Duration, call *history.CallRecord) { sizes.noteCall(call, false) }
	isAnswered := func(w *agentWindow, t time.Duration, call *history.CallRecord) { w.endCall(t, call, exits) }
	for _, call := range c.x.Calls() {
		if call.Server != server || call.Begin < 0 || keys[call.ID] == "" {
			continue
		}
		begin, answered := c.x.Event(call.Begin), c.endTime()
		if len(call.Ends) > 0 {
			answered = c.x.Event(call.Ends[0]).T
			steps = append(steps, step{answered, call, isKnown}) // the size of its result, also of that of a task
		}
		if tasked, ok := c.x.Time(call.Tasked); ok {
			answered = min(answered, tasked)
		}
		steps = append(steps, step{begin.T, call, begins}, step{answered, call, isAnswered})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.t, b.t) })
	for _, s := range steps {
		key := keys[s.call.ID]
		w := windows[key]
		if w == nil {
			w = &agentWindow{most: sessionWindow, places: map[*history.CallRecord]int{}}
			if c.sharesWindow(c.x.Event(s.call.Begin).Agent) {
				w.most = principalWindow
			}
			windows[key] = w
		}
		expected := func(call *history.CallRecord) int { return sizes.expectedOf(c.x.Event(call.Begin).Tool) }
		w.passOn(s.t, expected, exits)
		s.act(w, s.t, s.call)
		w.passOn(s.t, expected, exits)
	}
	return exits
}

// addCall lets a call wait.
func (w *agentWindow) addCall(t time.Duration, call *history.CallRecord) {
	if len(w.waiting) == 0 {
		w.quietSince, w.doublings = t, 0
	}
	w.waiting = append(w.waiting, call)
}

// endCall gives back what a call has.
func (w *agentWindow) endCall(t time.Duration, call *history.CallRecord, exits map[*history.CallRecord]time.Duration) {
	if i := slices.Index(w.waiting, call); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
		exits[call] = t
		return
	}
	w.taken -= w.places[call]
	delete(w.places, call)
	w.quietSince, w.doublings = t, 0
}

// passOn passes calls on for which there is room by a time.
func (w *agentWindow) passOn(t time.Duration, expected func(*history.CallRecord) int, exits map[*history.CallRecord]time.Duration) {
	now := t
	for len(w.waiting) > 0 {
		first := w.waiting[0]
		if size := expected(first); len(w.places) == 0 || w.taken+size <= w.most<<w.doublings {
			w.waiting = w.waiting[1:]
			w.places[first], exits[first] = size, now
			w.taken += size
			continue
		}
		if now = w.quietSince + windowQuiet; now > t {
			return
		}
		w.quietSince = now
		w.doublings++
	}
}

// windowKeys returns for the calls of agents which of them share a window: those of one session, or of one principal.
func (c *checker) windowKeys() map[string]string {
	if c.windowKeyCache != nil {
		return c.windowKeyCache
	}
	keys := map[string]string{}
	c.windowKeyCache = keys
	for _, i := range c.x.Order() {
		e := c.x.Event(i)
		if e.Kind != history.Asked || e.Method != "tools/call" || keys[e.About] != "" {
			continue
		}
		if keys[e.About] = "session " + strconv.FormatUint(e.Epoch, 10) + " of " + e.Agent; c.sharesWindow(e.Agent) {
			keys[e.About] = "principal " + e.By
		}
	}
	return keys
}

// sharesWindow reports whether an agent has one window with all others of its principal, because nothing tells them apart.
func (c *checker) sharesWindow(agent string) bool {
	return slices.ContainsFunc(c.plan.Agents, func(a scenario.PlannedAgent) bool {
		return a.Name == agent && a.Era == messages.EraModern && a.Over != scenario.OverLines
	})
}
