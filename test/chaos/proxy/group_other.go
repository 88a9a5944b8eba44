//go:build !unix

package proxy

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// processGroup is the server's process on a system without process groups. Processes that the server starts end when their
// pipes close, or not at all.
type processGroup struct {
	p  *os.Process
	mu sync.Mutex
}

func groupAttributes() *syscall.SysProcAttr { return nil }

func newProcessGroup(p *os.Process, _ stdio.Guard) *processGroup { return &processGroup{p: p} }

// terminate, stop and resume do nothing, because the system has no such signals.
func (g *processGroup) terminate() {}
func (g *processGroup) stop()      {}
func (g *processGroup) resume()    {}

// kill ends the process itself; what it has started lives on, because this system has no groups of processes.
func (g *processGroup) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	// An error means that the process has ended.
	_ = g.p.Kill()
}

// forwardSignal ends the process for any signal but an interrupt.
func (g *processGroup) forwardSignal(s os.Signal) {
	if s == os.Interrupt {
		// The console has sent the interrupt to the server as well.
		return
	}
	g.kill()
}

func (g *processGroup) awaitGroupEnd(time.Duration) {}

func isTerminate(s os.Signal) bool { return s == syscall.SIGTERM }

func signalNamed(string) syscall.Signal { return syscall.SIGKILL }
