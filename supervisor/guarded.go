package supervisor

import (
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
)

const (
	// logWait is how long an actor waits for its line to be written. It is long beside the time that a logger takes on a busy machine: a
	// program that reads its log finds what happened before.
	logWait = time.Second
	// maxLogLines bounds the lines that wait for a logger that does not return.
	maxLogLines = 256
)

// guardLogger returns a logger that keeps what the program's own does from the actor that logs: a panic would end the actor, and a call
// that does not return would hold it for ever. nil stays silent.
func guardLogger(l *zap.Logger) *zap.Logger {
	if l == nil {
		return zap.NewNop()
	}
	return l.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return guardedCore{&logWriter{core: c}, nil} }))
}

// guardedCore gives its lines to the writer of the program's core. The core is asked whether a line is for it, and gets its fields, when
// the line is written: no method of it runs in the goroutine that logs.
type guardedCore struct {
	writer *logWriter
	fields []zapcore.Field
}

// Enabled implements zapcore.Core.
func (guardedCore) Enabled(zapcore.Level) bool { return true }

// With implements zapcore.Core.
func (g guardedCore) With(fields []zapcore.Field) zapcore.Core {
	return guardedCore{g.writer, slices.Concat(g.fields, fields)}
}

// Check implements zapcore.Core.
func (g guardedCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, g)
}

// Write implements zapcore.Core: it returns when the line is written, or when that takes too long.
func (g guardedCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	g.writer.addLine(logLine{entry: e, fields: slices.Concat(g.fields, fields), written: make(chan struct{})})
	return nil
}

// Sync implements zapcore.Core: nothing of the manager asks for it, and the program asks its own logger.
func (guardedCore) Sync() error { return nil }

// logLine is one line of the log; written is closed when the program's core has returned.
type logLine struct {
	entry   zapcore.Entry
	fields  []zapcore.Field
	written chan struct{}
}

// logWriter writes the lines of a manager with the program's core, in order, in a goroutine that exists only while there is a line.
// While the core does not return, lines wait, at most maxLogLines; those that come then are lost, and counted in a line of their own
// when it goes on.
type logWriter struct {
	core zapcore.Core

	// mu guards what follows. stuck says that a line has waited in vain, so that no other does before the core has returned.
	mu      sync.Mutex
	waiting []logLine
	works   bool
	stuck   bool
	lost    int
}

// addLine has a line written, and waits for it if the core works.
func (w *logWriter) addLine(l logLine) {
	if !w.queueLine(l) {
		return
	}
	timer := time.NewTimer(logWait)
	defer timer.Stop()
	select {
	case <-l.written:
	case <-timer.C:
		w.noteStuck(l)
	}
}

// queueLine queues a line, and reports whether it is worth waiting for.
func (w *logWriter) queueLine(l logLine) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) >= maxLogLines {
		w.lost++
		return false
	}
	w.waiting = append(w.waiting, l)
	if !w.works {
		w.works = true
		go w.writeLines()
	}
	return !w.stuck
}

// noteStuck says that the core has not returned in time, if it has not by now.
func (w *logWriter) noteStuck(l logLine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-l.written:
	default:
		w.stuck = true
	}
}

// writeLines is the goroutine: it writes until no line waits.
func (w *logWriter) writeLines() {
	for {
		l, ok := w.takeLine()
		if !ok {
			return
		}
		w.writeLine(l)
	}
}

// takeLine returns the next line; after a loss it is one that tells of it.
func (w *logWriter) takeLine() (logLine, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 {
		l := w.waiting[0]
		w.waiting[0] = logLine{}
		w.waiting = w.waiting[1:]
		return l, true
	}
	w.waiting = nil
	if w.lost == 0 {
		w.works = false
		return logLine{}, false
	}
	l := logLine{written: make(chan struct{}), fields: []zapcore.Field{zap.Int("lines", w.lost)},
		entry: zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Now(), Message: "lines of the log were lost: Config.Logger did not return"}}
	w.lost = 0
	return l, true
}

// writeLine calls the program's core. Its panic costs the line; where it ends the goroutine, another one goes on.
func (w *logWriter) writeLine(l logLine) {
	hasReturned := false
	defer func() {
		panicked := recover()
		w.mu.Lock()
		w.stuck = false
		w.mu.Unlock()
		close(l.written)
		if panicked == nil && !hasReturned {
			go w.writeLines()
		}
	}()
	if ce := w.core.Check(l.entry, nil); ce != nil {
		ce.Write(l.fields...)
	}
	hasReturned = true
}

// guardActorOptions returns the program's function without its panics and without options that are nil or panic themselves: in the turn of
// the supervisor they would cost every server that comes after. One that ends its goroutine, or does not return within a second, gives no
// options either. nil stays nil.
func guardActorOptions(more func(actorName string) []actor.PropsOption, log *zap.Logger) func(actorName string) []actor.PropsOption {
	if more == nil {
		return nil
	}
	turn := new(hooks.Turn)
	return func(actorName string) []actor.PropsOption {
		options, ok := hooks.Get(turn, func() (options []actor.PropsOption) {
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
		})
		if !ok {
			log.Error("Config.ActorOptions ended its goroutine, or has not returned within a second: the actor is made without its options",
				zap.String("actor", actorName))
		}
		return options
	}
}
