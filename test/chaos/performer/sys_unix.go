//go:build unix

package performer

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownSession starts a child in a session of its own, and with it outside its parent's process group.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// dieBySignal ends this process by a signal, whose name may lack the SIG: KILL, SEGV, ABRT …. An unknown name means KILL.
func dieBySignal(name string) {
	s := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	if s == 0 {
		s = unix.SIGKILL
	}
	signal.Reset(s)
	_ = unix.Kill(os.Getpid(), s)
	// Go's runtime turns some signals into a crash of its own, which takes a moment, and ignores others: KILL follows.
	time.Sleep(time.Second)
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// stopProcess suspends a process, resumeProcess continues it. Errors mean that it has ended already.
func stopProcess(pid int)   { _ = unix.Kill(pid, unix.SIGSTOP) }
func resumeProcess(pid int) { _ = unix.Kill(pid, unix.SIGCONT) }

// isProcessGone reports whether a process no longer exists, not even as a zombie.
func isProcessGone(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }

// isSessionLeader reports whether a process has made a session of its own.
func isSessionLeader(pid int) bool {
	sid, err := unix.Getsid(pid)
	return err == nil && sid == pid
}

// exhaustDescriptors lowers the limit so that this process can open no further descriptor, until the caller calls restore.
func exhaustDescriptors() (restore func()) {
	var was unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &was) != nil {
		return func() {}
	}
	now := was
	// Descriptors that are open stay open under a lower limit.
	now.Cur = 3
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &now)
	return func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) }
}
