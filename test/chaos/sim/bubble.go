package sim

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// BubbleError says that a bubble ended by a panic or a deadlock.
type BubbleError struct {
	// Panic is the value of the panic, nil if there was none.
	Panic any
	// Text says in what way the bubble ended.
	Text string
	// Stacks are the stacks of the goroutines that wait and can never go on, or the stack of the panic. Such goroutines stay
	// for as long as the process lives.
	Stacks []string
}

// Error implements error.
func (e *BubbleError) Error() string {
	text := e.Text
	if e.Panic != nil {
		text += ": " + fmt.Sprint(e.Panic)
	}
	return fmt.Sprintf("%s (%d stacks)", text, len(e.Stacks))
}

// Leaked reports whether f has returned and has left goroutines behind that wait for ever.
func (e *BubbleError) Leaked() bool { return e.Panic == nil && e.Text == textLeftBehind }

// stuckInManager reports whether f waits for ever inside a function of the manager, and where: then the manager is stuck and
// not the harness.
func (e *BubbleError) stuckInManager() (where string, stuck bool) {
	if e.Panic != nil || e.Text != textAllWait {
		return "", false
	}
	for _, s := range e.Stacks {
		// The frame of b.run's inner function marks the goroutine that runs f.
		if strings.Contains(s, "sim.(*bubble).run.func") {
			g, _ := parseGoroutine(s)
			return g.describeState(), len(g.moduleFrames(1)) > 0
		}
	}
	return "", false
}

const textAllWait = "every goroutine waits, and nothing will wake one"

const textLeftBehind = "goroutines are left that nothing will wake"

// Bubble runs f in a bubble of package testing/synctest, in virtual time, and returns when f and every goroutine that it has
// started have ended. The error is a [*BubbleError]: f panicked, or its goroutines wait for each other.
//
// Bubble makes bubbles outside of tests. testing/synctest asks for a *testing.T and uses nothing of it for a bubble that
// neither logs nor fails, so that a new one suffices. Tests of this package fail if a version of Go changes that.
func Bubble(f func()) error {
	return runWatched(f, func(ended <-chan error, _ func() string) error { return <-ended })
}

// runWatched is [Bubble] with a function that waits for its end. wait gets a channel with the result, and a function that
// returns the runtime's name of the bubble, empty as long as it is unknown.
func runWatched(f func(), wait func(ended <-chan error, mark func() string) error) error {
	ended := make(chan error, 1)
	var b bubble
	go func() {
		defer func() {
			if v := recover(); v != nil {
				ended <- b.deadlockError(v)
				return
			}
			ended <- b.failure
		}()
		synctest.Test(new(testing.T), func(*testing.T) { b.run(f) })
	}()
	return wait(ended, b.bubbleMark)
}

// bubble holds what is known of a bubble from inside.
type bubble struct {
	// mark is the runtime's name of the bubble in stacks.
	mark atomic.Pointer[string]
	// returned is set when f has returned, failure when it has not.
	returned bool
	failure  error
}

// bubbleMark returns the runtime's name of the bubble, empty before it runs.
func (b *bubble) bubbleMark() string {
	if m := b.mark.Load(); m != nil {
		return *m
	}
	return ""
}

// run is the first goroutine of the bubble. f runs in a second one, because a runtime.Goexit in the first would end the
// process.
func (b *bubble) run(f func()) {
	mark := bubbleOf(dumpStacks(false))
	b.mark.Store(&mark)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				b.failure = &BubbleError{Panic: v, Text: "panic", Stacks: []string{string(debug.Stack())}}
			} else if !b.returned {
				b.failure = &BubbleError{Text: "it ended its goroutine without returning"}
			}
		}()
		f()
		b.returned = true
	}()
	<-done
}

// deadlockError translates the panic by which synctest reports that a bubble cannot end.
func (b *bubble) deadlockError(v any) error {
	e := &BubbleError{Text: textAllWait}
	if b.returned {
		e.Text = textLeftBehind
	}
	if err, ok := v.(error); !ok || !strings.Contains(err.Error(), "deadlock") {
		e.Panic, e.Text = v, "panic of the bubble"
	}
	// A failure of f explains why the other goroutines wait.
	if failed := (*BubbleError)(nil); errors.As(b.failure, &failed) {
		e.Panic, e.Text, e.Stacks = failed.Panic, failed.Text, failed.Stacks
	}
	e.Stacks = append(e.Stacks, b.goroutineStacks()...)
	return e
}

// goroutineStacks returns the stacks of the bubble's goroutines.
func (b *bubble) goroutineStacks() []string {
	var stacks []string
	for s := range strings.SplitSeq(string(dumpStacks(true)), "\n\n") {
		if bubbleOf([]byte(s)) == b.bubbleMark() && b.bubbleMark() != "" {
			stacks = append(stacks, s)
		}
	}
	return stacks
}

// bubblePattern matches the first line of a stack with the name of the bubble: goroutine 8 [chan receive (durable), synctest
// bubble 1]:
var bubblePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^goroutine \d+[^\n]*(synctest bubble \d+)[^\n]*:`) })

// bubbleOf returns the name of the bubble in a stack's first line, empty if there is none.
func bubbleOf(stack []byte) string {
	if m := bubblePattern().FindSubmatch(bytes.TrimSpace(stack)); m != nil {
		return string(m[1])
	}
	return ""
}

// dumpStacks returns the stack of this goroutine, or of all. It grows its buffer up to 64 MiB and cuts what is longer.
func dumpStacks(all bool) []byte {
	for size := 64 << 10; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, all); n < size || size > 64<<20 {
			return buf[:n]
		}
	}
}
