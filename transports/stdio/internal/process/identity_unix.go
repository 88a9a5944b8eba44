//go:build unix

package process

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// EndGroups sends SIGTERM to every group, and SIGKILL after grace to those that are left. It forgets groups whose number was
// given to others.
func EndGroups(groups map[int]Identity, grace time.Duration) {
	signal := func(s syscall.Signal) {
		for pgid, id := range groups {
			if id.matchesGroup(pgid) {
				_ = unix.Kill(-pgid, s)
			} else {
				delete(groups, pgid)
			}
		}
	}
	// All groups get the same grace together, so that the end of many takes no longer than that of one.
	signal(syscall.SIGTERM)
	for deadline := time.Now().Add(grace); len(groups) > 0 && time.Now().Before(deadline); {
		// Groups that have ended are forgotten at once: their numbers may be given to others before the SIGKILL.
		time.Sleep(10 * time.Millisecond)
		for pgid := range groups {
			if unix.Kill(-pgid, 0) == unix.ESRCH {
				delete(groups, pgid)
			}
		}
	}
	signal(syscall.SIGKILL)
}

// matchesGroup reports whether the group of that number is still the one that was announced.
func (id Identity) matchesGroup(pgid int) bool {
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return false
	}
	if id.Start == 0 {
		return true // the system did not say
	}
	if now := Identify(pgid); now.Start != 0 {
		return now.Start == id.Start
	}
	// The first process is gone. As long as the group has members its number is taken, and it had members a moment ago, because
	// no release has come. So these are its members if they are in the announced session.
	for _, session := range memberSessions(pgid) {
		if session == id.Session {
			return true
		}
	}
	return false
}
