//go:build unix

package proxy

import (
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// processGroup is the process group of a server. Its id cannot be given to another group until awaitGroupEnd has returned,
// because until then a process of the group may exist; afterwards signalGroup does nothing.
type processGroup struct {
	pid   int
	ended atomic.Bool
	// release tells the guard that the group has ended.
	release func()
}

func groupAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// newProcessGroup returns the group of a process that was started with groupAttributes. The guard, if there is one, ends the group
// when this program is killed.
func newProcessGroup(p *os.Process, guard stdio.Guard) *processGroup {
	g := &processGroup{pid: p.Pid, release: func() {}}
	if guard != nil {
		g.release = guard.Watch(p.Pid)
	}
	return g
}

// signalGroup sends a signal to every process of the group.
func (g *processGroup) signalGroup(s syscall.Signal) {
	if !g.ended.Load() {
		// An error means that no process is left.
		_ = unix.Kill(-g.pid, s)
	}
}

// terminate also continues the group, because a stopped process would not handle SIGTERM.
func (g *processGroup) terminate() { g.signalGroup(unix.SIGTERM); g.signalGroup(unix.SIGCONT) }
func (g *processGroup) kill()      { g.signalGroup(unix.SIGKILL) }
func (g *processGroup) stop()      { g.signalGroup(unix.SIGSTOP) }
func (g *processGroup) resume()    { g.signalGroup(unix.SIGCONT) }

// forwardSignal passes a signal of this process on to the group.
func (g *processGroup) forwardSignal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		g.signalGroup(n)
	}
}

// awaitGroupEnd waits until the group is empty. It kills the group after grace, and gives up after a second grace. The server
// itself has been waited for already.
func (g *processGroup) awaitGroupEnd(grace time.Duration) {
	deadline := time.Now().Add(grace)
	for killed := false; unix.Kill(-g.pid, 0) == nil; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			// Only zombies whose parent does not collect them survive SIGKILL.
			if killed {
				break
			}
			g.kill()
			killed, deadline = true, time.Now().Add(grace)
		}
	}
	g.ended.Store(true)
	g.release()
}

func isTerminate(s os.Signal) bool { return s == syscall.SIGTERM }

// signalNamed finds a signal by its name, with or without SIG. An unknown name gives SIGKILL.
func signalNamed(name string) syscall.Signal {
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if s := unix.SignalNum(name); s != 0 {
		return s
	}
	return unix.SIGKILL
}
