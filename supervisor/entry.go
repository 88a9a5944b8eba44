package supervisor

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// maxActorCalls bounds the calls by message that are in flight; one more is answered not-sent.
const maxActorCalls = 4096

// entry is the actor that other actors talk to. It translates each command, hands it to the supervisor in the order in
// which it came, and answers the sender exactly once. Tool calls run beside it: its own turn never waits.
type entry struct {
	m    *Manager
	root *actor.RootContext
	self *actor.PID

	watchers map[string]*actorWatch // by the subscriber's address and id
	inFlight int
	calls    map[string]*actorCall // in flight, by call id
	ended    remembered            // by call id
	forget   *time.Timer           // for the oldest of those; nil while there is none

	clerks map[string]*clerk // by the actor's address and id
	asks   map[uint64]*serverAsk
	over   chan struct{} // closed when the actor has ended
}

// actorCall is a call by message that is in flight: who waits for it beside its sender.
type actorCall struct{ waiting []*actor.PID }

type actorWatch struct {
	watcher *Watcher
	pid     *actor.PID
	cancel  context.CancelFunc
}

type callEnded struct {
	id    string
	reply *messages.CallToolReply
	to    *actor.PID
}

// forgetDue says that what is remembered of calls may be old.
type forgetDue struct{}

func newEntry(m *Manager) *entry {
	return &entry{m: m, watchers: map[string]*actorWatch{}, calls: map[string]*actorCall{},
		clerks: map[string]*clerk{}, asks: map[uint64]*serverAsk{}, over: make(chan struct{})}
}

// Receive implements actor.Actor. A panic costs the one message.
func (e *entry) Receive(ctx actor.Context) {
	defer func() {
		if r := recover(); r != nil {
			e.m.cfg.Logger.Error("panic in the entry actor; the message that caused it is lost", zap.Any("panic", r),
				zap.String("message", fmt.Sprintf("%T", ctx.Message())), zap.ByteString("stack", debug.Stack()))
		}
	}()
	switch m := ctx.Message().(type) {
	case *actor.Started:
		e.root, e.self = ctx.ActorSystem().Root, ctx.Self()
		ask := counter(e.ask)
		e.m.cfg.desk.counter.Store(&ask)
	case *actor.Stopped:
		e.close()
		if e.forget != nil {
			e.forget.Stop()
		}
		for _, w := range e.watchers {
			w.end()
		}
	case *actor.Terminated:
		e.unwatch(m.Who)
		e.dismiss(m.Who)
	case *messages.AddServer:
		e.forward(ctx, addServer{name: m.GetName(), spec: m.GetSpec().ToSpec(), ticket: e.m.shared.tickets.Add(1), early: true,
			reply: e.told(ctx, added(m.GetName(), m.GetSpec().ToSpec()), e.done(ctx))})
	case *messages.RemoveServer:
		e.forward(ctx, removeServer{m.GetName(), e.told(ctx, audit.Record{Change: "remove", Server: m.GetName()},
			e.donePublished(ctx, m.GetName(), gone))})
	case *messages.EnableServer:
		e.wish(ctx, m.GetName(), lifecycle.Enable{Ticket: e.m.shared.tickets.Add(1)}, e.done(ctx))
	case *messages.DisableServer:
		ticket := e.m.shared.tickets.Add(1)
		e.wish(ctx, m.GetName(), lifecycle.Disable{Cold: m.GetDisconnect(), Ticket: ticket},
			e.donePublished(ctx, m.GetName(), func(v *actors.View) bool { return v.State.Removing || v.State.Answered >= ticket }))
	case *messages.ReconnectServer:
		e.wish(ctx, m.GetName(), lifecycle.Reconnect{Ticket: e.m.shared.tickets.Add(1)}, e.done(ctx))
	case *messages.ProvideCredentials:
		e.provide(ctx, m)
	case *messages.SetServers:
		e.setServers(ctx, m)
	case *messages.CallTool:
		e.call(ctx, m)
	case callEnded:
		e.callEnded(m)
	case forgetDue:
		e.forget = nil
		e.ended.expire(time.Now())
		e.forgetLater()
	case *messages.GetStatus:
		e.status(ctx, m)
	case *messages.ListTools:
		e.tools(ctx, m)
	case *messages.Watch:
		e.watch(ctx, m)
	case *messages.Unwatch:
		e.unwatch(ctx.Sender())
		e.answer(ctx.Sender(), &messages.Done{})
	default:
		_ = e.read(ctx) || e.handle(ctx)
	}
}

// answer replies, if anybody asked.
func (e *entry) answer(to *actor.PID, reply proto.Message) {
	if to != nil {
		e.root.Send(to, reply)
	}
}

