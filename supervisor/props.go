package supervisor

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

// Serve runs a manager until ctx ends, and closes it then: what errgroup, suture and run groups start. started, unless it is nil, gets
// the manager once it runs, and must return soon. Serve returns the error of the start, that of the close, or the cause of ctx's end.
// It may be called again after it has returned.
func Serve(ctx context.Context, cfg Config, started func(*Manager)) error {
	m, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	// The close has its own bounds, and must go on although ctx has ended; it comes also if started panics.
	defer func() { _ = m.Close(context.WithoutCancel(ctx)) }()
	if started != nil {
		started(m)
	}
	select {
	case <-ctx.Done():
	case <-m.closed: // the program has closed it
	}
	if err := m.Close(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// Props makes a manager that is an actor like any other: the child of any actor, in any system, under any strategy. cfg.System does
// not count: the manager lives in the system of its parent.
//
//	pid := ctx.Spawn(supervisor.Props(supervisor.Config{Servers: specs}, nil))
//	ctx.Request(pid, &messages.CallTool{Tool: "mcp__files__read_file", Arguments: args})
//
// The PID is the manager: what PID of a [Manager] is sent, it handles, in the order in which it came. Poison and Stop close the manager,
// and Terminated comes when its last process is gone. A Config that cannot work is a failure of the actor, with the *Error as its reason:
// the parent's strategy decides. A restart closes the manager and starts another one with the servers of cfg; those that were added
// meanwhile are gone, and so are the watchers: an owner begins again when started gets the next manager. If the manager is closed by its
// method, the actor stops.
//
// started, unless it is nil, gets each manager that was started, in a goroutine of its own, and may take as long as it likes: it holds up
// neither commands nor the end, and may still run when its manager is closed and, after a restart, when the next one is started. Its panic
// is a failure of the actor.
//
// At most 1,000 messages wait for the start. One more, and a command to a manager that cannot start, gets its own reply with the failure.
func Props(cfg Config, started func(*Manager)) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		return &managerActor{cfg: cfg, started: started, ended: make(chan struct{})}
	})
}

// maxEarly bounds the messages that wait for the start of a managerActor.
const maxEarly = 1000

// managerActor is the actor of Props. It owns one manager from its start to its end, and passes on what it is sent.
type managerActor struct {
	cfg     Config
	started func(*Manager)

	// cancel ends the start. ended is closed when the goroutine of the start has returned; m is set then, unless the start failed.
	cancel context.CancelFunc
	ended  chan struct{}
	m      *Manager
	err    error

	// running is set once the actor has heard of the end of the start. early has the messages of before.
	running bool
	early   []earlyMessage
}

type earlyMessage struct {
	message any
	sender  *actor.PID
}

// startEnded says to a managerActor that its start has ended; starter is the actor whose start it was.
type startEnded struct{ starter *managerActor }

// startedPanicked says to a managerActor that its function started has panicked.
type startedPanicked struct {
	owner *managerActor
	err   error
}

// managerClosed says to a managerActor that its manager was closed.
type managerClosed struct{ owner *managerActor }

// Receive implements actor.Actor. Stopping and Restarting wait for the end of the manager, because an actor's end is when they return:
// only this actor's own mailbox waits meanwhile.
func (a *managerActor) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started:
		a.startManager(ctx)
	case *actor.Stopping, *actor.Restarting:
		a.closeManager(ctx)
	case *actor.Stopped:
	case startEnded:
		// The message of an incarnation before this one is stale.
		if msg.starter == a {
			a.handleStarted(ctx)
		}
	case startedPanicked:
		if msg.owner == a {
			panic(msg.err)
		}
	case managerClosed:
		if msg.owner == a {
			ctx.Stop(ctx.Self())
		}
	default:
		a.forwardMessage(ctx)
	}
}

// startManager starts the manager in a goroutine of its own: a store of credentials or a function of the program may block.
func (a *managerActor) startManager(ctx actor.Context) {
	self, system := ctx.Self(), ctx.ActorSystem()
	a.cfg.System = system
	starting, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	go func() {
		defer close(a.ended)
		defer func() {
			if r := recover(); r != nil {
				a.err = panicError(r)
			}
			system.Root.Send(self, startEnded{a})
		}()
		m, err := Start(starting, a.cfg)
		if err != nil {
			a.err = err
			return
		}
		a.m = m
	}()
}

// runStarted calls the program's function, in a goroutine that ends with it. Nothing waits for that.
func (a *managerActor) runStarted(root *actor.RootContext, self *actor.PID) {
	defer func() {
		if r := recover(); r != nil {
			root.Send(self, startedPanicked{a, panicError(r)})
		}
	}()
	a.started(a.m)
}

func panicError(r any) error {
	return &Error{Op: "start", Class: messages.ClassPanic, Text: "panic: " + messages.Line(fmt.Sprint(r), 200)}
}

// handleStarted passes on what came before the start had ended, or fails with the error of the start.
func (a *managerActor) handleStarted(ctx actor.Context) {
	<-a.ended // it ends with the message; the fields below are read after it
	a.running = true
	if a.err != nil {
		for _, e := range a.early {
			answerWith(ctx, e, a.err)
		}
		a.early = nil
		panic(a.err)
	}
	root := ctx.ActorSystem().Root
	if a.started != nil {
		go a.runStarted(root, ctx.Self())
	}
	for _, e := range a.early {
		root.RequestWithCustomSender(a.m.PID(), e.message, e.sender)
	}
	a.early = nil
	self, m := ctx.Self(), a.m
	go func() {
		<-m.closed
		root.Send(self, managerClosed{a})
	}()
}

// forwardMessage gives the manager a message as it came, with its sender.
func (a *managerActor) forwardMessage(ctx actor.Context) {
	switch {
	case a.running && a.err == nil:
		ctx.Forward(a.m.PID())
	case a.running || len(a.early) == maxEarly:
		a.answerFailure(ctx, earlyMessage{ctx.Message(), ctx.Sender()})
	default:
		a.early = append(a.early, earlyMessage{ctx.Message(), ctx.Sender()})
	}
}

// answerFailure tells the sender of a message that it is not handled.
func (a *managerActor) answerFailure(ctx actor.Context, e earlyMessage) {
	err := a.err
	if err == nil {
		err = &Error{Op: "start", Class: messages.ClassExhausted, Outcome: messages.OutcomeNotSent,
			Text: fmt.Sprintf("the manager is starting, and %d messages wait for it", maxEarly), Fix: "send it again later"}
	}
	answerWith(ctx, e, err)
}

// answerWith sends the reply to a message that ended with err to its sender, if there are both.
func answerWith(ctx actor.Context, e earlyMessage, err error) {
	switch e.message.(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage, *actor.DeadLetterResponse:
		return
	}
	if reply := refusal.ReplyTo(e.message, err); e.sender != nil && reply != nil {
		ctx.Send(e.sender, reply)
	}
}

// closeManager closes the manager and waits until nothing of it is left. What still waited for its start is answered.
func (a *managerActor) closeManager(ctx actor.Context) {
	for _, e := range a.early {
		answerWith(ctx, e, refusal.ClosedError("receive"))
	}
	a.early = nil
	if a.cancel == nil {
		return
	}
	a.cancel()
	<-a.ended
	if a.m != nil {
		_ = a.m.Close(context.Background())
	}
}
