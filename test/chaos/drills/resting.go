package drills

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// foreseenRest knows when a lazy server rests: the manager looks at it when its idle timeout may have passed since the last use, and a tenth of
// it later if it is in use then.
type foreseenRest struct {
	limit             time.Duration
	isUp              bool
	used, look        time.Time
	isHeld, isWatched bool
	changing          time.Time // until when a change of its tools that it has announced is not listed
	opened            int
}

// beginConnection notes a new connection, or a new spec for one.
func (f *foreseenRest) beginConnection() {
	now := time.Now()
	f.isUp, f.used, f.look = true, now, now.Add(f.limit)
}

// advance follows the looks of the manager until now.
func (f *foreseenRest) advance() {
	for now := time.Now(); f.isUp && !f.look.After(now); {
		quiet := f.look.Sub(f.used)
		switch {
		case f.isHeld || f.isWatched || quiet < f.limit:
			f.look = f.look.Add(max(f.limit-quiet, f.limit/10))
		case f.look.Before(f.changing):
			f.look = f.look.Add(f.limit)
		default:
			f.isUp = false
		}
	}
}

// restDrill is a lazy server whose rest is foreseen, its manager, and an agent.
type restDrill struct {
	*stage
	den   *server
	m     *supervisor.Manager
	g     *gateway.Gateway
	a     *agent
	held  heldRequests
	f     foreseenRest
	tools []string
	spec  supervisor.Spec
}

// playResting uses a lazy server in all ways, at all times, and knows to the nanosecond when it rests; it wakes it, disables it, removes it and
// gives it other specs while it rests. What agents see of it stays as it is while it rests.
func playResting(s *stage) {
	r := &restDrill{stage: s, den: newServer("den", "work", "hold"), tools: []string{"hold", "work"}}
	r.den.offers["resources"] = []map[string]any{{"name": "one", "uri": "drill://den/one"}}
	r.den.offers["resourceTemplates"] = []map[string]any{{"name": "any", "uriTemplate": "state://den/{id}"}}
	r.den.offers["prompts"] = []map[string]any{{"name": "greet"}}
	r.den.declared = map[string]any{"completions": struct{}{}}
	r.den.others = func(c *conn, m message) bool {
		if m.Method == "completion/complete" {
			c.sendResult(m, map[string]any{"completion": map[string]any{"values": []string{"one"}}})
		}
		return m.Method == "completion/complete"
	}
	r.den.handle = r.performTool
	r.f.limit = s.drawSpan(10*time.Second, 10*time.Minute)
	r.den.spec.Connect, r.den.spec.IdleTimeout = messages.Lazy, messages.Duration(r.f.limit)
	r.den.spec.CallTimeout, r.den.spec.MaxCallTimeout = -1, -1
	r.spec = r.den.spec
	if s.isOneIn(3) {
		r.den.spec.MaxInFlight, r.spec.MaxInFlight = 2, 2
	}
	if r.m = s.startManager(supervisor.Config{}, r.den); r.m == nil {
		return
	}
	r.g = s.openGateway(gateway.Config{})
	r.f.beginConnection()
	if !r.setSpec() {
		return
	}
	r.f.opened = 1
	if r.a = s.joinAgent(r.g, serve.Principal{Name: "anna"}, serve.Path{}, nil); r.a == nil {
		return
	}
	for range 8 + s.rng.IntN(6) {
		s.letPass(s.drawSpan(time.Millisecond, r.f.limit*3/2) | 1)
		if !r.compareState("") || !r.takeStep() || !r.compareState("after it, ") || !r.compareLists("", r.tools, true) {
			return
		}
		if s.isOneIn(3) && (!r.awaitFirstRest() || !r.compareLists("while it rests, ", r.tools, true)) {
			return
		}
	}
}

// setSpec gives the manager the server with the spec of this moment, or none.
func (r *restDrill) setSpec() bool {
	res, err := r.m.SetServers(r.ctx, map[string]supervisor.Spec{"den": r.spec})
	if err != nil || len(res.Errors) > 0 {
		r.reportFinding("I16", "den", "its spec is refused: %v %v", res.Errors, err)
		return false
	}
	r.settleAll()
	return true
}

