package client

import "syscall"

// detachedProcess is DETACHED_PROCESS of the Windows API: no console.
const detachedProcess = 0x00000008

// ownSession starts a process without the console of its parent, in a group of its own.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}
