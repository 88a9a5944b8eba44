//go:build unix

package stdio

import (
	"os/signal"
	"syscall"
)

// guardianNeeded is true because a killed process leaves its children running here.
const guardianNeeded = true

// guardianAttributes starts the guardian in a session of its own, out of reach of the terminal's signals.
func guardianAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ignoreSignals keeps the guardian alive through the signals that end its parent.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
}