func (e *entry) forward(ctx actor.Context, command any) {
	ctx.Send(e.m.pid, command)
}

// wish forwards a wish about one server.
func (e *entry) wish(ctx actor.Context, name string, event lifecycle.Event, reply func(error)) {
	e.forward(ctx, wish{name, event, e.told(ctx, wished(name, event), reply)})
}

// told is reply, which records the change as well.
func (e *entry) told(ctx actor.Context, r audit.Record, reply func(error)) func(error) {
	if e.m.audit == nil {
		return reply
	}
	return e.m.audit.told(bySender(ctx), r, reply)
}

func (e *entry) done(ctx actor.Context) func(error) {
	to := ctx.Sender()
	return func(err error) { e.answer(to, &messages.Done{Failure: messages.FailureOf(err)}) }
}

// donePublished answers when the server's tools are out of the catalog as well.
func (e *entry) donePublished(ctx actor.Context, name string, hidden func(*actors.View) bool) func(error) {
	to, m := ctx.Sender(), e.m
	cell := m.shared.cell(name)
	return func(err error) {
		if err != nil || cell == nil {
			e.answer(to, &messages.Done{Failure: messages.FailureOf(err)})
			return
		}
		go func() {
			wait, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := cell.Wait(wait, hidden)
			if err == nil {
				err = m.published(wait, "disable")
			}
			e.answer(to, &messages.Done{Failure: messages.FailureOf(err)})
		}()
	}
}

// provide answers when the token is in its place; connecting goes on. An AuthProvider may block, so this runs beside the
// mailbox.
func (e *entry) provide(ctx actor.Context, m *messages.ProvideCredentials) {
	sender := bySender(ctx)
	to, done, manager := ctx.Sender(), &messages.Done{Failure: messages.FailureOf(&Error{Op: "authorize",
		Class: messages.ClassPanic, Text: "a defect of mcpvisor"})}, e.m
	go func() {
		defer func() {
			_ = recover() // the failure above tells it
			e.answer(to, done)
		}()
		err := manager.provide(sender, m.GetServer(), m.GetToken())
		done.Failure = messages.FailureOf(err)
		cell := manager.shared.cell(m.GetServer())
		if err != nil || cell == nil {
			return
		}
		if phase := cell.View().State.Phase; phase == messages.Failed || phase == messages.NeedsAuth {
			manager.send(wish{m.GetServer(), lifecycle.Reconnect{Ticket: manager.shared.tickets.Add(1)}, func(error) {}})
		}
	}()
}

func (e *entry) setServers(ctx actor.Context, m *messages.SetServers) {
	specs := make(map[string]Spec, len(m.GetServers()))
	for name, s := range m.GetServers() {
		specs[name] = s.ToSpec()
	}
	to := ctx.Sender()
	e.forward(ctx, setServers{specs, e.m.audit.replaced(bySender(ctx), func(res SetServersResult, err error) {
		e.answer(to, &messages.SetServersReply{Added: res.Added, Removed: res.Removed, Errors: res.Errors,
			Adjusted: res.Adjusted, Kept: res.Kept, Failure: messages.FailureOf(err)})
	})})
}

