package servers

import (
	"os/signal"
	"syscall"
)

// ignoreSignals ignores Ctrl-C, which is all that Windows can deliver.
func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT) }

// sessionOfItsOwn is the nearest that Windows has: detached from the console, in a group of its own. A job object still
// holds such a child.
func sessionOfItsOwn() *syscall.SysProcAttr {
	const detachedProcess = 0x00000008
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}
