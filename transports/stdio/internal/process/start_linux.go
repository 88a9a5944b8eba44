package process

import (
	"context"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
)

// processAttributes puts the child into a session of its own and lets the kernel end it when this process is killed. The kernel's
// signal reaches the child only, and not the processes that it has started: the guardian ends those, with SIGTERM first. So if
// there is a guardian, the kernel sends SIGTERM as well, and the child can end its own children in order.
func processAttributes(spec *Spec) *syscall.SysProcAttr {
	a := ownSession(spec.Terminal)
	a.Pdeathsig = syscall.SIGKILL
	if spec.Guarded {
		a.Pdeathsig = syscall.SIGTERM
	}
	return a
}

// starterThread is the one thread that creates all children. The kernel sends the death signal when the *thread* that created the
// child ends, and Go ends threads as it likes; this one lives from the first child's start to the last one's end. The mutex
// guards children, the number of living ones, and jobs, which is closed when that is 0.
var starterThread struct {
	sync.Mutex
	children int
	jobs     chan func()
}

// launchChild runs start on the thread of all children. The caller calls release when the child has been reaped.
func launchChild(ctx context.Context, start func() error) (release func(), err error) {
	starterThread.Lock()
	if starterThread.children == 0 {
		// The first child since the last thread has ended.
		starterThread.jobs = make(chan func())
		go startThread(starterThread.jobs)
	}
	starterThread.children++
	jobs := starterThread.jobs
	starterThread.Unlock()
	release = sync.OnceFunc(func() {
		starterThread.Lock()
		defer starterThread.Unlock()
		if starterThread.children--; starterThread.children == 0 {
			close(starterThread.jobs)
		}
	})

	done := make(chan error, 1)
	select {
	// The thread may be busy with another start, for which ctx bounds the wait.
	case jobs <- func() {
		// A panic in start would end the thread, and with it every child.
		defer func() {
			if v := recover(); v != nil {
				done <- errs.PanicError(v)
			}
		}()
		done <- start()
	}:
		// A start takes a millisecond and cannot be interrupted, so that ctx does not count here.
		if err = <-done; err == nil {
			return release, nil
		}
	// The job was not taken: nothing was started, and the thread counts one child less.
	case <-ctx.Done():
		err = ctx.Err()
	}
	release()
	return nil, err
}

// startThread runs the jobs on a thread of its own. It never unlocks the thread, so that the thread ends with it.
func startThread(jobs <-chan func()) {
	runtime.LockOSThread()
	for job := range jobs {
		job()
	}
}

// AwaitExit returns when the child has ended, and closes exited. The child is a zombie then.
func (p *Process) AwaitExit() {
	defer close(p.Exited)
	pid := p.cmd.Process.Pid
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err == nil {
		f := os.NewFile(uintptr(fd), "pidfd")
		defer f.Close()
		if raw, e := f.SyscallConn(); e == nil && raw.Read(func(fd uintptr) bool {
			return hasEnded(unix.P_PIDFD, int(fd), unix.WNOHANG)
		}) == nil {
			return
		}
	}
	// A kernel before 5.10, or a sandbox that does not know the call: wait in a thread of this child's own.
	hasEnded(unix.P_PID, pid, 0)
}

// hasEnded reports whether a child is a zombie, without reaping it. With no option it waits until the child is one.
func hasEnded(kind, id, option int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOWAIT|option, nil)
		if err == unix.EINTR {
			continue
		}
		// ECHILD: the program ignores SIGCHLD, or waits for all children itself, so that nothing is left to see.
		return err == unix.ECHILD || err == nil && info.Signo != 0
	}
}

// waitStatus takes the status of the zombie, which reaps it. It is nil if the status is lost.
func (p *Process) waitStatus() *os.ProcessState {
	_ = p.cmd.Wait() // the error repeats the status
	return p.cmd.ProcessState
}
