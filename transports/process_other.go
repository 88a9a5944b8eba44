//go:build unix && !linux

package transports

import (
	"context"
	"os"
	"syscall"
)

// processAttributes puts the child into a session of its own. The kernel does not end it when this process is killed: its input
// ends, and the guardian ends it if there is one.
func processAttributes(cfg *StdioConfig) *syscall.SysProcAttr { return ownSession(cfg.Terminal) }

func launchChild(ctx context.Context, start func() error) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return func() {}, start()
}

// awaitExit returns when the child has ended. It has been reaped then: the id of its group is free if no other process is in
// it, and every system gives ids out in a cycle, so that no process gets it within the milliseconds until we ask.
func (p *process) awaitExit() {
	defer close(p.exited)
	_ = p.cmd.Wait()
}

func (p *process) waitStatus() *os.ProcessState { return p.cmd.ProcessState }

// hasLivingMember cannot be told apart from a zombie here.
func hasLivingMember(int) bool { return true }
