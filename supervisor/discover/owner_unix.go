//go:build unix

package discover

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// openToOthers says why other users may write a file or the entries of a folder; empty if they may not. Files of the
// administrator count as safe. A folder with the sticky bit lets every user add files and lets none replace those of
// others. A group that contains the person alone (by its number or name) counts as the person.
func openToOthers(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	mode := info.Mode()
	switch {
	case int(st.Uid) != os.Getuid() && st.Uid != 0:
		return "belongs to another user"
	case mode.IsDir() && mode&fs.ModeSticky != 0:
		return ""
	case mode.Perm()&0o002 != 0:
		return "can be written by everybody (" + mode.Perm().String() + ")"
	case mode.Perm()&0o020 != 0 && !isOwnGroup(st.Uid, st.Gid):
		return "can be written by a group of users (" + mode.Perm().String() + ")"
	}
	return ""
}

// isOwnGroup reports whether a group is that of one user alone, as most systems create one for each user, or the
// administrator's.
func isOwnGroup(uid, gid uint32) bool {
	if gid == uid || gid == 0 {
		return true
	}
	owner, err := user.LookupId(strconv.Itoa(int(uid)))
	if err != nil {
		return false
	}
	group, err := user.LookupGroupId(strconv.Itoa(int(gid)))
	return err == nil && group.Name == owner.Username
}
