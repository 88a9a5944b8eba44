package daemon

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// projectControl lets the other commands find the servers of a host: by the control socket of its directory, and the journal. Of two hosts of
// one directory, whose servers have other values of variables, one has them, and at its end the other takes them.
type projectControl struct {
	// mu is held while the socket is opened or closed.
	mu    sync.Mutex
	dir   string
	own   *supervisor.Manager
	local control.LocalConfig
	// ready says that the servers are there, ended that they are not any more.
	ready, ended bool
	// socket is changed with mu held; nil without one.
	socket  atomic.Pointer[control.Server]
	journal *runningJournal
	// refused is since when another process has the socket, and retry the next attempt to get it then.
	refused time.Time
	retry   *time.Timer
}

// handover bounds the time in which a daemon that is followed by this one ends, and leaves the control sockets to it. handoverCheck is the time
// between two attempts to get one.
const (
	handover      = drainTime + closeTime
	handoverCheck = 200 * time.Millisecond
)

// begin says whose servers are to be found.
func (c *projectControl) begin(dir string, own *supervisor.Manager, local control.LocalConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dir, c.own, c.local, c.ready = dir, own, local, true
}

// open opens the socket and begins the journal, unless that was done; a socket whose file has gone it opens anew. If another process has
// them, the host goes on without: only the other commands do not find it. That process may be the daemon which this one follows, so open tries
// again until that must have ended, and complains only then.
func (c *projectControl) open(d *daemon) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ready || c.ended {
		return
	}
	if socket := c.socket.Load(); socket != nil {
		if err := socket.Restore(); err != nil {
			d.reportFailure(err)
		}
		return
	}
	location, err := control.LocationOf(c.dir)
	if err == nil {
		var socket *control.Server
		if socket, err = control.Serve(location, control.Local(c.own, c.local)); err == nil {
			c.socket.Store(socket)
			c.journal, err = startJournal(location.Journal, c.own, c.local)
		}
	}
	switch {
	case err == nil:
	case !errors.Is(err, control.ErrRunning):
		d.reportFailure(err)
	case d.hasOtherHost(c): // that one passes it on
	case c.refused.IsZero() || time.Since(c.refused) < handover:
		c.awaitHandover(d)
	default:
		d.reportFailure(err)
	}
}

// awaitHandover has open called again in a moment. The caller holds mu.
func (c *projectControl) awaitHandover(d *daemon) {
	if c.refused.IsZero() {
		c.refused = time.Now()
	}
	if c.retry != nil {
		c.retry.Reset(handoverCheck)
		return
	}
	c.retry = time.AfterFunc(handoverCheck, func() { // it ends with announceEnd
		defer d.recoverPanic()
		c.open(d)
	})
}

// isBusy reports whether a command is being answered.
func (c *projectControl) isBusy() bool {
	socket := c.socket.Load()
	return socket != nil && socket.IsBusy()
}

// announceEnd is called before the servers end: the journal ends with what they were.
func (c *projectControl) announceEnd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.retry != nil {
		c.retry.Stop()
	}
	if socket := c.socket.Load(); socket != nil {
		socket.Quiesce()
		c.journal.stopWriting()
	}
}

// close gives the socket up. It may be called more than once.
func (c *projectControl) close(d *daemon) {
	c.announceEnd()
	c.mu.Lock()
	defer c.mu.Unlock()
	socket := c.socket.Load()
	if socket == nil {
		return
	}
	err := errors.Join(socket.Close(), c.journal.closeFile())
	if c.socket.Store(nil); err != nil {
		d.reportFailure(err)
	}
}

// hasOtherHost reports whether the directory of a control socket has another host.
func (d *daemon) hasOtherHost(c *projectControl) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.hosts {
		if &h.control != c && h.dir == c.dir {
			return true
		}
	}
	return false
}
