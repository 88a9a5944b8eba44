package sim

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// managerUsers are the users of the manager: the callers of tools, and the owner. Each call and each command runs in a
// goroutine of its own. Only the loop uses the fields above goroutines.
type managerUsers struct {
	world *simulation
	// ctx is the context of the owner's commands. It ends after Close.
	ctx    context.Context
	cancel context.CancelFunc
	calls  *load.Schedule
	// count counts the calls, so that every second one goes by the qualified name.
	count int
	// sets counts the sets of servers that the owner has given.
	sets int
	// abandonable holds the calls that their callers will give up at an event of the server, by id.
	abandonable map[string]*abandonableCall

	// toStart are the users that have not begun, in their order.
	toStart    []func()
	goroutines goroutinePool
	// busy is the number of users that have not returned.
	busy atomic.Int64
}

// scheduleWork plans the first call and all commands.
func (p *managerUsers) scheduleWork() {
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if p.world.plan.Scenario.Manager.Messages {
		p.world.messageActor = newMessageActor(p.world)
		p.world.messageActor.scheduleSubscriber()
		p.world.messageActor.scheduleSeries()
	}
	p.calls, p.abandonable = load.NewSchedule(p.world.plan), map[string]*abandonableCall{}
	p.scheduleNextCall()
	for _, o := range p.world.plan.Commands {
		// Commands at one time go in the order of the plan, which is the order of their ids in the history, whichever servers
		// they concern.
		p.world.timeline.planAction(o.At, "", func() { p.startCommand(o) })
	}
}

// runAsUser has f run in a goroutine, in a step of the loop of its own: of two users that begin in one step, chance would decide which one the
// manager meets first. Only the loop calls it.
func (p *managerUsers) runAsUser(f func()) {
	p.busy.Add(1)
	p.toStart = append(p.toStart, f)
}

// startNext starts the first user that has not begun, and returns false if there is none.
func (p *managerUsers) startNext() bool {
	if len(p.toStart) == 0 {
		return false
	}
	f := p.toStart[0]
	p.toStart = slices.Delete(p.toStart, 0, 1)
	p.world.needsWait = true
	p.goroutines.run(func() {
		p.runRecovering(f)
		p.busy.Add(-1)
		p.world.wakeLoop()
	})
	return true
}

// runRecovering runs f. A panic in it comes from the manager, which runs in the goroutine of its user.
func (p *managerUsers) runRecovering(f func()) {
	defer func() {
		if v := recover(); v != nil {
			p.world.rec.Add(history.Event{T: p.world.elapsedTime(), Side: history.Harness, Kind: history.Violation, Name: "I2",
				Text: messages.Line(fmt.Sprintf("the manager panicked in the goroutine of its user: %v", v), 500)})
		}
	}()
	f()
}

// scheduleNextCall plans the next call. When its time comes, it plans the one after it, so that the timeline holds one call at
// a time.
func (p *managerUsers) scheduleNextCall() {
	c, ok := p.calls.Next()
	if !ok || c.At >= p.world.plan.End {
		return
	}
	p.world.timeline.planAction(c.At, c.Stream.Server, func() {
		p.scheduleNextCall()
		p.startCall(c)
	})
}

