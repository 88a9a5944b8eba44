//go:build unix

package proxy

import (
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/transports"
)

// processGroup is the process group of a server. Its id cannot belong to anybody else until end has been called, because the
// last thing that end does is to see that nobody is left.
type processGroup struct {
	pid     int
	ended   atomic.Bool
	release func()
}

func groupAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func newProcessGroup(p *os.Process, guard transports.Guard) *processGroup {
	g := &processGroup{pid: p.Pid, release: func() {}}
	if guard != nil {
		g.release = guard.Watch(p.Pid)
	}
	return g
}

func (g *processGroup) signalGroup(s syscall.Signal) {
	if !g.ended.Load() {
		_ = unix.Kill(-g.pid, s) // what cannot be signalled is gone
	}
}

func (g *processGroup) terminate() { g.signalGroup(unix.SIGTERM); g.signalGroup(unix.SIGCONT) }
func (g *processGroup) kill()      { g.signalGroup(unix.SIGKILL) }
func (g *processGroup) stop()      { g.signalGroup(unix.SIGSTOP) }
func (g *processGroup) resume()    { g.signalGroup(unix.SIGCONT) }

func (g *processGroup) forwardSignal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		g.signalGroup(n)
	}
}

// awaitGroupEnd waits for the group to be empty, and kills it when that takes too long. The server itself has been waited for.
func (g *processGroup) awaitGroupEnd(grace time.Duration) {
	deadline := time.Now().Add(grace)
	for killed := false; unix.Kill(-g.pid, 0) == nil; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			if killed { // only zombies of somebody else can outlive this
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

// signalNamed finds a signal by its name, with or without SIG; KILL if there is none of that name.
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
