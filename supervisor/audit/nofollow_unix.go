//go:build unix

package audit

import "syscall"

// noFollow makes the open fail for a symbolic link, also one that appeared after the look.
const noFollow = syscall.O_NOFOLLOW
