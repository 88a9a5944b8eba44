//go:build unix && !linux

package transports

import (
	"context"
	"os"
	"syscall"
)

// processAttributes puts the child into a session of its own. The kernel here does not end it when this process is killed: its
// input ends, and the guardian ends it if there is one.
func processAttributes(spec *childSpec) *syscall.SysProcAttr { return ownSession(spec.terminal) }

// launchChild starts the child on any thread, because no signal depends on it here.
func launchChild(ctx context.Context, start func() error) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return func() {}, start()
}

// awaitExit returns when the child has ended, and closes exited. The child has been reaped then: the id of its group is free if
// no other process is in it. Every system gives ids out in a cycle, so that no process gets this one within the milliseconds
// until the group is killed.
func (p *process) awaitExit() {
	defer close(p.exited)
	_ = p.cmd.Wait()
}

// waitStatus returns the status that awaitExit has taken.
func (p *process) waitStatus() *os.ProcessState { return p.cmd.ProcessState }

// hasLivingMember counts every member as living, because this system does not show which are zombies.
func hasLivingMember(int) bool { return true }
