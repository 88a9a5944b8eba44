//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// suspendSignals tells of Ctrl-Z. The process is not stopped then until suspend is called.
func suspendSignals() (signals <-chan os.Signal, end func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTSTP)
	return c, func() { signal.Stop(c) }
}

// suspendProcess stops this process and returns when it goes on. Its servers are in groups of their own and run meanwhile.
func suspendProcess() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGCONT)
	defer signal.Stop(c)
	if syscall.Kill(os.Getpid(), syscall.SIGSTOP) == nil {
		<-c
	}
}
