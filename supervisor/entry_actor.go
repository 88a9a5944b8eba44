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

// entryActor is the actor that other actors talk to. It translates each command, hands it to the supervisor in the order in
// which it came, and answers the sender exactly once. Tool calls run beside it: its own turn never waits.
type entryActor struct {
	m    *Manager
	root *actor.RootContext
	self *actor.PID

	watchers    map[string]*actorWatch // by the subscriber's address and id
	inFlight    int
	calls       map[string]*actorCall // in flight, by call id
	endedCalls  replyCache            // by call id
	forgetTimer *time.Timer           // for the oldest of those; nil while there is none

	handlers map[string]*handlerActor // by the actor's address and id
	pending  map[uint64]*pendingRequest
	stopped  chan struct{} // closed when the actor has ended
}

// actorCall is a call by message that is in flight: who waits for it beside its sender.
type actorCall struct{ waiters []*actor.PID }

type actorWatch struct {
	watcher *Watcher
	pid     *actor.PID
	cancel  context.CancelFunc
}

type callEnded struct {
	id     string
	reply  *messages.CallToolReply
	sender *actor.PID
}

// forgetDue says that what is remembered of calls may be old.
type forgetDue struct{}

func newEntryActor(m *Manager) *entryActor {
	return &entryActor{m: m, watchers: map[string]*actorWatch{}, calls: map[string]*actorCall{},
		handlers: map[string]*handlerActor{}, pending: map[uint64]*pendingRequest{}, stopped: make(chan struct{})}
}

// Receive implements actor.Actor. A panic costs the one message.
func (e *entryActor) Receive(ctx actor.Context) {
	defer func() {
		if r := recover(); r != nil {
			e.m.cfg.Logger.Error("panic in the entry actor; the message that caused it is lost", zap.Any("panic", r),
				zap.String("message", fmt.Sprintf("%T", ctx.Message())), zap.ByteString("stack", debug.Stack()))
		}
	}()
	switch m := ctx.Message().(type) {
	case *actor.Started:
		e.root, e.self = ctx.ActorSystem().Root, ctx.Self()
		ask := actorHandler(e.askHandler)
		e.m.cfg.requestHandler.actorHandler.Store(&ask)
	case *actor.Stopped:
		e.refusePending()
		if e.forgetTimer != nil {
			e.forgetTimer.Stop()
		}
		for _, w := range e.watchers {
			w.closeWatch()
		}
	case *actor.Terminated:
		e.removeWatch(m.Who)
		e.dismissHandler(m.Who)
	case *messages.AddServer:
		e.forwardCommand(ctx, addServer{name: m.GetName(), spec: m.GetSpec().ToSpec(), ticket: e.m.shared.tickets.Add(1), early: true,
			reply: e.recordingReply(ctx, addedRecord(m.GetName(), m.GetSpec().ToSpec()), e.doneReplier(ctx))})
	case *messages.RemoveServer:
		e.forwardCommand(ctx, removeServer{m.GetName(), e.recordingReply(ctx, audit.Record{Change: "remove", Server: m.GetName()},
			e.publishedReplier(ctx, m.GetName(), isUnreachable))})
	case *messages.EnableServer:
		e.commandServer(ctx, m.GetName(), lifecycle.Enable{Ticket: e.m.shared.tickets.Add(1)}, e.doneReplier(ctx))
	case *messages.DisableServer:
		ticket := e.m.shared.tickets.Add(1)
		e.commandServer(ctx, m.GetName(), lifecycle.Disable{Cold: m.GetDisconnect(), Ticket: ticket},
			e.publishedReplier(ctx, m.GetName(), func(v *actors.View) bool { return v.State.Removing || v.State.Answered >= ticket }))
	case *messages.ReconnectServer:
		e.commandServer(ctx, m.GetName(), lifecycle.Reconnect{Ticket: e.m.shared.tickets.Add(1)}, e.doneReplier(ctx))
	case *messages.ProvideCredentials:
		e.provideToken(ctx, m)
	case *messages.SetServers:
		e.setServers(ctx, m)
	case *messages.CallTool:
		e.runCall(ctx, m)
	case callEnded:
		e.handleCallEnded(m)
	case forgetDue:
		e.forgetTimer = nil
		e.endedCalls.expireOld(time.Now())
		e.forgetLater()
	case *messages.GetStatus:
		e.replyStatus(ctx, m)
	case *messages.ListTools:
		e.replyTools(ctx, m)
	case *messages.Watch:
		e.addWatch(ctx, m)
	case *messages.Unwatch:
		e.removeWatch(ctx.Sender())
		e.sendReply(ctx.Sender(), &messages.Done{})
	default:
		_ = e.receiveRead(ctx) || e.receiveHandling(ctx)
	}
}