// startCall makes one call of a tool, alternately by the server's own name of the tool and by the qualified name.
func (p *managerUsers) startCall(c load.Call) {
	w, s := p.world, c.Stream
	if s.Read != "" {
		p.startRead(c)
		return
	}
	p.count++
	byName := p.count%2 == 0
	timeout := time.Duration(slightlyLess(s.Timeout, c.ID))
	limit := timeout
	if own := time.Duration(w.servers[s.Server].spec.CallTimeout); own > 0 && (limit <= 0 || own < limit) {
		// The deadline in the history is the earlier of the caller's limit and the spec's.
		limit = own
	}
	e := history.Event{Side: history.Caller, Kind: history.Call, Server: s.Server, Call: c.ID, Tool: s.Tool, Size: s.Size, By: c.Caller()}
	if limit > 0 {
		e.Deadline = w.virtualNow + limit
	}
	w.recordEvent(e)
	began := w.virtualNow
	args := json.RawMessage(fmt.Sprintf(`{"call":%q,"size":%d}`, c.ID, s.Size))
	given := callArguments(p.count, c.ID, s.Size)
	if p.count%16 == 7 {
		args = json.RawMessage(fmt.Sprintf(`{"note":%s,"call":%q,"size":%d}`, longNote, c.ID, s.Size))
		given = args
	}
	if w.servers[s.Server].server.Headers && p.count%3 > 0 {
		args = json.RawMessage(fmt.Sprintf(`{"at":{"deep":%t},"note":%s,"call":%q,"size":%d}`, p.count%3 == 1, headerNotes[p.count%len(headerNotes)], c.ID, s.Size))
		given = args
	}
	callCtx, finish := p.callContext(c)
	p.runAsUser(func() {
		ctx := callCtx
		defer finish()
		person := ""
		if e.By != "" {
			ctx = supervisor.WithCaller(ctx, e.By)
			if w.consents != nil && w.messageActor == nil { // a message cannot bring its own person
				ctx, person = w.consents.scopeTo(ctx, e.By), e.By
			}
		}
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		var res *supervisor.Result
		var err error
		// A call without progress asks the server for none, and the fault endless-progress would be untested.
		options := []supervisor.CallOption{supervisor.WithProgress(func(supervisor.Progress) {})}
		if s.Task {
			options = append(options, supervisor.WithTask(taskTTL), supervisor.WithTaskStatus(func(supervisor.TaskStatus) {}))
		}
		name, known := qualifiedName(w.manager, s.Server, s.Tool)
		if !byName || !known {
			name = ""
		}
		switch {
		// A message cannot ask for a task.
		case w.messageActor != nil && !s.Task:
			res, err = w.messageActor.callTool(c, name, args, timeout)
		case name != "":
			res, err = w.manager.CallTool(ctx, name, given, options...)
		default:
			res, err = w.manager.CallServerTool(ctx, s.Server, s.Tool, given, options...)
		}
		finish()
		end := callEndEvent(c, res, err)
		end.T = w.elapsedTime()
		end.Took = end.T - began
		w.rec.Add(end)
		w.secrets.checkError(w, s.Server, "the error of a call", err)
		w.secrets.checkText(w, s.Server, "the end of a call", end.Text)
		if err == nil && w.consents != nil {
			w.consents.checkCall(c, person, w.servers[s.Server].server.Trusted)
		}
		// Long results are mostly padding; decoding them would cost more than the run.
		if err == nil && len(res.Raw) < 4096 {
			if problem := resultProblem(res); problem != "" {
				w.reportBrokenPromise(s.Server, "the answer to the call "+c.ID+" was misread: "+problem)
			}
		}
	})
}

// longNote is an argument that no buffer between the manager and a process holds: while the server does not read, the calls behind it wait.
var longNote = `"` + strings.Repeat("n", 70<<10) + `"`

// headerNotes are arguments that a header cannot hold as they are, and none.
var headerNotes = []string{`null`, `"für alle: ☂"`, `" spaces "`, `"plain"`, `"line\nbreak"`, `""`}

// startRead reads something that a server has beside tools: resources, prompts, completions. Its error must not hold a secret
// either.
func (p *managerUsers) startRead(c load.Call) {
	w := p.world
	e := history.Event{Side: history.Caller, Kind: history.Reading, Server: c.Stream.Server, Call: c.ID, Method: c.Stream.Read}
	if e.Method == "subscribe" && c.EndsSubscription() {
		e.Method = "unsubscribe"
	}
	w.recordEvent(e)
	began := w.virtualNow
	p.runAsUser(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(time.Duration(slightlyLess(c.Stream.Timeout, c.ID)), defaultReadTimeout))
		defer cancel()
		if caller := c.Caller(); caller != "" {
			ctx = supervisor.WithCaller(ctx, caller)
		}
		read := load.Read
		if w.messageActor != nil {
			read = w.messageActor.readItem
		}
		rev, err := read(ctx, w.manager, c)
		w.secrets.checkError(w, c.Stream.Server, "the error of a read", err)
		end := e
		end.T, end.Kind, end.Class, end.Rev = w.elapsedTime(), history.ReadEnd, messages.ClassOf(err), rev
		end.Took = end.T - began
		w.rec.Add(end)
	})
}