// awaitFirstRest waits until a moment before the server must rest, and until a moment after it.
func (r *restDrill) awaitFirstRest() bool {
	for next := r.f; next.isUp && !next.isHeld && !next.isWatched; next = r.f {
		r.letPass(time.Until(next.look) - 1)
		if !r.compareState("a nanosecond before it may rest, ") {
			return false
		}
		r.letPass(2)
		if !r.compareState("a nanosecond after it may rest, ") {
			return false
		}
	}
	return true
}

// compareState compares what the manager shows of the server with what is foreseen.
func (r *restDrill) compareState(when string) bool {
	r.settleAll()
	r.f.advance()
	status, err := r.m.ServerStatus("den")
	want := messages.Pending
	wantStep, conns := messages.Idle, 0
	if r.f.isUp {
		want, wantStep, conns = messages.Connected, "", 1
	}
	if err != nil || status.Status != want || status.Step != wantStep || r.m.Rests("den") == r.f.isUp {
		r.reportFinding("I17", "den", "%sat %s it is %s %s (%v), and must be %s %s: its idle timeout is %s, and it was last used at %s", when, clock(time.Now()), status.Status, status.Step, err,
			want, wantStep, r.f.limit, clock(r.f.used))
		return false
	}
	if n := len(r.den.openConns()); n != conns || r.den.countOpened() != r.f.opened {
		r.reportFinding("I8", "den", "%sit has %d connections of %d, and must have %d of %d", when, n, r.den.countOpened(), conns, r.f.opened)
		return false
	}
	return true
}

func clock(t time.Time) string { return t.Format("4:05.000000000") }

// compareLists compares what the agent sees with the tools and, if the server shows any, its other offers.
func (r *restDrill) compareLists(when string, tools []string, shows bool) bool {
	other := 1
	if !shows {
		other = 0
	}
	seen := r.a.listNames(r.stage, "tools/list", "tools", "name")
	for i, name := range seen {
		seen[i] = name[strings.LastIndex(name, "_")+1:]
	}
	if !slices.Equal(seen, tools) {
		r.reportFinding("I26", "den", "%san agent sees its tools as %q (up: %t), and must see %q", when, seen, r.f.isUp, tools)
		return false
	}
	for _, l := range [][3]string{{"resources/list", "resources", "uri"}, {"resources/templates/list", "resourceTemplates", "uriTemplate"}, {"prompts/list", "prompts", "name"}} {
		if got := r.a.listNames(r.stage, l[0], l[1], l[2]); len(got) != other {
			r.reportFinding("I26", "den", "%san agent gets %q by %s (up: %t), and must get %d", when, got, l[0], r.f.isUp, other)
			return false
		}
	}
	return true
}

// takeStep does one thing that is drawn.
func (r *restDrill) takeStep() bool {
	heard := r.countNews()
	switch r.rng.IntN(12) {
	case 0, 1, 2:
		return r.useServer() && r.expectNoNews(heard)
	case 3:
		return r.holdCall() && r.expectNoNews(heard)
	case 4:
		return r.watchResource() && r.expectNoNews(heard)
	case 5:
		return r.meetRest() && r.expectNoNews(heard)
	case 6:
		return r.failWake()
	case 7:
		return r.toggleServer()
	case 8:
		return r.changeSpec()
	case 9:
		return r.changeTools()
	case 10:
		return r.callUnknown() && r.expectNoNews(heard)
	default:
		r.addStory("it is not used")
	}
	return r.expectNoNews(heard)
}

// countNews counts the notices of changed lists that the agent has got.
func (r *restDrill) countNews() int {
	return len(r.a.notesOf("notifications/tools/list_changed")) + len(r.a.notesOf("notifications/prompts/list_changed")) + len(r.a.notesOf("notifications/resources/list_changed"))
}

func (r *restDrill) expectNoNews(before int) bool {
	r.settleAll()
	return expectEqual(r.stage, "I26", "den", "the number of notices that a list has changed, while none has,", r.countNews(), before)
}

