package actorsystem

import (
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// ProgramPanic is the reason for the end of an actor that a middleware of the program (Config.ActorOptions) has ended: what it panicked
// with, or what it did.
type ProgramPanic struct{ Reason any }

// guardedMiddleware tells whose panic ends an actor: before is put before the middleware of the program, behind is put behind them. A
// message that the program's do not pass on ends the actor as well, because an actor that misses one waits for ever. Its end is always
// handled by the actor itself: without it no successor could come, and the manager could not close.
type guardedMiddleware struct {
	// passed says how far the message that is handled now has come.
	passed passage
}

// passage is how far a message has come.
type passage int

const (
	withProgram passage = iota
	inActor
	handled
)

// before calls the program's middleware for each message.
func (g *guardedMiddleware) before(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
		g.passed = withProgram
		failure := g.callProgram(next, c, e)
		switch e.Message.(type) {
		case *actor.Stopping, *actor.Stopped:
			if failure != nil {
				c.ActorSystem().Logger().Error("a middleware of the program (Config.ActorOptions) did not let an actor end in order",
					slog.String("actor", c.Self().GetId()), slog.String("panic", fmt.Sprint(failure.Reason)))
			}
			if g.passed == withProgram {
				c.Receive(e)
			}
		default:
			if failure == nil && g.passed == withProgram {
				failure = &ProgramPanic{fmt.Sprintf("it did not pass on a %T", e.Message)}
			}
			if failure != nil {
				panic(*failure)
			}
		}
	}
}

// behind notes that the program's middleware has passed the message on.
func (g *guardedMiddleware) behind(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
		g.passed = inActor
		next(c, e)
		g.passed = handled
	}
}

// callProgram returns the panic of the program's middleware, nil if there was none. A panic of the actor itself goes on.
func (g *guardedMiddleware) callProgram(next actor.ReceiverFunc, c actor.ReceiverContext, e *actor.MessageEnvelope) (failure *ProgramPanic) {
	hasReturned := false
	defer func() {
		if !hasReturned && g.passed != inActor {
			failure = &ProgramPanic{recover()}
		}
	}()
	next(c, e)
	hasReturned = true
	return nil
}
