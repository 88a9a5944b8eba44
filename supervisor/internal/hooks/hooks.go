// Package hooks runs functions of the program for calls (Config.Allow, Ask, Sanitize, Interceptors), each in a goroutine that is not the caller's, so
// that one that does not return holds no caller beyond its time.
//
//	allowed, err := hooks.Do(ctx, runner, closing, hooks.Call{Function: "Config.Allow", Server: "files", Tool: "read"}, func() error { … })
//
// Guarantees: Do returns when the function has returned, ctx has ended or over is closed, whichever comes first. A panic of the function,
// and a runtime.Goexit, is an error. The goroutine of a function that nobody waits for any more is left and ends with the function; the log
// names it if it has not ended a second later, once a minute for each function and server. While 256 are left for one function and server,
// what would need the function once more is refused, and other servers are not concerned. So at most 255 are left, and as many as ran at
// once: how many may run is the program's choice, since an interceptor lasts as long as its call.
//
// Not promised: that a function which is left ends.
//
// # How it fits
//
// Packages asker and permissions run their functions with Do, as the facade does for credentials and opener. The facade runs interceptors with Begin, Return and Leave, because it knows
// better what has become of a request whose interceptor does not return.
package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/sparing"
)

// maxLeft is how many runs of one function for one server may have been left when another begins.
const maxLeft = 256

// reportAfter is the time after which the log names a run that was left. Most functions return by themselves when their context ends.
const reportAfter = time.Second

// ErrOver is the error of Do when over is closed before the function has returned.
var ErrOver = errors.New("the manager is closed")

// A Broken is the error of a function that panicked, or ended its goroutine.
type Broken struct{ text string }

// Error says what the function did, without its name: "panicked: …".
func (b *Broken) Error() string { return b.text }

// Call says which function runs, and about what. Op is that of the errors, "call" if it is empty; Server and Tool may be empty.
type Call struct{ Function, Op, Server, Tool string }

// place is what is bounded: one function for one server.
type place struct{ function, server string }

// Runner counts the runs that were left. Safe for concurrent use.
type Runner struct {
	log *zap.Logger
	// left counts all runs that are left, so that nothing is locked while there is none.
	left atomic.Int64
	// mu guards byPlace, and the change of a Run that is left.
	mu      sync.Mutex
	byPlace map[place]int
	lines   sparing.Limiter
	workers workers
}

// NewRunner makes a runner that has left no run yet.
func NewRunner(log *zap.Logger) *Runner {
	return &Runner{log: log, byPlace: map[place]int{}}
}

// A Run is one run of a function; the zero value runs. It is Returned once, and Left at most once.
type Run struct {
	state  atomic.Int32
	place  place
	report *time.Timer
}

// The states of a Run.
const (
	running int32 = iota
	returned
	left
)

// Begin returns nil if the function may run, and otherwise the error of the call that needs it: nothing was sent.
func (r *Runner) Begin(c Call) error {
	if !r.HasLeft() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byPlace[place{c.Function, c.Server}] < maxLeft {
		return nil
	}
	return &messages.Error{Op: cmp.Or(c.Op, "call"), Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted, Server: c.Server, Tool: c.Tool,
		Text: fmt.Sprintf("%d earlier runs of the program's %s for this server have not returned", maxLeft, c.Function),
		Fix:  "make the function return when the context of its call ends"}
}

// Start runs f in a goroutine that is not the caller's. f must not panic, and begins with SetLabels.
func (r *Runner) Start(f func()) { r.workers.startFunction(f) }

// SetLabels gives the goroutine of a function the profiler's labels of its call, in the place of an earlier call's.
func SetLabels(ctx context.Context) { pprof.SetGoroutineLabels(ctx) }

// Close ends the goroutines that wait for the next function. Functions can be run afterwards, too.
func (r *Runner) Close() { r.workers.endIdle() }

// HasLeft reports whether any run is left.
func (r *Runner) HasLeft() bool { return r.left.Load() > 0 }

// Return says that the function has returned; it is the last that its goroutine does.
func (r *Runner) Return(run *Run) {
	if run.state.CompareAndSwap(running, returned) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	run.report.Stop()
	if r.byPlace[run.place]--; r.byPlace[run.place] == 0 {
		delete(r.byPlace, run.place)
	}
	r.left.Add(-1)
}

// Leave says that nobody waits for the run any more.
func (r *Runner) Leave(run *Run, c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !run.state.CompareAndSwap(running, left) {
		return
	}
	run.place = place{c.Function, c.Server}
	r.byPlace[run.place]++
	r.left.Add(1)
	run.report = time.AfterFunc(reportAfter, func() { r.reportLeft(run.place, c) })
}

// reportLeft logs that a run has not returned, with the number of those at its place.
func (r *Runner) reportLeft(p place, c Call) {
	if _, say := r.lines.Allow(p.function+"\x00"+p.server, time.Now()); !say {
		return
	}
	r.mu.Lock()
	n := r.byPlace[p]
	r.mu.Unlock()
	r.log.Warn("a function of the program has not returned since its call ended: its goroutine is left until it does",
		zap.String("function", c.Function), zap.String("server", c.Server), zap.String("tool", c.Tool), zap.Int("left", n), zap.Int("most", maxLeft))
}

// Broke returns the error of a function that did not return: panicked is what recover gave, nil if it ended its goroutine.
func (r *Runner) Broke(c Call, panicked any) *Broken {
	if panicked == nil {
		return &Broken{"ended its goroutine (runtime.Goexit)"}
	}
	r.log.Error(c.Function+" panicked", zap.String("server", c.Server), zap.String("tool", c.Tool), zap.Any("panic", panicked),
		zap.ByteString("stack", debug.Stack()))
	return &Broken{"panicked: " + messages.Line(fmt.Sprint(panicked), 200)}
}

// Do runs the function and returns what it returned. The error is ctx's, ErrOver, a *Broken, or the one of Begin.
func Do[T any](ctx context.Context, r *Runner, over <-chan struct{}, c Call, f func() T) (T, error) {
	var none T
	if err := r.Begin(c); err != nil {
		return none, err
	}
	w := &waiting[T]{done: make(chan struct{})}
	r.Start(func() { w.run(ctx, r, c, f) })
	select {
	case <-w.done:
		return w.value, w.err
	case <-ctx.Done():
	case <-over:
	}
	// What has returned counts, also if the wait for it has ended at the same time.
	select {
	case <-w.done:
		return w.value, w.err
	default:
	}
	r.Leave(&w.Run, c)
	if err := ctx.Err(); err != nil {
		return none, err
	}
	return none, ErrOver
}

// waiting is a run of Do. Its goroutine writes value and err before it closes done, and nobody reads them earlier.
type waiting[T any] struct {
	Run
	done  chan struct{}
	value T
	err   error
}

// run is the goroutine of the function, which ends with it.
func (w *waiting[T]) run(ctx context.Context, r *Runner, c Call, f func() T) {
	SetLabels(ctx)
	hasReturned := false
	defer func() {
		if panicked := recover(); !hasReturned {
			w.err = r.Broke(c, panicked)
		}
		close(w.done)
		r.Return(&w.Run)
	}()
	w.value = f()
	hasReturned = true
}
