//go:build unix

package live

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownSession takes a child out of the process group of its parent.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// dieBySignal ends this process by a signal: KILL, SEGV, ABRT … with or without SIG before it.
func dieBySignal(name string) {
	s := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	if s == 0 {
		s = unix.SIGKILL
	}
	signal.Reset(s)
	_ = unix.Kill(os.Getpid(), s)
	// Go's runtime turns some signals into a crash of its own, which takes a moment; others it ignores.
	time.Sleep(time.Second)
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// stopProcess makes a process stand still, resume lets it go on, kill ends it.
func stopProcess(pid int)   { _ = unix.Kill(pid, unix.SIGSTOP) }
func resumeProcess(pid int) { _ = unix.Kill(pid, unix.SIGCONT) }
func killProcess(pid int)   { _ = unix.Kill(pid, unix.SIGKILL) }

// isProcessGone reports whether a process is no more, not even as a zombie.
func isProcessGone(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }

// isSessionLeader reports whether a process is the first of a session of its own.
func isSessionLeader(pid int) bool {
	sid, err := unix.Getsid(pid)
	return err == nil && sid == pid
}

// exhaustDescriptors leaves this process no descriptor that it does not have already, until the result is called.
func exhaustDescriptors() (restore func()) {
	var was unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &was) != nil {
		return func() {}
	}
	now := was
	now.Cur = 3 // those that are open stay open
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &now)
	return func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) }
}
