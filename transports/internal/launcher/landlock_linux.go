package launcher

import (
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// A thread that executes another program next needs only three calls of Landlock. The library for it restricts every thread of
// the process, and would bring C code into programs that embed this one.

const (
	// readRights and writeRights are the rights that the lists Read and Write of isolation.Files are about.
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	// fileRights are the rights that the kernel accepts for a file; the others are of folders.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// ruleset is a Landlock ruleset under construction.
type ruleset struct {
	// handled are the rights that are refused unless a rule allows them.
	fd      int
	handled uint64
}

// restrictFiles restricts this thread, the program that it becomes, and all processes that the program starts. program is added
// to the readable files.
func restrictFiles(f *isolation.Files, program string) *StepError {
	var r ruleset
	if f.Write != nil {
		r.handled |= writeRights | unix.LANDLOCK_ACCESS_FS_READ_FILE // to keep terminals from being read: see allowNonTerminals
		if f.Version >= 3 {
			r.handled |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
		}
	}
	if f.Read != nil {
		r.handled |= readRights
	}
	// A domain that restricts any file refuses renames and links between folders unless a rule allows them.
	if f.Version >= 2 {
		r.handled |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if f.Bounds && f.Version >= 5 {
		r.handled |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: r.handled}
	size := unsafe.Sizeof(attr.Handled_access_fs) // the oldest kernels know the first field alone, and refuse a longer structure
	if f.Bounds && f.Version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		size = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return newStepError("write", "", errno)
	}
	r.fd = int(fd)
	// The domain stays in force without the descriptor.
	defer unix.Close(r.fd)
	// Devices that are missing (in a small container) are left out.
	for _, path := range isolation.Devices {
		if failed := r.allowPath("write", path, unix.LANDLOCK_ACCESS_FS_READ_FILE|writeRights|unix.LANDLOCK_ACCESS_FS_TRUNCATE|
			unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, true); failed != nil {
			return failed
		}
	}
	for _, path := range f.Write {
		if failed := r.allowPath("write", path, readRights|writeRights|unix.LANDLOCK_ACCESS_FS_REFER|unix.LANDLOCK_ACCESS_FS_TRUNCATE|
			unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, false); failed != nil {
			return failed
		}
	}
	// Without a list of writable folders, renames and links stay allowed everywhere.
	if f.Write == nil {
		if failed := r.allowPath("write", "/", unix.LANDLOCK_ACCESS_FS_REFER, false); failed != nil {
			return failed
		}
	}
	if f.OwnSandbox && f.Write != nil {
		// The numbers of later processes cannot be named yet, so that all of /proc is allowed. In the files of other processes a
		// server can write what the kernel lets any process of its user write: their priority when memory is short, but not their
		// memory.
		if failed := r.allowPath("ownSandbox", "/proc", unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_TRUNCATE, true); failed != nil {
			return failed
		}
	}
	if failed := r.allowNonTerminals(f); failed != nil {
		return failed
	}
	if f.Read != nil {
		system := isolation.SystemPaths
		if program != "" {
			system = append([]string{program}, system...)
		}
		for _, path := range system {
			if failed := r.allowPath("read", path, readRights, true); failed != nil {
				return failed
			}
		}
	}
	for _, path := range f.Read {
		if failed := r.allowPath("read", path, readRights, false); failed != nil {
			return failed
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return newStepError("write", "", errno)
	}
	return nil
}

// allowNonTerminals allows what only terminals must be kept from: reading files, where only writing is restricted, and the
// controls of devices, where writing is not. Landlock has no exceptions below a folder, so that it allows every entry of / and
// /dev but terminals. Entries that appear in these two folders later are not allowed.
func (r *ruleset) allowNonTerminals(f *isolation.Files) *StepError {
	var rights uint64
	if f.Write != nil && f.Read == nil {
		rights |= unix.LANDLOCK_ACCESS_FS_READ_FILE
	}
	if f.Write == nil {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if rights&r.handled == 0 {
		return nil
	}
	for _, dir := range []string{"/", "/dev"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return newStepError("write", dir, err)
		}
		for _, e := range entries {
			if e.Type()&os.ModeSymlink != 0 || dir == "/" && e.Name() == "dev" || dir == "/dev" && isolation.Terminal(e.Name()) {
				continue // the target of a link is named itself, or is a terminal
			}
			if failed := r.allowPath("write", filepath.Join(dir, e.Name()), rights, true); failed != nil {
				return failed
			}
		}
	}
	return nil
}

// allowPath gives rights to a path and everything below it. An optional path that does not exist is left out; any other one is an
// error.
func (r *ruleset) allowPath(step, path string, rights uint64, optional bool) *StepError {
	// The kernel refuses a rule with a right that the ruleset does not handle.
	if rights &= r.handled; rights == 0 {
		return nil
	}
	// O_PATH needs no right to read the file.
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if optional {
			return nil
		}
		return newStepError(step, path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return newStepError(step, path, err)
	}
	// The kernel refuses rights of folders on a file.
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return newStepError(step, path, errno)
	}
	return nil
}
