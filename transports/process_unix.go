//go:build unix

package transports

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownSession makes the child the leader of a session and of a process group, both with the child's id. A session that is new
// has no controlling terminal: the child cannot type into the person's shell (TIOCSTI), open /dev/tty, or become the
// foreground of the terminal. A child that may ask on the terminal gets the group alone.
func ownSession(terminal bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: !terminal, Setpgid: terminal}
}

// unixGroup is a process group, by its id, which is the child's.
type unixGroup int

func (g unixGroup) terminate() { _ = unix.Kill(-int(g), unix.SIGTERM) }
func (g unixGroup) kill()      { _ = unix.Kill(-int(g), unix.SIGKILL) }
func (g unixGroup) close()     {}

// hasMembers takes what has died of the group and was left to us to reap: that is so if this process is the first one of a
// container, or has asked to adopt orphans. They would count as alive for ever.
func (g unixGroup) hasMembers() bool {
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

func newProcessGroup(p *os.Process) (processGroup, error) { return unixGroup(p.Pid), nil }

// isResourceShortage: the limit of processes, or of memory.
func isResourceShortage(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOMEM)
}

func isTextBusy(err error) bool { return errors.Is(err, unix.ETXTBSY) }

func isUnusableProgram(err error) bool {
	return errors.Is(err, unix.ENOEXEC) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EINVAL)
}
