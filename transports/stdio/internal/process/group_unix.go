//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownSession makes the child the leader of a session and of a process group, both with the child's id. A new session has no
// controlling terminal: the child cannot type into the person's shell (TIOCSTI), open /dev/tty, or become the foreground of the
// terminal. A child that may ask on the terminal gets a group alone.
func ownSession(terminal bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: !terminal, Setpgid: terminal}
}

// unixGroup is a process group by its id, which is the child's.
type unixGroup int

// Terminate sends SIGTERM to every member of the group.
func (g unixGroup) Terminate() { _ = unix.Kill(-int(g), unix.SIGTERM) }

// Kill sends SIGKILL, which no member can catch.
func (g unixGroup) Kill()  { _ = unix.Kill(-int(g), unix.SIGKILL) }
func (g unixGroup) close() {}

// HasMembers first reaps the members that were left to this process: that happens if it is the first one of a container, or has
// asked to adopt orphans. As zombies they would count as members for ever.
func (g unixGroup) HasMembers() bool {
	for {
		pid, err := unix.Wait4(-int(g), nil, unix.WNOHANG, nil)
		if err == unix.EINTR || err == nil && pid > 0 {
			continue
		}
		break
	}
	return unix.Kill(-int(g), 0) != unix.ESRCH
}

func (g unixGroup) hasLivingMembers() bool { return hasLivingMember(int(g)) }

// newProcessGroup has nothing to create: the kernel has made the group at the start of the child.
func newProcessGroup(p *os.Process) (Group, error) { return unixGroup(p.Pid), nil }

// isResourceShortage reports whether the limit of processes or of memory was reached, which passes by itself.
func isResourceShortage(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOMEM)
}

// isTextBusy reports whether the program's file is open for writing.
func isTextBusy(err error) bool { return errors.Is(err, unix.ETXTBSY) }

// isUnusableProgram reports whether the file can never be executed as it is: another machine's program, a folder, a broken link.
func isUnusableProgram(err error) bool {
	return errors.Is(err, unix.ENOEXEC) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EINVAL)
}
