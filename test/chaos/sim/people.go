package sim

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// people are those who use the manager: the callers of tools, and its owner. Each call and each command is a goroutine of
// its own, which ends with it.
type people struct {
	world *world
	ctx   context.Context // of the commands; it ends after Close
	leave context.CancelFunc
	calls *load.Schedule
	count int
	// leaving are calls that their callers give up at a moment that is still to come.
	leaving map[string]*leaver

	mu   sync.Mutex
	busy int
	free []chan func()
}

func (p *people) begin() {
	p.ctx, p.leave = context.WithCancel(context.Background())
	if p.world.plan.Scenario.Manager.Messages {
		p.world.program = newProgram(p.world)
	}
	p.calls, p.leaving = load.NewSchedule(p.world.plan), map[string]*leaver{}
	p.nextCall()
	for _, o := range p.world.plan.Commands {
		// Those of one time are given in the order of the plan, which is that of their numbers in the record, whatever server they are about.
		p.world.line.plan(o.At, "", func() { p.command(o) })
	}
}

// run lets somebody do something. Goroutines that have nothing to do are kept for the next one: their stacks have grown.
func (p *people) run(f func()) {
	p.world.moved = true
	p.mu.Lock()
	p.busy++
	if n := len(p.free); n > 0 {
		next := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		next <- f
		return
	}
	p.mu.Unlock()
	next := make(chan func(), 1)
	next <- f
	go func() { // ends when dismiss closes next
		for f := range next {
			p.do(f)
			p.mu.Lock()
			p.busy--
			p.free = append(p.free, next)
			p.mu.Unlock()
			p.world.wake()
		}
	}()
}

// do runs f. A panic in it is the manager's: it runs in the goroutine of its user.
func (p *people) do(f func()) {
	defer func() {
		if v := recover(); v != nil {
			p.world.rec.Add(history.Event{T: p.world.clock(), Side: history.Harness, Kind: history.Violation, Name: "I2",
				Text: messages.Line(fmt.Sprintf("the manager panicked in the goroutine of its user: %v", v), 500)})
		}
	}()
	f()
}

// dismiss sends everybody home who has nothing to do.
func (p *people) dismiss() {
	p.leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, next := range p.free {
		close(next)
	}
	p.free = nil
}

// left is how many have not come back.
func (p *people) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

// nextCall plans one call; the one after it when its time has come.
func (p *people) nextCall() {
	c, ok := p.calls.Next()
	if !ok || c.At >= p.world.plan.End {
		return
	}
	p.world.line.plan(c.At, c.Stream.Server, func() {
		p.nextCall()
		p.call(c)
	})
}

// call is one call of a tool: by the server's id or by the qualified name, in turns.
func (p *people) call(c load.Call) {
	w, s := p.world, c.Stream
	if s.Read != "" {
		p.read(c)
		return
	}
	p.count++
	byName := p.count%2 == 0
	timeout := time.Duration(lessThan(s.Timeout, c.ID))
	limit := timeout
	if own := time.Duration(w.hosts[s.Server].spec.CallTimeout); own > 0 && (limit <= 0 || own < limit) {
		limit = own
	}
	e := history.Event{Side: history.Caller, Kind: history.Call, Server: s.Server, Call: c.ID, Tool: s.Tool, Size: s.Size, By: c.Caller()}
	if limit > 0 {
		e.Deadline = w.at + limit
	}
	w.record(e)
	began := w.at
	args := json.RawMessage(fmt.Sprintf(`{"call":%q,"size":%d}`, c.ID, s.Size))
	given, leave := p.leaves(c)
	p.run(func() {
		ctx := given
		defer leave()
		if e.By != "" {
			ctx = supervisor.WithCaller(ctx, e.By)
		}
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		var res *supervisor.Result
		var err error
		wishes := []supervisor.CallOption{supervisor.WithProgress(func(supervisor.Progress) {})} // so that the server may tell of it
		if s.Task {
			wishes = append(wishes, supervisor.WithTask(taskLife), supervisor.WithTaskStatus(func(supervisor.TaskStatus) {}))
		}
		name, known := qualified(w.manager, s.Server, s.Tool)
		if !byName || !known {
			name = ""
		}
		switch {
		case w.program != nil && !s.Task: // a message cannot ask for a task
			res, err = w.program.call(c, name, args, timeout)
		case name != "":
			res, err = w.manager.CallTool(ctx, name, args, wishes...)
		default:
			res, err = w.manager.CallServerTool(ctx, s.Server, s.Tool, args, wishes...)
		}
		leave()
		end := ended(c, res, err)
		end.T = w.clock()
		end.Took = end.T - began
		w.rec.Add(end)
		w.secrets.text(w, s.Server, "the error of a call", end.Text)
		if err == nil && len(res.Raw) < 4096 {
			if wrong := misread(res); wrong != "" {
				w.unkept(s.Server, "the answer to the call "+c.ID+" was misread: "+wrong)
			}
		}
	})
}