// defaultReadTimeout bounds a read whose stream names no limit.
const defaultReadTimeout = 30 * time.Second

// taskTTL is the time for which the caller asks a server to keep the task of a call.
const taskTTL = time.Hour

// qualifiedName returns the qualified name of a server's tool in the current catalog, false if the catalog lacks it.
func qualifiedName(m *supervisor.Manager, server, tool string) (string, bool) {
	e, ok := m.Tools().LookupTool(server, tool)
	if !ok {
		return "", false
	}
	return e.Name, true
}

// callEndEvent describes how a call ended. It notes an answer that belongs to another call.
func callEndEvent(c load.Call, res *supervisor.Result, err error) history.Event {
	e := history.Event{Side: history.Caller, Kind: history.End, Server: c.Stream.Server, Call: c.ID, Tool: c.Stream.Tool,
		Outcome: messages.OutcomeOf(err), Class: messages.ClassOf(err)}
	if err != nil {
		e.Text = err.Error()
		return e
	}
	e.Outcome = res.Outcome()
	e.Conn, e.Value = numberAfter(res.Raw, `\"conn\":`), numberAfter(res.Raw, `\"value\":`)
	if own := textAfter(res.Raw, `\"call\":\"`, '\\'); own != "" && own != c.ID {
		e.Text = "it got the answer of the call " + own
	}
	return e
}

// resultProblem compares the parts of a result with the bytes of the server, and returns in what they differ, empty if they
// agree.
func resultProblem(res *supervisor.Result) string {
	conn, value := numberAfter(res.Raw, `\"conn\":`), numberAfter(res.Raw, `\"value\":`)
	text := []byte(res.Text())
	if numberAfter(text, `"conn":`) != conn || numberAfter(text, `"value":`) != value {
		return "its text is of another connection or has another value"
	}
	parts, err := res.Content()
	switch {
	case err != nil:
		return err.Error()
	case len(parts) == 0 && conn > 0:
		return "it has no parts"
	case len(parts) > 0 && conn > 0 && (parts[0].Type != "text" || numberAfter([]byte(parts[0].Text), `"value":`) != value):
		return "its first part is not the text with the value"
	}
	if own := res.Structured(); own != nil && conn > 0 && res.IsError {
		return "a failed tool has structured content"
	}
	return ""
}

// numberAfter returns the number after a key in a text, 0 if there is none. The text of an answer is JSON within JSON, and
// searching it costs a hundredth of decoding it twice.
func numberAfter(text []byte, key string) (n int) {
	_, rest, _ := bytes.Cut(text, []byte(key))
	for len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' && n < 1<<40 {
		n = 10*n + int(rest[0]-'0')
		rest = rest[1:]
	}
	return n
}

// textAfter returns the text after a key, up to the byte end, empty if there is none.
func textAfter(text []byte, key string, end byte) string {
	_, rest, found := bytes.Cut(text, []byte(key))
	if i := bytes.IndexByte(rest, end); found && i >= 0 {
		return string(rest[:i])
	}
	return ""
}

