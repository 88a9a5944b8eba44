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
func (e *BubbleError) Leaked() bool { return e.Panic == nil && e.Text == leftBehind }

// insideManager reports that f waits for ever inside of something that it has called of the manager, and where: not the harness
// is stuck then.
func (e *BubbleError) insideManager() (where string, stuck bool) {
	if e.Panic != nil || e.Text != waiting {
		return "", false
	}
	for _, s := range e.Stacks {
		if strings.Contains(s, "sim.(*bubble).run.func") {
			g, _ := goroutineOf(s)
			return g.told(), len(g.own(1)) > 0
		}
	}
	return "", false
}

const waiting = "every goroutine waits, and nothing will wake one"

const leftBehind = "goroutines are left that nothing will wake"

// Bubble runs f in a bubble of package testing/synctest, in virtual time, and returns when f and every goroutine that it
// has started have ended. The error is a *BubbleError: f panicked, or its goroutines wait for each other.
//
// It is the one place where a bubble is made outside of a test. testing/synctest asks for a *testing.T, of which it uses
// nothing for a bubble that neither logs nor fails: a new one will do. Tests of this package say what breaks if that
// changes in a version of Go.
func Bubble(f func()) error {
	return watched(f, func(ended <-chan error, _ func() string) error { return <-ended })
}

// watched is Bubble with somebody who waits for its end. mark is how the runtime names the bubble in stacks, empty as long as it has
// no name.
func watched(f func(), wait func(ended <-chan error, mark func() string) error) error {
	ended := make(chan error, 1)
	var b bubble
	go func() {
		defer func() {
			if v := recover(); v != nil {
				ended <- b.stuck(v)
				return
			}
			ended <- b.failure
		}()
		synctest.Test(new(testing.T), func(*testing.T) { b.run(f) })
	}()
	return wait(ended, b.name)
}

// bubble is what is known of one.
type bubble struct {
	mark    atomic.Pointer[string] // how the runtime names it in stacks
	returns bool                   // f has returned
	failure error
}

// name is how the runtime names it in stacks.
func (b *bubble) name() string {
	if m := b.mark.Load(); m != nil {
		return *m
	}
	return ""
}

// run is the first goroutine of the bubble. f runs in a goroutine of its own: one that ends with runtime.Goexit would take
// the process with it otherwise.
func (b *bubble) run(f func()) {
	mark := bubbleOf(stack(false))
	b.mark.Store(&mark)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				b.failure = &BubbleError{Panic: v, Text: "panic", Stacks: []string{string(debug.Stack())}}
			} else if !b.returns {
				b.failure = &BubbleError{Text: "it ended its goroutine without returning"}
			}
		}()
		f()
		b.returns = true
	}()
	<-done
}

// stuck translates the panic with which synctest says that a bubble cannot end.
func (b *bubble) stuck(v any) error {
	e := &BubbleError{Text: waiting}
	if b.returns {
		e.Text = leftBehind
	}
	if err, ok := v.(error); !ok || !strings.Contains(err.Error(), "deadlock") {
		e.Panic, e.Text = v, "panic of the bubble"
	}
	if failed := (*BubbleError)(nil); errors.As(b.failure, &failed) { // why nobody wakes them
		e.Panic, e.Text, e.Stacks = failed.Panic, failed.Text, failed.Stacks
	}
	e.Stacks = append(e.Stacks, b.goroutines()...)
	return e
}

// goroutines are the stacks of the goroutines of the bubble.
func (b *bubble) goroutines() []string {
	var stacks []string
	for s := range strings.SplitSeq(string(stack(true)), "\n\n") {
		if bubbleOf([]byte(s)) == b.name() && b.name() != "" {
			stacks = append(stacks, s)
		}
	}
	return stacks
}

// bubbles is how a stack's first line names the bubble of its goroutine: goroutine 8 [chan receive (durable), synctest
// bubble 1]:
var bubbles = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^goroutine \d+[^\n]*(synctest bubble \d+)[^\n]*:`) })

func bubbleOf(stack []byte) string {
	if m := bubbles().FindSubmatch(bytes.TrimSpace(stack)); m != nil {
		return string(m[1])
	}
	return ""
}

// stack is the stack of this goroutine, or of all.
func stack(all bool) []byte {
	for size := 64 << 10; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, all); n < size || size > 64<<20 {
			return buf[:n]
		}
	}
}