// noteUse notes that the server is used now, and is connected for it if it rests.
func (r *restDrill) noteUse() {
	r.f.advance()
	if !r.f.isUp {
		r.f.opened++
		r.f.beginConnection()
	}
	r.f.used = time.Now()
}

// uses are the ways to use a server.
func (r *restDrill) uses() map[string]func() error {
	byAgent := func(method string, params map[string]any) func() error {
		return func() error {
			result, err := r.a.callMethod(r.ctx, method, params)
			if err == nil && strings.Contains(string(result), `"isError":true`) {
				err = errors.New(textOf(result))
			}
			return err
		}
	}
	return map[string]func() error{
		"a call":                      func() error { return r.callTool("work") },
		"a call by qualified name":    func() error { _, err := r.m.CallTool(r.ctx, "mcp__den__work", nil); return err },
		"a read":                      func() error { _, err := r.m.ReadServerResource(r.ctx, "den", "drill://den/one"); return err },
		"a read by template":          func() error { _, err := r.m.ReadServerResource(r.ctx, "den", "state://den/1"); return err },
		"a prompt":                    func() error { _, err := r.m.GetServerPrompt(r.ctx, "den", "greet", nil); return err },
		"a prompt by qualified name":  func() error { _, err := r.m.GetPrompt(r.ctx, "mcp__den__greet", nil); return err },
		"a list by the program":       func() error { _, err := r.m.Prompts(r.ctx, "den"); return err },
		"an agent's call":             byAgent("tools/call", map[string]any{"name": "den__work"}),
		"an agent's read":             byAgent("resources/read", map[string]any{"uri": "drill://den/one"}),
		"an agent's read by template": byAgent("resources/read", map[string]any{"uri": "state://den/1"}),
		"an agent's prompt":           byAgent("prompts/get", map[string]any{"name": "den__greet"}),
		"an agent's completion": byAgent("completion/complete", map[string]any{"ref": map[string]any{"type": "ref/prompt", "name": "den__greet"},
			"argument": map[string]any{"name": "who", "value": ""}}),
	}
}

func (r *restDrill) callTool(tool string) error {
	_, err := r.m.CallServerTool(r.ctx, "den", tool, nil)
	return err
}

// drawUse draws a way to use the server.
func (r *restDrill) drawUse() (what string, use func() error) {
	uses := r.uses()
	names := make([]string, 0, len(uses))
	for name := range uses {
		names = append(names, name)
	}
	slices.Sort(names)
	what = pickOne(r.stage, names...)
	return what, uses[what]
}

// useServer uses the server once.
func (r *restDrill) useServer() bool {
	what, use := r.drawUse()
	r.addStory("%s at %s", what, clock(time.Now()))
	r.noteUse()
	if err := use(); err != nil {
		r.reportFinding("I2", "den", "%s ended with %v (it was awake: %t)", what, err, r.f.used.After(r.f.look.Add(-r.f.limit)))
		return false
	}
	return true
}

// callUnknown calls a tool that the server does not have: a server that rests has told its tools, and is not connected for an agent's.
func (r *restDrill) callUnknown() bool {
	r.addStory("a call of an unknown tool")
	_, err := r.m.CallTool(r.ctx, "mcp__den__nothing", nil)
	if !errors.Is(err, supervisor.ErrUnknownTool) || messages.OutcomeOf(err) != messages.OutcomeNotSent {
		r.reportFinding("I20", "den", "the call of a tool that it does not have ended with %v (up: %t)", err, r.f.isUp)
		return false
	}
	return true
}