// call runs a tool beside the mailbox. A call id that was seen before is answered with the reply of the first, when that
// has ended.
func (e *entry) call(ctx actor.Context, m *messages.CallTool) {
	to, id := ctx.Sender(), m.GetCallId()
	if known := e.calls[id]; id != "" && known != nil {
		if to != nil {
			known.waiting = append(known.waiting, to)
		}
		return
	}
	if reply := e.ended.reply(id, time.Now()); id != "" && reply != nil {
		e.answer(to, reply)
		return
	}
	if e.inFlight >= maxActorCalls {
		e.answer(to, callReply(id, nil, &Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted,
			Text: fmt.Sprintf("%d calls by message are in flight already", maxActorCalls), Fix: "send it again later"}))
		return
	}
	e.inFlight++
	if id != "" {
		e.calls[id] = &actorCall{}
	}
	root, self, manager, sender := e.root, e.self, e.m, bySender(ctx)
	go func() {
		reply := callReply(id, nil, &Error{Op: "call", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a defect of mcpvisor ended the call"})
		defer func() {
			_ = recover() // the reply above tells it
			root.Send(self, callEnded{id, reply, to})
		}()
		wait, cancel := remaining(m.GetTimeoutMs())
		defer cancel()
		wait = messages.WithCaller(wait, m.GetCaller())
		if manager.audit != nil {
			wait = audit.WithVia(wait, sender.via, sender.from)
		}
		opts, finish := e.wishes(root, m, to)
		var res *Result
		var err error
		if m.GetServer() != "" {
			res, err = manager.CallServerTool(wait, m.GetServer(), m.GetTool(), m.GetArguments(), opts...)
		} else {
			res, err = manager.CallTool(wait, m.GetTool(), m.GetArguments(), opts...)
		}
		finish()
		reply = callReply(id, res, err)
	}()
}

// wishes are the options of a call by message. finish tells the rest of its progress.
func (*entry) wishes(root *actor.RootContext, m *messages.CallTool, to *actor.PID) (opts []CallOption, finish func()) {
	finish = func() {}
	if len(m.GetMeta()) > 0 {
		opts = append(opts, WithMeta(m.GetMeta()))
	}
	if m.GetProgress() && to != nil {
		p := &progressTo{id: m.GetCallId(), tell: func(c *messages.CallProgress) { root.Send(to, c) }}
		opts, finish = append(opts, WithProgress(p.say)), p.end
	}
	return opts, finish
}

func callReply(id string, res *Result, err error) *messages.CallToolReply {
	r := &messages.CallToolReply{CallId: id, Outcome: string(messages.OutcomeOf(err)), Failure: messages.FailureOf(err)}
	if res != nil {
		r.Outcome, r.Result = string(res.Outcome()), res.Raw
	}
	return r
}

func (e *entry) callEnded(m callEnded) {
	e.inFlight--
	e.answer(m.to, m.reply)
	c := e.calls[m.id]
	if m.id == "" || c == nil {
		return
	}
	for _, to := range c.waiting {
		e.answer(to, m.reply)
	}
	delete(e.calls, m.id)
	e.ended.add(m.reply, time.Now())
	e.forgetLater()
}

// forgetLater has what is remembered of calls forgotten in time, also when nobody calls any more.
func (e *entry) forgetLater() {
	at := e.ended.next()
	if at.IsZero() || e.forget != nil {
		return
	}
	root, self := e.root, e.self
	e.forget = time.AfterFunc(time.Until(at), func() { root.Send(self, forgetDue{}) })
}

func (e *entry) status(ctx actor.Context, m *messages.GetStatus) {
	reply := &messages.StatusReply{}
	if len(m.GetNames()) == 0 {
		for _, st := range e.m.Status() {
			reply.Servers = append(reply.Servers, st.ToProto())
		}
	}
	for _, name := range m.GetNames() {
		st, err := e.m.ServerStatus(name)
		if err != nil {
			reply.Failure = messages.FailureOf(err)
			continue
		}
		reply.Servers = append(reply.Servers, st.ToProto())
	}
	e.answer(ctx.Sender(), reply)
}

func (e *entry) tools(ctx actor.Context, m *messages.ListTools) {
	snapshot := e.m.Tools()
	reply := &messages.ToolsReply{Generation: snapshot.Generation()}
	add := func(t *Entry) {
		reply.Tools = append(reply.Tools, &messages.ToolEntry{QualifiedName: t.Name, Server: t.Tool.Server, Name: t.Tool.Name,
			State: t.State.String(), Definition: t.Tool.Raw})
	}
	if len(m.GetServers()) == 0 {
		for t := range snapshot.All() {
			add(t)
		}
	}
	for _, name := range m.GetServers() {
		if e.m.shared.cell(name) == nil {
			reply.Failure = messages.FailureOf(unknownServer("list tools", name))
			continue
		}
		for _, t := range snapshot.Server(name) {
			add(t)
		}
	}
	e.answer(ctx.Sender(), reply)
}

func (e *entry) watch(ctx actor.Context, m *messages.Watch) {
	to := ctx.Sender()
	if to == nil {
		return // nobody to tell
	}
	e.unwatch(to)
	wait, cancel := context.WithCancel(context.Background())
	w := &actorWatch{watcher: e.m.Watch(int(min(m.GetBuffer(), 1<<16))), pid: to, cancel: cancel}
	e.watchers[to.String()] = w
	ctx.Watch(to)
	e.answer(to, &messages.Done{})
	root := e.root
	go func() { // ends with the watcher: unwatch, the subscriber's end, or the manager's
		defer func() { _ = recover() }()
		for event := range w.watcher.Events(wait) {
			root.Send(to, event.ToProto())
		}
	}()
}

func (e *entry) unwatch(pid *actor.PID) {
	if pid == nil {
		return
	}
	if w := e.watchers[pid.String()]; w != nil {
		w.end()
		delete(e.watchers, pid.String())
	}
}

func (w *actorWatch) end() {
	w.watcher.Close()
	w.cancel()
}