// sendReply replies, if anybody asked.
func (e *entryActor) sendReply(to *actor.PID, reply proto.Message) {
	if to != nil {
		e.root.Send(to, reply)
	}
}

func (e *entryActor) forwardCommand(ctx actor.Context, command any) {
	ctx.Send(e.m.pid, command)
}

// commandServer forwards a wish about one server.
func (e *entryActor) commandServer(ctx actor.Context, name string, event lifecycle.Event, reply func(error)) {
	e.forwardCommand(ctx, serverCommand{name, event, e.recordingReply(ctx, commandRecord(name, event), reply)})
}

// recordingReply is reply, which records the change as well.
func (e *entryActor) recordingReply(ctx actor.Context, r audit.Record, reply func(error)) func(error) {
	if e.m.audit == nil {
		return reply
	}
	return e.m.audit.recordingReply(callerFromSender(ctx), r, reply)
}

func (e *entryActor) doneReplier(ctx actor.Context) func(error) {
	to := ctx.Sender()
	return func(err error) { e.sendReply(to, &messages.Done{Failure: messages.FailureOf(err)}) }
}

// publishedReplier answers when the server's tools are out of the catalog as well.
func (e *entryActor) publishedReplier(ctx actor.Context, name string, hidden func(*actors.View) bool) func(error) {
	to, m := ctx.Sender(), e.m
	cell := m.shared.cellOf(name)
	return func(err error) {
		if err != nil || cell == nil {
			e.sendReply(to, &messages.Done{Failure: messages.FailureOf(err)})
			return
		}
		go func() {
			wait, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := cell.Wait(wait, hidden)
			if err == nil {
				err = m.awaitCatalog(wait, "disable")
			}
			e.sendReply(to, &messages.Done{Failure: messages.FailureOf(err)})
		}()
	}
}

// provideToken answers when the token is in its place; connecting goes on. An AuthProvider may block, so this runs beside the
// mailbox.
func (e *entryActor) provideToken(ctx actor.Context, m *messages.ProvideCredentials) {
	sender := callerFromSender(ctx)
	to, done, manager := ctx.Sender(), &messages.Done{Failure: messages.FailureOf(&Error{Op: "authorize",
		Class: messages.ClassPanic, Text: "a defect of mcpvisor"})}, e.m
	go func() {
		defer func() {
			_ = recover() // the failure above tells it
			e.sendReply(to, done)
		}()
		err := manager.provideToken(sender, m.GetServer(), m.GetToken())
		done.Failure = messages.FailureOf(err)
		cell := manager.shared.cellOf(m.GetServer())
		if err != nil || cell == nil {
			return
		}
		if phase := cell.View().State.Phase; phase == messages.Failed || phase == messages.NeedsAuth {
			manager.sendCommand(serverCommand{m.GetServer(), lifecycle.Reconnect{Ticket: manager.shared.tickets.Add(1)}, func(error) {}})
		}
	}()
}

func (e *entryActor) setServers(ctx actor.Context, m *messages.SetServers) {
	specs := make(map[string]Spec, len(m.GetServers()))
	for name, s := range m.GetServers() {
		specs[name] = s.ToSpec()
	}
	to := ctx.Sender()
	e.forwardCommand(ctx, setServers{specs, e.m.audit.recordingSetReply(callerFromSender(ctx), func(res SetServersResult, err error) {
		e.sendReply(to, &messages.SetServersReply{Added: res.Added, Removed: res.Removed, Errors: res.Errors,
			Adjusted: res.Adjusted, Kept: res.Kept, Failure: messages.FailureOf(err)})
	})})
}

