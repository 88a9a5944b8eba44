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

// BubbleError says that a bubble did not end well.
type BubbleError struct {
	// Panic is what f panicked with, nil if it did not.
	Panic any
	// Text is what happened.
	Text string
	// Stacks are those of the goroutines of the bubble that still wait and can never go on, or that of the panic. They stay
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

// Leaked reports that f has returned and left goroutines behind that wait for ever.
func (e *BubbleError) Leaked() bool { return e.Panic == nil && e.Text == textLeftBehind }

// stuckInManager reports that f waits for ever inside of something that it has called of the manager, and where: not the harness
// is stuck then.
func (e *BubbleError) stuckInManager() (where string, stuck bool) {
	if e.Panic != nil || e.Text != textAllWait {
		return "", false
	}
	for _, s := range e.Stacks {
		if strings.Contains(s, "sim.(*bubble).run.func") {
			g, _ := parseGoroutine(s)
			return g.describeState(), len(g.moduleFrames(1)) > 0
		}
	}
	return "", false
}

const textAllWait = "every goroutine waits, and nothing will wake one"

const textLeftBehind = "goroutines are left that nothing will wake"

// Bubble runs f in a bubble of package testing/synctest, in virtual time, and returns when f and every goroutine that it
// has started have ended. The error is a *BubbleError: f panicked, or its goroutines wait for each other.
//
// It is the one place where a bubble is made outside of a test. testing/synctest asks for a *testing.T, of which it uses
// nothing for a bubble that neither logs nor fails: a new one will do. Tests of this package say what breaks if that
// changes in a version of Go.
func Bubble(f func()) error {
	return runWatched(f, func(ended <-chan error, _ func() string) error { return <-ended })
}

// runWatched is Bubble with somebody who waits for its end. mark is how the runtime names the bubble in stacks, empty as long as it has
// no name.
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

// bubble is what is known of one.
type bubble struct {
	mark     atomic.Pointer[string] // how the runtime names it in stacks
	returned bool                   // f has returned
	failure  error
}

// bubbleMark is how the runtime names it in stacks.
func (b *bubble) bubbleMark() string {
	if m := b.mark.Load(); m != nil {
		return *m
	}
	return ""
}

// run is the first goroutine of the bubble. f runs in a goroutine of its own: one that ends with runtime.Goexit would take
// the process with it otherwise.
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

// deadlockError translates the panic with which synctest says that a bubble cannot end.
func (b *bubble) deadlockError(v any) error {
	e := &BubbleError{Text: textAllWait}
	if b.returned {
		e.Text = textLeftBehind
	}
	if err, ok := v.(error); !ok || !strings.Contains(err.Error(), "deadlock") {
		e.Panic, e.Text = v, "panic of the bubble"
	}
	if failed := (*BubbleError)(nil); errors.As(b.failure, &failed) { // why nobody wakes them
		e.Panic, e.Text, e.Stacks = failed.Panic, failed.Text, failed.Stacks
	}
	e.Stacks = append(e.Stacks, b.goroutineStacks()...)
	return e
}

// goroutineStacks are the stacks of the goroutines of the bubble.
func (b *bubble) goroutineStacks() []string {
	var stacks []string
	for s := range strings.SplitSeq(string(dumpStacks(true)), "\n\n") {
		if bubbleOf([]byte(s)) == b.bubbleMark() && b.bubbleMark() != "" {
			stacks = append(stacks, s)
		}
	}
	return stacks
}

// bubblePattern is how a stack's first line names the bubble of its goroutine: goroutine 8 [chan receive (durable), synctest
// bubble 1]:
var bubblePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^goroutine \d+[^\n]*(synctest bubble \d+)[^\n]*:`) })

func bubbleOf(stack []byte) string {
	if m := bubblePattern().FindSubmatch(bytes.TrimSpace(stack)); m != nil {
		return string(m[1])
	}
	return ""
}

// dumpStacks is the stack of this goroutine, or of all.
func dumpStacks(all bool) []byte {
	for size := 64 << 10; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, all); n < size || size > 64<<20 {
			return buf[:n]
		}
	}
}
