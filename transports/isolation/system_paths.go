package isolation

import "strings"

// SystemPaths are the paths that a server may read and execute whatever "read" says, because no program starts on Linux without
// them. Those that do not exist are left out. Homes, temporary files, shared memory, data of services and mounted disks are not
// among them.
var SystemPaths = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store",
	"/run/current-system", "/run/systemd/resolve", "/proc", "/sys",
}

// Devices may be read and written whatever "write" and "read" say, because they store nothing. Terminals are not among them: a
// server could print a question there that seems to be mcpvisor's, and read what the person types.
var Devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// Terminal reports whether a name in /dev belongs to a terminal, to a device that makes terminals, or to the screens of the
// console.
func Terminal(name string) bool {
	for _, prefix := range []string{"tty", "pty", "pts", "ptmx", "console", "vcs", "hvc", "xvc"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
