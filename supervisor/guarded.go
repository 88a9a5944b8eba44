package supervisor

import (
	"runtime/debug"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// guardLogger returns a logger that keeps the panics of the program's own from the actor that logs, which would end by them.
func guardLogger(l *zap.Logger) *zap.Logger {
	return l.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return guardedCore{c} }))
}

// guardedCore calls each method of a core and recovers. It asks the core whether an entry is for it (Check) when it writes.
type guardedCore struct{ zapcore.Core }

// Enabled implements zapcore.Core.
func (g guardedCore) Enabled(l zapcore.Level) (enabled bool) {
	defer func() { _ = recover() }()
	return g.Core.Enabled(l)
}

// With implements zapcore.Core. Where the core panics, the lines lack the fields.
func (g guardedCore) With(fields []zapcore.Field) (with zapcore.Core) {
	defer func() {
		if recover() != nil {
			with = g
		}
	}()
	return guardedCore{g.Core.With(fields)}
}

// Check implements zapcore.Core.
func (g guardedCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if g.Enabled(e.Level) {
		return ce.AddCore(e, g)
	}
	return ce
}

// Write implements zapcore.Core.
func (g guardedCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	defer func() { _ = recover() }()
	if ce := g.Core.Check(e, nil); ce != nil {
		ce.Write(fields...)
	}
	return nil
}

// Sync implements zapcore.Core.
func (g guardedCore) Sync() error {
	defer func() { _ = recover() }()
	return g.Core.Sync()
}

// guardActorOptions returns the program's function without its panics and without options that are nil or panic themselves: in the turn of
// the supervisor they would cost every server that comes after. nil stays nil.
func guardActorOptions(more func(actorName string) []actor.PropsOption, log *zap.Logger) func(actorName string) []actor.PropsOption {
	if more == nil {
		return nil
	}
	return func(actorName string) (options []actor.PropsOption) {
		defer func() {
			if r := recover(); r != nil {
				log.Error("Config.ActorOptions panicked: the actor is made without its options", zap.String("actor", actorName),
					zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
				options = nil
			}
		}()
		options = slices.DeleteFunc(slices.Clone(more(actorName)), func(o actor.PropsOption) bool { return o == nil })
		actor.PropsFromProducer(func() actor.Actor { return nil }, options...) // an option that panics does so here
		return options
	}
}
