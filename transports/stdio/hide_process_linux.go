package stdio

import "golang.org/x/sys/unix"

func hideProcess() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
