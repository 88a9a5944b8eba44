//go:build unix

package transports

import (
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const guardianNeeded = true

func guardianAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
}

// endGroups asks every group to end and kills after grace what has not.
func endGroups(groups map[int]processIdentity, grace time.Duration) {
	signal := func(s syscall.Signal) {
		for pgid, id := range groups {
			if id.matchesGroup(pgid) {
				_ = unix.Kill(-pgid, s)
			} else {
				delete(groups, pgid)
			}
		}
	}
	signal(syscall.SIGTERM)
	for deadline := time.Now().Add(grace); len(groups) > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
		for pgid := range groups {
			if unix.Kill(-pgid, 0) == unix.ESRCH {
				delete(groups, pgid)
			}
		}
	}
	signal(syscall.SIGKILL)
}

// matchesGroup reports whether the group of that number is still the one that was meant.
func (id processIdentity) matchesGroup(pgid int) bool {
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return false
	}
	if id.start == 0 {
		return true // the system did not tell
	}
	if now := identifyProcess(pgid); now.start != 0 {
		return now.start == id.start
	}
	// The first process is gone. As long as the group has members its number is taken, and it had some a moment ago:
	// this process was told when it had none. So these are the ones, if they live where they should.
	for _, session := range memberSessions(pgid) {
		if session == id.session {
			return true
		}
	}
	return false
}
