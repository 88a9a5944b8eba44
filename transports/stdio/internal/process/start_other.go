//go:build unix && !linux

package process

import (
	"context"
	"os"
	"syscall"
)

// processAttributes puts the child into a session of its own. The kernel here does not end it when this process is killed: its
// input ends, and the guardian ends it if there is one.
func processAttributes(spec *Spec) *syscall.SysProcAttr { return ownSession(spec.Terminal) }

// launchChild starts the child on any thread: on Linux a child dies with the thread that started it, here it does not.
func launchChild(ctx context.Context, start func() error) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return func() {}, start()
}

// AwaitExit returns when the child has ended, and closes exited. The child has been reaped then: the id of its group is free if
// no other process is in it. Every system gives ids out in a cycle, so that no process gets this one within the milliseconds
// until the group is killed.
func (p *Process) AwaitExit() {
	defer close(p.Exited)
	_ = p.cmd.Wait()
}

// waitStatus returns the status that AwaitExit has taken.
func (p *Process) waitStatus() *os.ProcessState { return p.cmd.ProcessState }

// hasLivingMember counts every member as living, because this system does not show which are zombies.
func hasLivingMember(int) bool { return true }
