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
	mu    sync.Mutex
	taker func()
	// spent is set when a question has taken one and nobody has answered a question since: the next one is the command's,
	// whatever is asked meanwhile, or a server could keep a person from ending the command.
	spent bool
}

// take lets the next Ctrl-C call f, once, instead of ending the command. answered is true if the person has answered by
// other means since.
func (i *interrupts) take(f func()) (release func(answered bool)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.spent {
		i.taker = f
	}
	return func(answered bool) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.taker = nil
		if answered {
			i.spent = false
		}
	}
}

// taken reports whether a signal was a question's.
func (i *interrupts) taken(s os.Signal) bool {
	i.mu.Lock()
	f := i.taker
	if f == nil || s != os.Interrupt {
		i.mu.Unlock()
		return false
	}
	i.taker, i.spent = nil, true
	i.mu.Unlock()
	f()
	return true
}

// interruptible ends the context at the first interrupt that no question takes, so that the command can end its
// servers, and the program at the next one. What is left then is ended by the guardian.
func interruptible(stderr io.Writer, questions *interrupts) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for {
			select {
			case s := <-signals:
				if questions.taken(s) {
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
