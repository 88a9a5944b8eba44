package launcher

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// resources maps keys of isolation.Limit to the kernel's limits. RLIMIT_DATA counts private writable memory, touched or not.
var resources = map[string]int{
	"memory": unix.RLIMIT_DATA, "fileSize": unix.RLIMIT_FSIZE, "files": unix.RLIMIT_NOFILE, "cpuTime": unix.RLIMIT_CPU,
}

// ownProgram returns the path of this program. The link stays right if the file was replaced since the start, by an upgrade.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// addNamespaces makes the process be created in a user and a network namespace of its own. CAP_NET_ADMIN counts inside the
// namespace only, and lets the launcher switch the loopback on.
func addNamespaces(a *syscall.SysProcAttr) {
	a.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	a.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
}

// mapUser maps the user of a launcher's namespace to the user outside. The parent calls it when the launcher has sent
// readyMessage: until it has executed its program it shares this process's memory, and if that is hidden
// (stdio.HideProcess), its map files belong to root. Go's own mapping (SysProcAttr.UidMappings) writes them earlier, and
// fails then.
func mapUser(pid int) error {
	for _, m := range []struct {
		file, text string
	}{
		{"uid_map", fmt.Sprintf("%d %d 1", os.Geteuid(), os.Geteuid())},
		{"setgroups", "deny"}, // otherwise a group that denies access could be given up: user_namespaces(7)
		{"gid_map", fmt.Sprintf("%d %d 1", os.Getegid(), os.Getegid())},
	} {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/%s", pid, m.file), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(m.text)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// performSteps performs the steps in an order in which each leaves the next one possible: Landlock and the filter need
// no_new_privs, and the filter would refuse calls of the steps before it.
func performSteps(s *isolation.Steps, program string) *StepError {
	if s.Loopback {
		if err := enableLoopback(); err != nil {
			return newStepError("network", "", err)
		}
		if err := dropCapabilities(); err != nil {
			return newStepError("network", "", err)
		}
	}
	if s.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return newStepError("noNewPrivileges", "", err)
		}
	}
	if s.Files != nil {
		if failed := restrictFiles(s.Files, program); failed != nil {
			return failed
		}
	}
	if s.Filter != nil {
		if err := installFilter(s.Filter); err != nil {
			return newStepError("network", "", err)
		}
	}
	return nil
}

// enableLoopback switches the loopback interface on, which is off in a new network namespace.
func enableLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// dropCapabilities gives up CAP_NET_ADMIN and every other capability, so that the program cannot change its network.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	// The interface takes 64 capabilities in two words.
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// installFilter installs a seccomp filter for this thread. The kernel copies it, and it can never be removed.
func installFilter(program []isolation.Instruction) error {
	raw := make([]unix.SockFilter, len(program))
	for i, p := range program {
		raw[i] = unix.SockFilter{Code: p.Code, Jt: p.Jt, Jf: p.Jf, K: p.K}
	}
	// The address of the first element is needed below.
	if len(raw) == 0 {
		return unix.EINVAL
	}
	fprog := unix.SockFprog{Len: uint16(len(raw)), Filter: &raw[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Detect returns what this kernel can do, except for namespaces, which only Try shows. noLandlock and noFilter are reasons, and
// empty for what the kernel has.
func Detect() (landlockVersion int, noLandlock, noFilter string) {
	version, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		landlockVersion = int(version)
	case unix.ENOSYS:
		noLandlock = "it has no Landlock, or a container forbids it"
	case unix.EOPNOTSUPP:
		noLandlock = "Landlock is switched off when it starts"
	default:
		noLandlock = "Landlock does not answer: " + errno.Error()
	}
	// The question whether an action is known changes nothing and needs no rights.
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno = unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		noFilter = fmt.Sprintf("it does not filter system calls: %s", errno.Error())
	}
	return landlockVersion, noLandlock, noFilter
}