// runCall runs a tool beside the mailbox. A call id that was seen before is answered with the reply of the first, when that
// has ended.
func (e *entryActor) runCall(ctx actor.Context, m *messages.CallTool) {
	to, id := ctx.Sender(), m.GetCallId()
	if known := e.calls[id]; id != "" && known != nil {
		if to != nil {
			known.waiters = append(known.waiters, to)
		}
		return
	}
	if reply := e.endedCalls.findReply(id, time.Now()); id != "" && reply != nil {
		e.sendReply(to, reply)
		return
	}
	if e.inFlight >= maxActorCalls {
		e.sendReply(to, callReply(id, nil, &Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted,
			Text: fmt.Sprintf("%d calls by message are in flight already", maxActorCalls), Fix: "send it again later"}))
		return
	}
	e.inFlight++
	if id != "" {
		e.calls[id] = &actorCall{}
	}
	root, self, manager, sender := e.root, e.self, e.m, callerFromSender(ctx)
	go func() {
		reply := callReply(id, nil, &Error{Op: "call", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a defect of mcpvisor ended the call"})
		defer func() {
			_ = recover() // the reply above tells it
			root.Send(self, callEnded{id, reply, to})
		}()
		wait, cancel := timeoutContext(m.GetTimeoutMs())
		defer cancel()
		wait = messages.WithCaller(wait, m.GetCaller())
		if manager.audit != nil {
			wait = audit.WithVia(wait, sender.via, sender.sender)
		}
		opts, finish := e.callOptions(root, m, to)
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

// callOptions are the options of a call by message. finish tells the rest of its progress.
func (*entryActor) callOptions(root *actor.RootContext, m *messages.CallTool, to *actor.PID) (opts []CallOption, finish func()) {
	finish = func() {}
	if len(m.GetMeta()) > 0 {
		opts = append(opts, WithMeta(m.GetMeta()))
	}
	if m.GetProgress() && to != nil {
		p := &progressSender{id: m.GetCallId(), post: func(c *messages.CallProgress) { root.Send(to, c) }}
		opts, finish = append(opts, WithProgress(p.addProgress)), p.endProgress
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

func (e *entryActor) handleCallEnded(m callEnded) {
	e.inFlight--
	e.sendReply(m.sender, m.reply)
	c := e.calls[m.id]
	if m.id == "" || c == nil {
		return
	}
	for _, to := range c.waiters {
		e.sendReply(to, m.reply)
	}
	delete(e.calls, m.id)
	e.endedCalls.addReply(m.reply, time.Now())
	e.forgetLater()
}

// forgetLater has what is remembered of calls forgotten in time, also when nobody calls any more.
func (e *entryActor) forgetLater() {
	at := e.endedCalls.nextExpiry()
	if at.IsZero() || e.forgetTimer != nil {
		return
	}
	root, self := e.root, e.self
	e.forgetTimer = time.AfterFunc(time.Until(at), func() { root.Send(self, forgetDue{}) })
}

func (e *entryActor) replyStatus(ctx actor.Context, m *messages.GetStatus) {
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
	e.sendReply(ctx.Sender(), reply)
}

func (e *entryActor) replyTools(ctx actor.Context, m *messages.ListTools) {
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
		if e.m.shared.cellOf(name) == nil {
			reply.Failure = messages.FailureOf(unknownServer("list tools", name))
			continue
		}
		for _, t := range snapshot.Server(name) {
			add(t)
		}
	}
	e.sendReply(ctx.Sender(), reply)
}

func (e *entryActor) addWatch(ctx actor.Context, m *messages.Watch) {
	to := ctx.Sender()
	if to == nil {
		return // nobody to tell
	}
	e.removeWatch(to)
	wait, cancel := context.WithCancel(context.Background())
	w := &actorWatch{watcher: e.m.Watch(int(min(m.GetBuffer(), 1<<16))), pid: to, cancel: cancel}
	e.watchers[to.String()] = w
	ctx.Watch(to)
	e.sendReply(to, &messages.Done{})
	root := e.root
	go func() { // ends with the watcher: unwatch, the subscriber's end, or the manager's
		defer func() { _ = recover() }()
		for event := range w.watcher.Events(wait) {
			root.Send(to, event.ToProto())
		}
	}()
}

func (e *entryActor) removeWatch(pid *actor.PID) {
	if pid == nil {
		return
	}
	if w := e.watchers[pid.String()]; w != nil {
		w.closeWatch()
		delete(e.watchers, pid.String())
	}
}

func (w *actorWatch) closeWatch() {
	w.watcher.Close()
	w.cancel()
}