// holdCall lets a call run for long: the server does not rest before its end, and at most a tenth of its timeout after it.
func (r *restDrill) holdCall() bool {
	r.noteUse()
	var err error
	ended := false
	r.runBeside(func() { err, ended = r.callTool("hold"), true })
	r.settleAll()
	r.f.isHeld = true
	long := r.drawSpan(time.Millisecond, 4*r.f.limit) | 1
	r.addStory("a call at %s runs for %s", clock(r.f.used), long)
	for until := time.Now().Add(long); time.Now().Before(until); {
		if r.isOneIn(3) && !r.useServer() {
			return false
		}
		r.letPass(min(r.drawSpan(time.Millisecond, r.f.limit*3/2), time.Until(until)) | 1)
		if !r.compareState("while a call runs, ") {
			return false
		}
	}
	r.held.releaseAll()
	r.settleAll()
	r.f.isHeld = false
	if !ended || err != nil {
		r.reportFinding("I2", "den", "a call that its server has answered after %s ended with %v (ended: %t)", long, err, ended)
		return false
	}
	return true
}

// watchResource watches a resource for a while, which keeps the server from its rest.
func (r *restDrill) watchResource() bool {
	r.noteUse()
	ask := func(method string) error {
		_, err := r.a.callMethod(r.ctx, "resources/"+method, map[string]any{"uri": "drill://den/one"})
		return err
	}
	if r.isOneIn(2) {
		ask = func(method string) error {
			if method == "subscribe" {
				return r.m.SubscribeResource(r.ctx, "den", "drill://den/one")
			}
			return r.m.UnsubscribeResource(r.ctx, "den", "drill://den/one")
		}
	}
	r.addStory("a resource is watched from %s", clock(time.Now()))
	if err := ask("subscribe"); err != nil {
		r.reportFinding("I2", "den", "the wish to watch a resource ended with %v", err)
		return false
	}
	r.f.isWatched = true
	for range 1 + r.rng.IntN(3) {
		r.letPass(r.drawSpan(time.Millisecond, 3*r.f.limit) | 1)
		if !r.compareState("while a resource is watched, ") {
			return false
		}
	}
	r.f.advance()
	err := ask("unsubscribe")
	r.f.isWatched, r.f.used = false, time.Now()
	r.addStory("and is watched no more from %s", clock(r.f.used))
	if err != nil {
		r.reportFinding("I2", "den", "the end of a watch ended with %v", err)
	}
	return err == nil
}

// meetRest uses the server several times in the instant in which it would rest: each use succeeds, on whichever connection.
func (r *restDrill) meetRest() bool {
	if r.f.advance(); !r.f.isUp {
		return r.useServer()
	}
	at := r.f.look
	n := 1 + r.rng.IntN(4)
	type end struct {
		what string
		err  error
	}
	var mu sync.Mutex
	var ends []end
	for range n {
		what, use := r.drawUse()
		wait := time.Until(at)
		r.runBeside(func() {
			time.Sleep(wait)
			err := use()
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, end{what, err})
		})
	}
	r.addStory("it is used %d times at %s, when it may rest", n, clock(at))
	wait := time.Until(at)
	r.runBeside(func() {
		time.Sleep(wait)
		r.compareLists("in the instant in which it may rest, ", r.tools, true)
	})
	r.letPass(wait)
	mu.Lock()
	defer mu.Unlock()
	for _, e := range ends {
		if e.err != nil {
			r.reportFinding("I2", "den", "%s in the instant in which it may rest ended with %v", e.what, e.err)
			return false
		}
	}
	if len(ends) != n {
		r.reportFinding("I2", "den", "%d of %d uses in the instant in which it may rest have ended", len(ends), n)
		return false
	}
	// A use that was admitted in the moment before may have ended on the old connection, which is gone then.
	status, _ := r.m.ServerStatus("den")
	if r.f.isUp = status.Status == messages.Connected; r.f.isUp {
		r.f.beginConnection()
	}
	if opened := r.den.countOpened(); opened > r.f.opened+1 {
		r.reportFinding("I8", "den", "it was connected %d times for the uses of one instant", opened-r.f.opened)
		return false
	}
	r.f.opened = r.den.countOpened()
	return true
}

