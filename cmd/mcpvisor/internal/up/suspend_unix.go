//go:build unix

package up

import (
	"os"
	"os/signal"
	"syscall"
)

// suspendSignals returns a channel that receives when the person presses Ctrl-Z. The process is not stopped by it until the
// caller calls suspendProcess; end restores the default.
func suspendSignals() (signals <-chan os.Signal, end func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTSTP)
	return c, func() { signal.Stop(c) }
}

// suspendProcess stops this process and returns when it is continued. Servers run in process groups of their own and go on.
func suspendProcess() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGCONT)
	defer signal.Stop(c)
	if syscall.Kill(os.Getpid(), syscall.SIGSTOP) == nil {
		// SIGSTOP may take effect after Kill has returned; SIGCONT says that it is over.
		<-c
	}
}
