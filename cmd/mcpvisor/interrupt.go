package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupts decides what a Ctrl-C is about: a question that is open, or the command.
type interrupts struct {
	mu          sync.Mutex
	onInterrupt func()
	// spent is set when a question has taken one and nobody has answered a question since: the next one is the command's,
	// whatever is asked meanwhile, or a server could keep a person from ending the command.
	spent bool
}

// captureNext lets the next Ctrl-C call f, once, instead of ending the command. answered is true if the person has answered by
// other means since.
func (i *interrupts) captureNext(f func()) (release func(answered bool)) {
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

// passToQuestion reports whether a signal was a question's.
func (i *interrupts) passToQuestion(s os.Signal) bool {
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

// interruptContext ends the context at the first interrupt that no question takes, so that the command can end its
// servers, and the program at the next one. What is left then is ended by the guardian.
func interruptContext(stderr io.Writer, questions *interrupts) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for {
			select {
			case s := <-signals:
				if questions.passToQuestion(s) {
					continue
				}
			case <-done:
				return
			}
			break
		}
		cancel(errInterrupted)
		select {
		case <-signals:
			fmt.Fprintln(stderr, "mcpvisor: ended at once")
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}
