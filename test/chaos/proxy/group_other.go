//go:build !unix

package proxy

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
)

// processGroup is the server's process where there are no process groups: what it starts itself ends with its pipes, or not.
type processGroup struct {
	p  *os.Process
	mu sync.Mutex
}

func groupAttributes() *syscall.SysProcAttr { return nil }

func newProcessGroup(p *os.Process, _ transports.Guard) *processGroup { return &processGroup{p: p} }

func (g *processGroup) terminate() {}
func (g *processGroup) stop()      {}
func (g *processGroup) resume()    {}

func (g *processGroup) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.p.Kill() // what cannot be killed is gone
}

func (g *processGroup) forwardSignal(s os.Signal) {
	if s == os.Interrupt {
		return // the console has told the server itself
	}
	g.kill()
}

func (g *processGroup) awaitGroupEnd(time.Duration) {}

func isTerminate(s os.Signal) bool { return s == syscall.SIGTERM }

func signalNamed(string) syscall.Signal { return syscall.SIGKILL }
