//go:build !unix

package proxy

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
)

// group is the server's process where there are no process groups: what it starts itself ends with its pipes, or not.
type group struct {
	p  *os.Process
	mu sync.Mutex
}

func groupAttributes() *syscall.SysProcAttr { return nil }

func newGroup(p *os.Process, _ transports.Guard) *group { return &group{p: p} }

func (g *group) terminate() {}
func (g *group) stop()      {}
func (g *group) resume()    {}

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.p.Kill() // what cannot be killed is gone
}

func (g *group) signal(s os.Signal) {
	if s == os.Interrupt {
		return // the console has told the server itself
	}
	g.kill()
}

func (g *group) end(time.Duration) {}

func isTerminate(s os.Signal) bool { return s == syscall.SIGTERM }

func signalNamed(string) syscall.Signal { return syscall.SIGKILL }
