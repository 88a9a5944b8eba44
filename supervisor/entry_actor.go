package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/core"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/requests"
)

// maxActorCalls bounds the calls and reads by message that run at once; one more is replied to as not sent.
const maxActorCalls = 4096

// entryActor is the actor to which other actors send the commands of package messages. It translates each command, forwards it to
// the supervisor in the order of arrival, and replies to the sender exactly once. Tool calls and reads run in goroutines of their
// own, so that its turn never waits. All fields belong to the actor; what its goroutines need is copied before they start.
type entryActor struct {
	entryOptions
	root *actor.RootContext
	self *actor.PID

	watchers map[string]*actorWatch // by the subscriber's address and id: one watch each
	// inFlight counts the goroutines of calls and reads, at most maxActorCalls; open has them.
	inFlight    int
	open        map[*openRequest]bool
	calls       map[string]*actorCall // that run, by call id; calls without an id are not listed
	endedCalls  replyCache            // by call id
	forgetTimer *time.Timer           // for the oldest of endedCalls; nil while it is not armed

	handlers map[string]*handlerActor // by the actor's address and id
	// pending has the servers' requests that a handler has not answered, by the id that it was sent; at most maxPendingRequests.
	pending map[uint64]*pendingRequest
	stopped chan struct{} // closed when the actor ends: session goroutines stop waiting

	// ending is set when the manager is closed and the actor waits for its requests, until endTimer.
	ending   bool
	endTimer *time.Timer
}

// actorCall is a call by message that runs. waiters are the senders that have repeated its id; they get the same reply.
type actorCall struct{ waiters []requester }

// actorWatch is the subscription of one actor. cancel ends the goroutine that sends it events.
type actorWatch struct {
	watcher *actors.Watcher
	pid     *actor.PID
	cancel  context.CancelFunc
}

// callEnded carries a call's reply from its goroutine back to the actor.
type callEnded struct {
	request *openRequest
	id      string
	reply   *messages.CallToolReply
}

// forgetDue is the message of forgetTimer: remembered calls may have expired.
type forgetDue struct{}

// entryOptions holds the parts of the manager that an entry actor uses.
type entryOptions struct {
	// supervisor is the supervisor's actor, to which commands are forwarded, and shared what it publishes.
	supervisor *actor.PID
	shared     *core.Shared
	// requests gets the kinds of servers' requests that other actors answer, and the way to them.
	requests *requests.Handler
	// audit records commands with their senders; nil records nothing.
	audit  *auditor.Auditor
	log    *zap.Logger
	facade entryFacade
	// closeManager begins to close the manager, unless that has begun; emptied is closed when its last server is gone.
	closeManager func()
	emptied      <-chan struct{}
	// ended is closed when the actor has ended.
	ended chan struct{}
}

// entryFacade has the methods that other actors may ask of the manager beside commands to the supervisor.
type entryFacade interface {
	Status() []messages.Status
	ServerStatus(name string) (messages.Status, error)
	Tools() *catalog.Snapshot
	// ToolsOfCaller returns what the caller of ctx may call of a snapshot.
	ToolsOfCaller(ctx context.Context, s *catalog.Snapshot) []*catalog.Entry
	Watch(buffer int) *actors.Watcher
	History(name string) ([]HistoryEntry, error)
	Logs(server string) []LogLine
	Permissions() access.Rules
	Ping(ctx context.Context, server string) (time.Duration, error)
	Resources(ctx context.Context, servers ...string) ([]messages.Resource, error)
	ResourceTemplates(ctx context.Context, servers ...string) ([]messages.ResourceTemplate, error)
	Prompts(ctx context.Context, servers ...string) ([]messages.Prompt, error)
	SubscribeResource(ctx context.Context, server, uri string) error
	UnsubscribeResource(ctx context.Context, server, uri string) error
	Complete(ctx context.Context, server string, r messages.CompleteRequest) (messages.Completion, error)

	// CallTool runs a tool and returns how it ended with the server's own bytes. progress is nil if the sender wants none.
	CallTool(ctx context.Context, c *messages.CallTool, progress func(messages.Progress)) (messages.Outcome, json.RawMessage, error)
	// ReadResource and GetPrompt return the server that answered, with its own bytes.
	ReadResource(ctx context.Context, c *messages.ReadResource) (server string, result json.RawMessage, err error)
	GetPrompt(ctx context.Context, c *messages.GetPrompt) (server string, result json.RawMessage, err error)
	// Reload makes the manager read its files now.
	Reload(ctx context.Context) *messages.ReloadReply
	// ProvideToken makes the next requests of a server carry a token.
	ProvideToken(caller auditor.Caller, server, token string) error
	// AwaitCatalog returns when the catalog shows every change that servers have sent so far.
	AwaitCatalog(ctx context.Context, op string) error
}

