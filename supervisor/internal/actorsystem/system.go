// Package actorsystem makes the actor system of a manager, and the props of its actors. The system logs to the manager's logger and
// never the content of a message, because a message may hold a spec with its secrets.
//
//	system := actorsystem.New(log)
//	props := actorsystem.PropsOf(nil, "registry", producer)
//
// # How it fits
//
// Package supervisor calls New where the program brings no system of its own; it and package core spawn every actor of the manager
// with PropsOf.
//
// Guarantees: no global state of the program is changed, because the library's metrics stay off.
//
// Not promised: that two managers share a system. A program that wants that brings its own (Config.System).
package actorsystem

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/mcpvisor/mcpvisor/actors"
)

// New makes an actor system that logs to the manager's logger. Its metrics stay off: with them a Send costs thirteen times
// as much and the program's global OpenTelemetry provider is replaced.
func New(log *zap.Logger) *actor.ActorSystem {
	return actor.NewActorSystem(
		// The library's throttle for dead letters keeps a goroutine for its interval; the shortest one lets it end.
		actor.WithDeadLetterThrottleInterval(time.Nanosecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(contentlessHandler{zapslog.NewHandler(log.Core(), zapslog.WithName("protoactor"))})
		}),
	)
}

// ServerPropsOf is PropsOf for the actor of a server, in which a defect of the program's middleware is told from one of the actor's own.
func ServerPropsOf(more func(actorName string) []actor.PropsOption, name string, producer actor.Producer) *actor.Props {
	g := &guardedMiddleware{}
	return PropsOf(func(name string) []actor.PropsOption {
		return slices.Concat([]actor.PropsOption{actor.WithReceiverMiddleware(g.before)}, more(name), []actor.PropsOption{actor.WithReceiverMiddleware(g.behind)})
	}, name, producer)
}

// PropsOf returns the props of one of the manager's actors, with the program's options behind the manager's own; more may be
// nil.
func PropsOf(more func(actorName string) []actor.PropsOption, name string, producer actor.Producer) *actor.Props {
	options := []actor.PropsOption{actor.WithDispatcher(actors.Dispatcher{})}
	if more != nil {
		options = append(options, more(name)...)
	}
	return actor.PropsFromProducer(producer, options...)
}

// contentlessHandler logs the type of a message in the place of its content. The actor library logs undeliverable messages
// whole, and a spec with its secrets may be one of them.
type contentlessHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (d contentlessHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		// Plain texts and numbers are the library's own; only values of kind Any can be messages.
		if a.Value.Kind() == slog.KindAny {
			a.Value = slog.StringValue(describeValue(a.Value.Any()))
		}
		out.AddAttrs(a)
		return true
	})
	return d.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler; the library does not use it with messages.
func (d contentlessHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contentlessHandler{d.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (d contentlessHandler) WithGroup(name string) slog.Handler {
	return contentlessHandler{d.Handler.WithGroup(name)}
}

// describeValue returns what may be logged of a value: an actor's id, an error's text, or else only the type.
func describeValue(v any) string {
	switch v := v.(type) {
	case *actor.PID:
		if v == nil {
			return ""
		}
		return v.GetId()
	case error:
		return v.Error()
	}
	return fmt.Sprintf("%T", v)
}