// startCommand gives a command of the owner to the manager, and records it and its answer.
func (p *managerUsers) startCommand(o scenario.PlannedCommand) {
	w := p.world
	events := p.commandEvents(o)
	for _, e := range events {
		w.recordEvent(e)
	}
	do := p.commandFunc(o)
	// A wake changes the times of the next attempts, and those attempts are soon over; the status must show the new times.
	if o.Do == "wake" {
		w.timeline.planAction(w.virtualNow+afterWake, "", w.lookAround)
	}
	p.runAsUser(func() {
		all := do()
		// What the catalog shows now is what a program finds that acts on the answer, so nothing may come between the two.
		var shown []*supervisor.Entry
		if o.Server != "" {
			shown = w.manager.Tools().Server(o.Server)
		}
		for _, e := range events {
			err := all
			if o.Do == scenario.ConnectAll || o.Do == scenario.DisconnectAll {
				err = scenario.ErrorOf(all, e.Server)
			}
			e.T, e.Kind, e.Class = w.elapsedTime(), history.Done, messages.ClassOf(err)
			if len(shown) > 0 {
				e.Tools, e.Hash = len(shown), hashEntries(shown)
			}
			if err != nil {
				e.Text = err.Error()
				w.secrets.checkError(w, o.Server, "the error of a command", err)
			}
			w.rec.Add(e)
		}
		if o.Do == "remove" && all == nil && !w.plan.Scenario.Manager.Configured {
			w.recordStatus(o.Server, "after its removal")
		}
	})
}

// hashEntries hashes the tools of one server's entries as [history.HashTools] does.
func hashEntries(entries []*supervisor.Entry) string {
	tools := make([]messages.Tool, len(entries))
	for i, e := range entries {
		tools[i] = *e.Tool
	}
	return history.HashTools(tools)
}

// commandEvents splits a configure command with a set of servers into the removals and additions that it amounts to, and a
// command to all servers into what it does to each, because the invariants judge each server by its own commands. It updates
// removed for them. A command that would leave a configured set as it was is one that gives the whole set. Any other command is one event.
func (p *managerUsers) commandEvents(o scenario.PlannedCommand) []history.Event {
	e := history.Event{Side: history.Owner, Kind: history.Command, Server: o.Server, Command: o.ID, Method: o.Do}
	var all []history.Event
	if o.Do == scenario.ConnectAll || o.Do == scenario.DisconnectAll {
		for _, st := range p.world.manager.Status() {
			if p.world.servers[st.Name] == nil {
				continue // the program has configured it for a moment
			}
			if e.Server, e.Method = st.Name, scenario.ActionOf(o.Do, st.Status, st.Step); e.Method != "" {
				p.world.servers[st.Name].commandCount.Add(1)
				all = append(all, e)
			}
		}
		return all
	}
	if h := p.world.servers[o.Server]; h != nil && p.world.plan.Scenario.Manager.Configured && (o.Do == "remove" && h.removed || o.Do == "add" && !h.removed) {
		e.Server, e.Method = "", "configure" // the set is as it was
	}
	if o.Only == nil {
		return []history.Event{e}
	}
	p.world.eachServer(func(h *simServer) {
		kept := slices.Contains(o.Only, h.server.Name)
		if kept != h.removed {
			// The server stays in the set, or stays out of it.
			return
		}
		e.Server, e.Method = h.server.Name, "remove"
		if kept {
			e.Method = "add"
		}
		h.removed = !kept
		h.commandCount.Add(1)
		all = append(all, e)
	})
	return all
}