func newEntryActor(o entryOptions) *entryActor {
	return &entryActor{entryOptions: o, watchers: map[string]*actorWatch{}, calls: map[string]*actorCall{}, open: map[*openRequest]bool{},
		handlers: map[string]*handlerActor{}, pending: map[uint64]*pendingRequest{}, stopped: make(chan struct{})}
}

// Receive implements actor.Actor. A panic loses the one message and is logged; the actor keeps its state. Commands that
// change servers are only forwarded here, so that they reach the supervisor in the order of arrival.
func (e *entryActor) Receive(ctx actor.Context) {
	defer func() {
		if r := recover(); r != nil {
			e.log.Error("panic in the entry actor; the message that caused it is lost", zap.Any("panic", r),
				zap.String("message", fmt.Sprintf("%T", ctx.Message())), zap.ByteString("stack", debug.Stack()))
		}
	}()
	switch m := ctx.Message().(type) {
	case *actor.Started:
		e.root, e.self = ctx.ActorSystem().Root, ctx.Self()
		// From here on the goroutines of sessions can reach handlers of server requests through this actor.
		e.requests.SetActor(e.askHandler)
	// Who stops this actor closes the manager. Its end is reported when it has returned from here, so that it comes when the last
	// server is gone. The requests that block goroutines of sessions are refused before.
	case *actor.Stopping:
		e.refusePending()
		e.closeManager()
		<-e.emptied
		e.refuseOpen()
	case *actor.Restarting:
		e.refuseOpen()
	case *actor.Stopped:
		defer close(e.ended)
		if e.forgetTimer != nil {
			e.forgetTimer.Stop()
		}
		for _, w := range e.watchers {
			w.closeWatch()
		}
	// The library reports the end of every actor that this one watches: subscribers and handlers.
	case *actor.Terminated:
		e.removeWatch(m.Who)
		e.dismissHandler(m.Who)
	case *messages.AddServer:
		// The reply comes when the spec is accepted; the sender watches the status for the attempt.
		e.forwardCommand(ctx, core.AddServer{Name: m.GetName(), Spec: m.GetSpec().ToSpec(), Ticket: e.shared.NextTicket(), Early: true,
			Reply: e.recordingReply(ctx, auditor.AddedRecord(m.GetName(), m.GetSpec().ToSpec()), e.doneReplier(ctx))})
	case *messages.RemoveServer:
		removal := core.RemoveServer{Name: m.GetName(), Ticket: new(uint64)}
		removal.Reply = e.recordingReply(ctx, audit.Record{Change: "remove", Server: m.GetName()}, e.publishedReplier(ctx, m.GetName(), removal.IsUnreachable))
		e.forwardCommand(ctx, removal)
	case *messages.EnableServer:
		e.commandServer(ctx, m.GetName(), lifecycle.Enable{Ticket: e.shared.NextTicket()}, e.doneReplier(ctx))
	// The ticket distinguishes the disabled view from one of an earlier command.
	case *messages.DisableServer:
		ticket := e.shared.NextTicket()
		e.commandServer(ctx, m.GetName(), lifecycle.Disable{Cold: m.GetDisconnect(), Ticket: ticket},
			e.publishedReplier(ctx, m.GetName(), func(v *actors.View) bool { return v.State.Removing || v.State.Answered >= ticket }))
	case *messages.ReconnectServer:
		e.commandServer(ctx, m.GetName(), lifecycle.Reconnect{Ticket: e.shared.NextTicket()}, e.doneReplier(ctx))
	case *messages.ProvideCredentials:
		e.provideToken(ctx, m)
	case *messages.SetServers:
		e.setServers(ctx, m)
	// Calls run beside the mailbox, so a slow tool delays no command.
	case *messages.CallTool:
		e.runCall(ctx, m)
	case callEnded:
		e.handleCallEnded(m)
	case endDue:
		e.handleEndDue(ctx, m)
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
		e.sendReply(requesterOf(ctx), &messages.Done{})
	default:
		if !e.receiveRead(ctx) && !e.receiveHandling(ctx) {
			e.refuseUnknown(ctx)
		}
	}
}

