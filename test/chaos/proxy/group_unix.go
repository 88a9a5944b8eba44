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

// group is the process group of a server. Its id cannot belong to anybody else until end has been called, because the
// last thing that end does is to see that nobody is left.
type group struct {
	pid     int
	over    atomic.Bool
	release func()
}

func groupAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func newGroup(p *os.Process, guard transports.Guard) *group {
	g := &group{pid: p.Pid, release: func() {}}
	if guard != nil {
		g.release = guard.Watch(p.Pid)
	}
	return g
}

func (g *group) send(s syscall.Signal) {
	if !g.over.Load() {
		_ = unix.Kill(-g.pid, s) // what cannot be signalled is gone
	}
}

func (g *group) terminate() { g.send(unix.SIGTERM); g.send(unix.SIGCONT) }
func (g *group) kill()      { g.send(unix.SIGKILL) }
func (g *group) stop()      { g.send(unix.SIGSTOP) }
func (g *group) resume()    { g.send(unix.SIGCONT) }

func (g *group) signal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		g.send(n)
	}
}

// end waits for the group to be empty, and kills it when that takes too long. The server itself has been waited for.
func (g *group) end(grace time.Duration) {
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
	g.over.Store(true)
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
