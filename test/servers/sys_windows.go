package servers

import (
	"os/signal"
	"syscall"
)

// ignoreSignals ignores Ctrl-C, the only signal that Windows delivers.
func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT) }

// sessionOfItsOwn detaches a child from the console and puts it into a process group of its own, the nearest that
// Windows has to a session. A job object still holds such a child.
func sessionOfItsOwn() *syscall.SysProcAttr {
	const detachedProcess = 0x00000008
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}