// read is one read of what a server has beside tools. Its error must not hold a secret either.
func (p *people) read(c load.Call) {
	w := p.world
	e := history.Event{Side: history.Caller, Kind: history.Reading, Server: c.Stream.Server, Call: c.ID, Method: c.Stream.Read}
	if e.Method == "subscribe" && c.Ends() {
		e.Method = "unsubscribe"
	}
	w.record(e)
	began := w.at
	p.run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(time.Duration(lessThan(c.Stream.Timeout, c.ID)), readTime))
		defer cancel()
		if by := c.Caller(); by != "" {
			ctx = supervisor.WithCaller(ctx, by)
		}
		read := load.Read
		if w.program != nil {
			read = w.program.read
		}
		rev, err := read(ctx, w.manager, c)
		if err != nil {
			w.secrets.text(w, c.Stream.Server, "the error of a read", err.Error())
		}
		end := e
		end.T, end.Kind, end.Class, end.Rev = w.clock(), history.ReadEnd, messages.ClassOf(err), rev
		end.Took = end.T - began
		w.rec.Add(end)
	})
}

// readTime bounds a read whose caller has said nothing.
const readTime = 30 * time.Second

// taskLife is how long a server is asked to keep the task that a call becomes.
const taskLife = time.Hour

func qualified(m *supervisor.Manager, server, tool string) (string, bool) {
	e, ok := m.Tools().LookupTool(server, tool)
	if !ok {
		return "", false
	}
	return e.Name, true
}

// ended is how a call ended.
func ended(c load.Call, res *supervisor.Result, err error) history.Event {
	e := history.Event{Side: history.Caller, Kind: history.End, Server: c.Stream.Server, Call: c.ID, Tool: c.Stream.Tool,
		Outcome: messages.OutcomeOf(err), Class: messages.ClassOf(err)}
	if err != nil {
		e.Text = err.Error()
		return e
	}
	e.Outcome = res.Outcome()
	e.Conn, e.Value = number(res.Raw, `\"conn\":`), number(res.Raw, `\"value\":`)
	if own := word(res.Raw, `\"call\":\"`, '\\'); own != "" && own != c.ID {
		e.Text = "it got the answer of the call " + own
	}
	return e
}

// misread says in what the parts and the text of an answer are not what the server's bytes say; empty if they are.
func misread(res *supervisor.Result) string {
	conn, value := number(res.Raw, `\"conn\":`), number(res.Raw, `\"value\":`)
	text := []byte(res.Text())
	if number(text, `"conn":`) != conn || number(text, `"value":`) != value {
		return "its text is of another connection or has another value"
	}
	parts, err := res.Content()
	switch {
	case err != nil:
		return err.Error()
	case len(parts) == 0 && conn > 0:
		return "it has no parts"
	case len(parts) > 0 && conn > 0 && (parts[0].Type != "text" || number([]byte(parts[0].Text), `"value":`) != value):
		return "its first part is not the text with the value"
	}
	if own := res.Structured(); own != nil && conn > 0 && res.IsError {
		return "a failed tool has structured content"
	}
	return ""
}

// number is the number behind a key in a text, 0 if there is none. The text of an answer is JSON in JSON: to find a word in
// it costs a hundredth of decoding it twice.
func number(text []byte, key string) (n int) {
	_, rest, _ := bytes.Cut(text, []byte(key))
	for len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' && n < 1<<40 {
		n = 10*n + int(rest[0]-'0')
		rest = rest[1:]
	}
	return n
}