// toggleServer disables the server and enables it: if it rested, it rests on.
func (r *restDrill) toggleServer() bool {
	isCold := r.isOneIn(2)
	disable := func() error { return r.m.Toggle(r.ctx, "den", false) }
	if isCold {
		disable = func() error { return r.m.Disconnect(r.ctx, "den") }
	}
	r.addStory("it is disabled at %s (cold: %t)", clock(time.Now()), isCold)
	if err := disable(); err != nil {
		r.reportFinding("I16", "den", "it cannot be disabled: %v", err)
		return false
	}
	r.letPass(r.drawSpan(time.Millisecond, 2*r.f.limit))
	what, use := r.drawUse()
	if err := use(); err == nil || !strings.HasPrefix(what, "an agent") && (!errors.Is(err, supervisor.ErrDisabled) || messages.OutcomeOf(err) != messages.OutcomeNotSent) {
		r.reportFinding("I20", "den", "it is disabled, and %s ended with %v", what, err)
		return false
	}
	if !r.compareLists("while it is disabled, ", []string{}, false) {
		return false
	}
	if err := r.m.Toggle(r.ctx, "den", true); err != nil {
		r.reportFinding("I16", "den", "it cannot be enabled: %v", err)
		return false
	}
	switch {
	case r.f.isUp && isCold:
		r.f.isUp = false // it is known, and rests until it is used
	case r.f.isUp:
		r.f.beginConnection()
	}
	r.addStory("it is enabled at %s", clock(time.Now()))
	return true
}

// changeSpec gives the server another idle timeout, which keeps its connection and its rest, or removes it and adds it anew.
func (r *restDrill) changeSpec() bool {
	r.f.advance()
	switch r.rng.IntN(4) {
	case 0:
		r.f.limit = r.drawSpan(10*time.Second, 10*time.Minute)
		r.spec.IdleTimeout = messages.Duration(r.f.limit)
		r.addStory("its idle timeout becomes %s at %s", r.f.limit, clock(time.Now()))
		if r.f.isUp {
			r.f.beginConnection()
		}
		return r.setSpec()
	case 1:
		r.addStory("it is connected anew")
		if err := r.m.Reconnect(r.ctx, "den"); err != nil {
			r.reportFinding("I16", "den", "it cannot be connected: %v", err)
			return false
		}
	case 2:
		r.spec.LogLevel = pickOne(r.stage, "debug", "info", "warning", "error")
		if r.spec.LogLevel == r.den.spec.LogLevel {
			return true
		}
		r.den.spec.LogLevel = r.spec.LogLevel
		r.addStory("its log level becomes %s, for which it is connected anew, at %s", r.spec.LogLevel, clock(time.Now()))
		if !r.setSpec() {
			return false
		}
	default:
		r.addStory("it is removed and added (up: %t)", r.f.isUp)
		if _, err := r.m.SetServers(r.ctx, nil); err != nil {
			r.reportFinding("I16", "den", "it cannot be removed: %v", err)
			return false
		}
		r.letPass(r.drawSpan(time.Millisecond, r.f.limit))
		what, use := r.drawUse()
		if err := use(); err == nil {
			r.reportFinding("I20", "den", "it is removed, and %s succeeded", what)
			return false
		}
		if !r.compareLists("when it is removed, ", []string{}, false) || !r.setSpec() {
			return false
		}
	}
	r.f.opened++
	r.f.beginConnection()
	return true
}

// changeTools lets the tools change: announced while the server is connected, also shortly before it would rest; unnoticed while it rests, until
// it is used.
func (r *restDrill) changeTools() bool {
	tools := []string{"hold", "work", fmt.Sprintf("tool%d", r.rng.IntN(1000))}[:2+r.rng.IntN(2)]
	if r.f.advance(); r.f.isUp {
		if r.isOneIn(2) {
			r.letPass(time.Until(r.f.look) - r.drawSpan(1, 40*time.Millisecond))
			r.f.changing = time.Now().Add(50 * time.Millisecond)
		}
		r.addStory("its tools become %q at %s", tools, clock(time.Now()))
		r.den.setTools(tools...)
		r.letPass(100 * time.Millisecond)
	} else {
		r.addStory("its tools become %q while it rests", tools)
		r.den.setTools(tools...)
		if !r.compareState("while its tools are others, ") || !r.useServer() {
			return false
		}
	}
	slices.Sort(tools)
	r.tools = tools
	r.settleAll()
	return true
}
