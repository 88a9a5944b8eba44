//go:build !windows

package servers

import (
	"os/signal"
	"syscall"
)

// ignoreSignals makes SIGKILL the only signal that ends the process.
func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) }

// sessionOfItsOwn makes a child the leader of a new session, out of reach of signals to the process group.
func sessionOfItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