// word is what stands behind a key in a text up to end, empty if there is none.
func word(text []byte, key string, end byte) string {
	_, rest, found := bytes.Cut(text, []byte(key))
	if i := bytes.IndexByte(rest, end); found && i >= 0 {
		return string(rest[:i])
	}
	return ""
}

// command is something that the owner does.
func (p *people) command(o scenario.Order) {
	w := p.world
	meant := p.meant(o)
	for _, e := range meant {
		w.record(e)
	}
	do := p.words(o)
	if o.Do == "wake" { // what waits is tried at other times from now on, which are soon over
		w.line.plan(w.at+afterWake, "", w.lookAround)
	}
	p.run(func() {
		err := do()
		for _, e := range meant {
			e.T, e.Kind, e.Class = w.clock(), history.Done, messages.ClassOf(err)
			if err != nil {
				e.Text = err.Error()
				w.secrets.text(w, o.Server, "the error of a command", e.Text)
			}
			w.rec.Add(e)
		}
		if o.Do == "remove" && err == nil {
			w.look(o.Server, "after its removal")
		}
	})
}

// meant is how a command stands in the record. A set of servers that is not the whole one is a removal of some and an addition of
// others, each of which is one server's matter.
func (p *people) meant(o scenario.Order) []history.Event {
	e := history.Event{Side: history.Owner, Kind: history.Command, Server: o.Server, Command: o.ID, Method: o.Do}
	if o.Only == nil {
		return []history.Event{e}
	}
	var all []history.Event
	p.world.each(func(h *host) {
		kept := slices.Contains(o.Only, h.server.Name)
		if kept != h.removed {
			return // it is there and stays, or is gone and stays so
		}
		e.Server, e.Method = h.server.Name, "remove"
		if kept {
			e.Method = "add"
		}
		h.removed = !kept
		h.asked.Add(1)
		all = append(all, e)
	})
	return all
}

// words is what a command asks of the manager. Specs are taken now, in the loop.
func (p *people) words(o scenario.Order) func() error {
	m, ctx, h := p.world.manager, p.ctx, p.world.hosts[o.Server]
	if h == nil && o.Do != "configure" && o.Do != "wake" {
		return func() error { return errors.New("the plan's command is about a server that the plan does not have") }
	}
	var spec messages.Spec
	switch o.Do {
	case "remove":
		h.removed = true
	case "respec":
		h.revision++
		h.spec = revised(specOf(h.server, h.canary), h.revision)
		h.removed = false
		spec = h.spec
	case "adjust":
		h.server = h.server.Adjusted(o.With)
		if h.spec = specOf(h.server, h.canary); h.revision > 0 {
			h.spec = revised(h.spec, h.revision)
		}
		h.removed = false
		if spec = h.spec; o.BySet() {
			h.asked.Add(1)
			return p.sets()
		}
	case "add":
		h.removed = false
		spec = h.spec
	}
	if program := p.world.program; program != nil {
		if say := program.words(ctx, o, spec); say != nil {
			return say
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
		return p.sets()
	case "wake":
		return func() error { m.Woken(); return nil }
	}
	return func() error { return fmt.Errorf("the plan's command %q is unknown", o.Do) }
}

// sets is the command that says the whole set of servers as it is now.
func (p *people) sets() func() error {
	specs := maps.Clone(p.world.specs())
	return func() error { return p.world.setServers(p.ctx, specs) }
}

// setServers says the whole set of servers.
func (w *world) setServers(ctx context.Context, specs map[string]messages.Spec) error {
	if w.program != nil {
		return w.program.set(specs)
	}
	_, err := w.manager.SetServers(ctx, specs)
	return err
}

// specs is the whole set of servers as it should be.
func (w *world) specs() map[string]messages.Spec {
	all := make(map[string]messages.Spec, len(w.hosts))
	w.each(func(h *host) {
		if !h.removed {
			all[h.server.Name] = h.spec
		}
	})
	return all
}

// afterWake is when the status is looked at after the manager was told that the machine woke up.
const afterWake = 211 * time.Millisecond

// closeWithin is how long Close may take, and everybody who waits to come back: far more than its stop ladders.
const closeWithin = 5 * time.Minute
