//go:build !windows

package servers

import (
	"os/signal"
	"syscall"
)

func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) }

func sessionOfItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