// commandFunc returns the function that gives a command to the manager. The loop prepares the specs now, because the goroutine
// of the user must not touch the servers.
func (p *managerUsers) commandFunc(o scenario.PlannedCommand) func() error {
	m, ctx, h := p.world.manager, p.ctx, p.world.servers[o.Server]
	if h == nil && !slices.Contains([]string{"configure", "wake", scenario.ConnectAll, scenario.DisconnectAll}, o.Do) {
		return func() error { return errors.New("the plan's command is about a server that the plan does not have") }
	}
	var spec messages.Spec
	set, asSet := &p.world.ownerSet, p.world.plan.Scenario.Manager.Configured && o.ChangesSet()
	if asSet {
		set = &ownerSet{} // setServersFunc notes the whole set
	}
	switch o.Do {
	case "approve":
		return p.world.approveFunc(ctx, o.Server)
	case "permit":
		h.server = h.server.Adjusted(o.With)
		return p.world.permitFunc(ctx, h)
	case "remove":
		h.removed = true
		set.removeServer(o.Server)
	case "respec":
		h.revision++
		h.spec = reviseSpec(specOf(h.server, h.canary), h.revision)
		h.removed = false
		spec = h.spec
		set.addServer(o.Server, spec)
	case "adjust":
		h.server = h.server.Adjusted(o.With)
		if h.spec = specOf(h.server, h.canary); h.revision > 0 {
			h.spec = reviseSpec(h.spec, h.revision)
		}
		h.removed = false
		if spec = h.spec; o.BySet() && !asSet {
			h.commandCount.Add(1)
			return p.setServersFunc()
		}
		set.addServer(o.Server, spec)
	case "add":
		h.removed = false
		spec = h.spec
		set.addServer(o.Server, spec)
	}
	if asSet {
		return p.setServersFunc()
	}
	if program := p.world.messageActor; program != nil {
		if send := program.commandFunc(ctx, o, spec); send != nil {
			return send
		}
	}
	switch o.Do {
	case "disable":
		return func() error { return m.Toggle(ctx, o.Server, false) }
	case "enable":
		return func() error { return m.Toggle(ctx, o.Server, true) }
	case "disconnect":
		return func() error { return m.Disconnect(ctx, o.Server) }
	case "reconnect":
		return func() error { return m.Reconnect(ctx, o.Server) }
	case "refresh":
		return func() error { return m.Refresh(ctx, o.Server) }
	case "remove":
		return func() error { return m.Remove(ctx, o.Server) }
	case "add", "respec", "adjust":
		return func() error { return m.Connect(ctx, o.Server, spec) }
	case "configure":
		return p.setServersFunc()
	case scenario.ConnectAll:
		return func() error { return m.ConnectAll(ctx) }
	case scenario.DisconnectAll:
		return func() error { return m.DisconnectAll(ctx) }
	case "wake":
		return func() error { m.Woken(); return nil }
	}
	return func() error { return fmt.Errorf("the plan's command %q is unknown", o.Do) }
}

// setServersFunc returns the command that gives the manager the whole set of servers as it is now.
func (p *managerUsers) setServersFunc() func() error {
	specs := p.world.wantedSpecs()
	check := p.world.ownerSet.replaceAll(specs)
	// One set in three holds a server that cannot work, which a configuration may hold.
	if p.sets++; p.sets%3 == 0 && !p.world.plan.Scenario.Manager.Configured {
		specs, check = withMisfit(specs, impossibleSpecs[p.sets%len(impossibleSpecs)], check)
	}
	return func() error { return p.world.setServers(p.ctx, specs, check) }
}

// setServers gives the manager the whole set of servers, by message or by the facade, or as its configuration, and checks what it says that it did.
func (w *simulation) setServers(ctx context.Context, specs map[string]messages.Spec, check func(messages.SetServersResult) string) error {
	give := w.manager.SetServers
	if w.messageActor != nil {
		give = w.messageActor.setServers
	}
	if w.plan.Scenario.Manager.Configured {
		give = w.manager.Configure
	}
	res, err := give(ctx, specs)
	if err != nil {
		return err
	}
	if problem := check(res); problem != "" {
		w.reportBrokenPromise("", problem)
	}
	return nil
}

// wantedSpecs returns the specs of all servers that the owner has not removed.
func (w *simulation) wantedSpecs() map[string]messages.Spec {
	all := make(map[string]messages.Spec, len(w.servers))
	w.eachServer(func(h *simServer) {
		if !h.removed {
			all[h.server.Name] = h.spec
		}
	})
	return all
}

// afterWake is the virtual time after a wake command at which the harness records the status, so that the manager has acted on it.
const afterWake = 211 * time.Millisecond

// closeTimeout bounds Close and the return of all users, in virtual time: far more than stopping a server takes.
const closeTimeout = 5 * time.Minute
