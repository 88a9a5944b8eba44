package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Interrupts decides whether a Ctrl-C cancels an open question or the command. It is safe for concurrent use.
type Interrupts struct {
	// mu guards the fields below. It is not held while onInterrupt runs.
	mu sync.Mutex
	// onInterrupt cancels the open question; nil if there is none.
	onInterrupt func()
	// onHangup takes SIGHUP; nil if it ends the command.
	onHangup func() bool
	// spent is set when a question has taken a Ctrl-C and the person has answered no question since: the next one ends the
	// command, even if another question is open then. Otherwise a server that asks again and again could keep the person from
	// ending the command.
	spent bool
}

// CaptureNext makes the next Ctrl-C call f once instead of ending the command. The caller must call release when the question
// is over; answered says that the person typed an answer.
func (i *Interrupts) CaptureNext(f func()) (release func(answered bool)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.spent {
		i.onInterrupt = f
	}
	return func(answered bool) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.onInterrupt = nil
		if answered {
			i.spent = false
		}
	}
}

// interruptsKey is the key of the Interrupts of a run in its context.
type interruptsKey struct{}

// CatchHangups makes f be called for SIGHUP in the place of ending the run of ctx, until the function that it returns is called. f must
// not block; where it returns false, the run ends as ever.
func CatchHangups(ctx context.Context, f func() bool) (release func()) {
	i, ok := ctx.Value(interruptsKey{}).(*Interrupts)
	if !ok {
		return func() {}
	}
	set := func(f func() bool) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.onHangup = f
	}
	set(f)
	return func() { set(nil) }
}

// takesHangup gives SIGHUP to the command, and reports whether it goes on.
func (i *Interrupts) takesHangup(s os.Signal) bool {
	i.mu.Lock()
	f := i.onHangup
	i.mu.Unlock()
	return s == syscall.SIGHUP && f != nil && f()
}

// passToQuestion gives a signal to the open question, and reports whether there was one. Only Ctrl-C is a question's: SIGTERM
// always ends the command.
func (i *Interrupts) passToQuestion(s os.Signal) bool {
	i.mu.Lock()
	f := i.onInterrupt
	if f == nil || s != os.Interrupt {
		i.mu.Unlock()
		return false
	}
	i.onInterrupt, i.spent = nil, true
	i.mu.Unlock()
	f()
	return true
}

// InterruptContext returns a context that ends at the first interrupt that no question takes, with ErrInterrupted as its cause,
// so that the command can close its servers. The second interrupt ends the process at once, and the guardian ends what is left.
// The caller calls the returned function at the end of the run; it also ends the goroutine.
func InterruptContext(stderr io.Writer, questions *Interrupts) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), interruptsKey{}, questions))
	// Two signals have room: the one that cancels, and the one that ends at once.
	signals := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for {
			select {
			case s := <-signals:
				if questions.passToQuestion(s) || questions.takesHangup(s) {
					continue
				}
			case <-done:
				return
			}
			break
		}
		cancel(ErrInterrupted)
		select {
		case <-signals:
			fmt.Fprintln(stderr, "mcpvisor: ended at once")
			os.Exit(Interrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// InterruptedError returns the error of a command whose person pressed Ctrl-C; nil if that is not why ctx ended, or it has not.
func InterruptedError(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrInterrupted) {
		return With(Interrupted, "interrupted")
	}
	return nil
}

// ErrInterrupted is the cancellation cause of a run's context when the person pressed Ctrl-C or the process got SIGTERM or
// SIGHUP. InterruptedError recognises it and tells it apart from a timeout.
var ErrInterrupted = errors.New("interrupted")