// forwardCommand sends a command to the supervisor. Its reply function runs in the supervisor's turn.
func (e *entryActor) forwardCommand(ctx actor.Context, command any) {
	ctx.Send(e.supervisor, command)
}

// commandServer forwards a command about one server; the audit log gets a record of it when the supervisor accepts or refuses it.
func (e *entryActor) commandServer(ctx actor.Context, name string, event lifecycle.Event, reply func(error)) {
	e.forwardCommand(ctx, core.ServerCommand{Name: name, Event: event, Reply: e.recordingReply(ctx, auditor.CommandRecord(name, event), reply)})
}

// recordingReply returns a reply function that records the change before it replies. Without an audit log the sender need not be
// described.
func (e *entryActor) recordingReply(ctx actor.Context, r audit.Record, reply func(error)) func(error) {
	if e.audit == nil {
		return reply
	}
	return e.audit.RecordingReply(auditor.CallerFromSender(ctx), r, reply)
}

// doneReplier returns a reply function that sends Done. The sender is taken now: ctx belongs to this turn.
func (e *entryActor) doneReplier(ctx actor.Context) func(error) {
	to := requesterOf(ctx)
	return func(err error) { e.sendReply(to, &messages.Done{Failure: messages.FailureOf(err)}) }
}

// publishedReplier returns a reply function that sends Done when the server's tools are out of the catalog, at the latest after
// 10 s with an error. hidden recognises the view that shows the command's effect. The cell is taken now, because a removed server
// has none later.
func (e *entryActor) publishedReplier(ctx actor.Context, name string, hidden func(*actors.View) bool) func(error) {
	to, facade := requesterOf(ctx), e.facade
	// The wait must see the cell of the server that the command was for.
	cell := e.shared.CellOf(name)
	return func(err error) {
		if err != nil || cell == nil {
			e.sendReply(to, &messages.Done{Failure: messages.FailureOf(err)})
			return
		}
		// The reply function runs in the supervisor's turn, which must not wait.
		go func() {
			// The bound is for a server's actor that hangs; it normally takes milliseconds.
			wait, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := cell.Wait(wait, hidden)
			if err == nil {
				err = facade.AwaitCatalog(wait, "disable")
			}
			e.sendReply(to, &messages.Done{Failure: messages.FailureOf(err)})
		}()
	}
}

// provideToken replies when the token is in use; the attempt to connect that follows is not waited for. It runs in a goroutine,
// because an AuthProvider may block. done holds the failure of a panic until the work has succeeded.
func (e *entryActor) provideToken(ctx actor.Context, m *messages.ProvideCredentials) {
	sender := auditor.CallerFromSender(ctx)
	to, done := requesterOf(ctx), &messages.Done{Failure: messages.FailureOf(&messages.Error{Op: "authorize",
		Class: messages.ClassPanic, Text: "a defect of mcpvisor"})}
	root, supervisor, shared, facade := e.root, e.supervisor, e.shared, e.facade
	go func() {
		defer func() {
			_ = recover() // done says so already
			e.sendReply(to, done)
		}()
		err := facade.ProvideToken(sender, m.GetServer(), m.GetToken())
		done.Failure = messages.FailureOf(err)
		cell := shared.CellOf(m.GetServer())
		if err != nil || cell == nil {
			return
		}
		// A server that works is not reconnected: it uses the token with its next request.
		if phase := cell.View().State.Phase; phase == messages.Failed || phase == messages.NeedsAuth {
			root.Send(supervisor, core.ServerCommand{Name: m.GetServer(), Event: lifecycle.Reconnect{Ticket: shared.NextTicket()}, Reply: func(error) {}})
		}
	}()
}

// setServers forwards a whole set of runtime servers, and translates the reply.
func (e *entryActor) setServers(ctx actor.Context, m *messages.SetServers) {
	// The message may be shared with its sender on this machine, so the specs are copied.
	specs := make(map[string]messages.Spec, len(m.GetServers()))
	for name, s := range m.GetServers() {
		specs[name] = s.ToSpec()
	}
	to := requesterOf(ctx)
	e.forwardCommand(ctx, core.SetServers{Specs: specs, Reply: e.audit.RecordingSetReply(auditor.CallerFromSender(ctx), func(res messages.SetServersResult, err error) {
		reply := res.ToProto()
		reply.Failure = messages.FailureOf(err)
		e.sendReply(to, reply)
	})})
}

// runCall runs a tool in a goroutine. A call id that was used before does not run again: if that call still runs, the sender waits
// with it; if it has ended, the sender gets its reply. So a sender that lost a reply may repeat its message safely. When too many
// calls run, the reply says not sent, and the sender may repeat it.
func (e *entryActor) runCall(ctx actor.Context, m *messages.CallTool) {
	to, id := requesterOf(ctx), m.GetCallId()
	// The first sender and all that repeat the id get one reply each.
	if known := e.calls[id]; id != "" && known != nil {
		if to.pid != nil {
			known.waiters = append(known.waiters, to)
		}
		return
	}
	if reply := e.endedCalls.findReply(id, time.Now()); id != "" && reply != nil {
		e.sendReply(to, reply)
		return
	}
	if e.inFlight >= maxActorCalls {
		e.sendReply(to, callReply(id, "", nil, &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted,
			Text: fmt.Sprintf("%d calls by message are in flight already", maxActorCalls), Fix: "send it again later"}))
		return
	}
	request := e.addRequest(to, func(err error) proto.Message { return callReply(id, "", nil, err) })
	if id != "" {
		e.calls[id] = &actorCall{}
	}
	// The goroutine must not touch the actor's fields, which change with later messages.
	root, self, facade, audited, sender := e.root, e.self, e.facade, e.audit != nil, auditor.CallerFromSender(ctx)
	go func() {
		// The goroutine sends callEnded exactly once, also after a panic: the request would stay open otherwise.
		reply := callReply(id, "", nil, &messages.Error{Op: "call", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a defect of mcpvisor ended the call"})
		defer func() {
			_ = recover() // reply says so already
			root.Send(self, callEnded{request, id, reply})
		}()
		wait, cancel := timeoutContext(m.GetTimeoutMs())
		defer cancel()
		// The caller's name decides about the order in a server's queue.
		wait = messages.WithCaller(wait, m.GetCaller())
		if audited {
			wait = audit.WithVia(wait, sender.Via, sender.Sender)
		}
		progress, finish := progressOf(root, m, to.pid)
		outcome, result, err := facade.CallTool(wait, m, progress)
		finish()
		reply = callReply(id, outcome, result, err)
	}()
}

// progressOf returns the function that gets the progress of a call by message, nil if the sender wants none. finish sends the rest,
// so that the last progress message comes before the reply.
func progressOf(root *actor.RootContext, m *messages.CallTool, to *actor.PID) (progress func(messages.Progress), finish func()) {
	if !m.GetProgress() || to == nil {
		return nil, func() {}
	}
	// Progress is sent to the first sender only: those that repeat the id wait for the reply.
	p := &progressSender{id: m.GetCallId(), post: func(c *messages.CallProgress) { root.Send(to, c) }}
	return p.addProgress, p.endProgress
}

// callReply translates the end of a call. The result travels as the server's own bytes.
func callReply(id string, outcome messages.Outcome, result json.RawMessage, err error) *messages.CallToolReply {
	if err != nil {
		outcome = messages.OutcomeOf(err)
	}
	return &messages.CallToolReply{CallId: id, Outcome: string(outcome), Result: result, Failure: messages.FailureOf(err)}
}

// handleCallEnded replies to the sender and to those that repeated its id, and remembers the reply under the id.
func (e *entryActor) handleCallEnded(m callEnded) {
	if !e.endRequest(m.request) {
		return
	}
	e.sendReply(m.request.to, m.reply)
	c := e.calls[m.id]
	if m.id == "" || c == nil {
		return
	}
	for _, to := range c.waiters {
		e.sendReply(to, m.reply)
	}
	// From here on a repeated id is answered from endedCalls.
	delete(e.calls, m.id)
	e.endedCalls.addReply(m.reply, time.Now())
	e.forgetLater()
}

// forgetLater arms the timer for the oldest remembered call, so that replies are freed even if no further message arrives.
func (e *entryActor) forgetLater() {
	at := e.endedCalls.nextExpiry()
	if at.IsZero() || e.forgetTimer != nil {
		return
	}
	root, self := e.root, e.self
	e.forgetTimer = time.AfterFunc(time.Until(at), func() { root.Send(self, forgetDue{}) })
}

// replyStatus replies with the published states. For an unknown name the failure is set, and the known servers are listed all
// the same.
func (e *entryActor) replyStatus(ctx actor.Context, m *messages.GetStatus) {
	reply := &messages.StatusReply{}
	if len(m.GetNames()) == 0 {
		for _, st := range e.facade.Status() {
			reply.Servers = append(reply.Servers, st.ToProto())
		}
	}
	for _, name := range m.GetNames() {
		st, err := e.facade.ServerStatus(name)
		if err != nil {
			reply.Failure = messages.FailureOf(err)
			continue
		}
		reply.Servers = append(reply.Servers, st.ToProto())
	}
	e.sendReply(requesterOf(ctx), reply)
}

// replyTools replies from one snapshot, whose generation it names: the sender can tell which of two replies is newer. For a caller
// it replies in the background with what that one may call, because Config.Allow is asked.
func (e *entryActor) replyTools(ctx actor.Context, m *messages.ListTools) {
	facade, snapshot := e.facade, e.facade.Tools()
	if m.GetCaller() != "" {
		e.runInBackground(ctx, 0, func(err error) proto.Message { return &messages.ToolsReply{Failure: messages.FailureOf(err)} },
			func(ctx context.Context) proto.Message {
				own := slices.DeleteFunc(facade.ToolsOfCaller(ctx, snapshot), func(t *catalog.Entry) bool {
					return len(m.GetServers()) > 0 && !slices.Contains(m.GetServers(), t.Tool.Server)
				})
				return e.toolsReply(m, snapshot, slices.Values(own))
			})
		return
	}
	all := snapshot.All()
	if len(m.GetServers()) > 0 {
		all = func(yield func(*catalog.Entry) bool) {
			for _, name := range m.GetServers() {
				for _, t := range snapshot.Server(name) {
					if !yield(t) {
						return
					}
				}
			}
		}
	}
	e.sendReply(requesterOf(ctx), e.toolsReply(m, snapshot, all))
}

// toolsReply has these tools of a snapshot. The failure says which named server is unknown. Any goroutine may call it.
func (e *entryActor) toolsReply(m *messages.ListTools, snapshot *catalog.Snapshot, all iter.Seq[*catalog.Entry]) *messages.ToolsReply {
	reply := &messages.ToolsReply{Generation: snapshot.Generation()}
	for _, name := range m.GetServers() {
		if e.shared.CellOf(name) == nil {
			reply.Failure = messages.FailureOf(refusal.UnknownServerError("list tools", name))
		}
	}
	for t := range all {
		p := t.Tool.ToProto()
		p.QualifiedName, p.State = t.Name, t.State.String()
		reply.Tools = append(reply.Tools, p)
	}
	return reply
}

// addWatch begins a subscription, in the place of the sender's earlier one. The actor watches the subscriber, so that its end
// ends the subscription. The buffer is bounded at 65,536 events, because it is allocated on behalf of another machine.
func (e *entryActor) addWatch(ctx actor.Context, m *messages.Watch) {
	// A subscriber needs an address.
	if ctx.Sender() == nil {
		return // there is no address to send events to
	}
	to := uncached(ctx.Sender())
	// A second Watch of the same actor replaces the first, so that it gets each event once.
	e.removeWatch(to)
	wait, cancel := context.WithCancel(context.Background())
	w := &actorWatch{watcher: e.facade.Watch(int(min(m.GetBuffer(), 1<<16))), pid: to, cancel: cancel}
	e.watchers[to.String()] = w
	e.sendReply(requesterOf(ctx), &messages.Done{})
	// The library sends Terminated when the subscriber ends, also on another machine. It comes after the reply: see uncached.
	ctx.Watch(to)
	root := e.root
	go func() { // ends with the watcher: by Unwatch, the subscriber's end, or the manager's
		defer func() { _ = recover() }()
		for event := range w.watcher.Events(wait) {
			root.Send(to, event.ToProto())
		}
	}()
}

// removeWatch ends the subscription of an actor; nothing happens if it has none.
func (e *entryActor) removeWatch(pid *actor.PID) {
	if w := e.watchers[pid.String()]; w != nil {
		w.closeWatch()
		delete(e.watchers, pid.String())
	}
}

func (w *actorWatch) closeWatch() {
	// Both are needed: the watcher may have events to yield, and the context ends the loop before them.
	w.watcher.Close()
	w.cancel()
}
