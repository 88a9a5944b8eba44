// Package daemon holds the process that keeps the servers of one user for all agents: the hidden command that is the daemon, and how
// a bridge finds or starts it.
//
// How it fits: package connect calls [Dial], which gives it a connection to the daemon. On it bridge and daemon greet each other
// (hello.go); after that the daemon serves MCP on it by transports/serve, from the gateway of the directory's servers. Each
// directory with servers of its own has a manager, and all others share that of the user's servers (host.go). Package control owns
// the socket, its lock, and the decision whether a peer may use it.
//
//	agent ── stdio ── mcpvisor connect ══ socket ══ daemon ── serve.Stdio ── gateway ── manager ── servers
//
//	daemon.go  the command: accepts bridges, ends when nobody needs it
//	bridge.go  what one bridge is served, from its greeting to its end; bridge_conn.go its connection
//	succession.go  for which bridges the daemon gives way
//	host.go    what serves the agents of one directory: its parts, their gateway
//	control.go  the control socket and the journal of a host
//	part.go    one manager: of a project, or of the user's servers, which all projects share
//	variables.go  which variables of an agent are asked for, and who has which
//	hello.go   what bridge and daemon say to each other before the messages
//	start.go   finds, starts and ends the daemon
//
// Guarantees: one daemon for each user, also if many bridges begin at once; it has a session of its own and outlives the agent that
// started it. It ends ten minutes after its last bridge. It gets no variable of an agent but those that approved entries mention,
// and a few that every program has. A server that waits for an approval is not started.
//
// Not promised: that the variables of two agents are alike. Servers run once for each set of values, and a server whose command is
// found in PATH once for each program that it is. The directories in which a program is looked for are its agent's, and behind them those of
// all others; the programs that it starts itself are found in those of the agent that came first.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/supervisor/sparing"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

const (
	// defaultIdle is how long a daemon without bridges goes on, and how long servers without agents do.
	defaultIdle = 10 * time.Minute
	// drainTime bounds the calls that are answered before a daemon ends, closeTime the end of the servers after that.
	drainTime = client.DrainTime
	closeTime = client.CloseTime
	// socketCheck is the time between two looks at the file of the socket.
	socketCheck = 2 * time.Second
	// successorTime bounds how long a daemon that gives way serves its agents until the next one accepts bridges.
	successorTime = 10 * time.Second
	// unreadBytes bounds the answers that all agents together have not read; the agent that has most is refused first.
	unreadBytes = 256 << 20
	// maxBridges bounds the connections at a time; further ones are refused.
	maxBridges = 1024
)

// NewCommand returns the hidden command of the daemon.
func NewCommand(o *cli.Options) *cobra.Command {
	idle := defaultIdle
	cmd := &cobra.Command{
		Use:    client.Command,
		Short:  "Keep the servers of this user for all agents",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.ReportAtOnce()
			return runDaemon(cmd.Context(), o, idle)
		},
	}
	cmd.Flags().DurationVar(&idle, "idle", defaultIdle, "end this `time` after the last bridge")
	return cmd
}

// daemon is the state of the process. One goroutine accepts connections, each of which has a goroutine of its own.
type daemon struct {
	options  *cli.Options
	listener *control.DaemonListener
	idle     time.Duration
	// own is the program of this process.
	own program
	// limits bound what all managers start and hold, and guard ends their processes if this one is killed; nil if it could not be started.
	limits *supervisor.SharedLimits
	guard  *stdio.Guardian
	// unread bounds the bytes of the answers that agents have not read.
	unread *budget.Budget
	// leftBehind says that servers have not ended in time.
	leftBehind atomic.Bool
	// failures limits how often one failure is written to the log: a peer may try without pause.
	failures sparing.Limiter
	// end makes runDaemon return; the first cause counts.
	end context.CancelCauseFunc

	// mu guards the fields below.
	mu sync.Mutex
	// bridges holds the connections that are served, hosts the servers by the key of hostKey.
	bridges map[*bridgeConn]bool
	hosts   map[string]*host
	// parts holds the managers of the hosts by their keys.
	parts map[string]*part
	// unused ends the daemon when it fires; it runs while there is no bridge.
	unused *time.Timer
	// ending says that no bridge is accepted any more, replaced that a newer daemon follows.
	ending, replaced bool
	// awaiting holds the connections of those who wait for the end of the process.
	awaiting []net.Conn
	// running counts the goroutines of connections, closing the hosts that were taken out of hosts and whose servers are ending. It grows with mu
	// held and before the daemon is ending, or by a goroutine of running.
	running, closing sync.WaitGroup
}

// runDaemon is the daemon from its first connection to the end of its servers.
func runDaemon(ctx context.Context, o *cli.Options, idle time.Duration) error {
	location, err := control.DaemonLocationOf()
	if err != nil {
		return err
	}
	listener, err := control.ListenDaemon(location)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// A terminal that is closed ends its programs by this signal; the daemon is nobody's.
	signal.Ignore(syscall.SIGHUP)
	d := &daemon{options: o, listener: listener, idle: idle, own: ownProgram(), end: end, bridges: map[*bridgeConn]bool{},
		hosts: map[string]*host{}, parts: map[string]*part{}, limits: supervisor.NewSharedLimits(restart.Limits{}, 0),
		unread: budget.New(unreadBytes)}
	if d.guard, err = guardian.Start(); err != nil {
		d.guard = nil
		d.reportFailure(fmt.Errorf("no guardian could be started: servers may stay behind if this process is killed: %w", err))
	}
	d.unused = time.AfterFunc(idle, d.endUnused)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() { // it ends with the listener
		defer d.recoverPanic()
		d.acceptBridges(serving)
	}()
	go func() { // it ends with ctx
		defer d.recoverPanic()
		d.watchSocket(ctx)
	}()
	<-ctx.Done()
	d.drainBridges(context.Cause(ctx))
	stop()
	d.running.Wait()
	d.closeHosts()
	d.closing.Wait()
	// Otherwise the guardian has work to do, and does it when this process is gone.
	if d.guard != nil && !d.leftBehind.Load() {
		d.guard.Close()
	}
	return nil
}

// endUnused ends the daemon some time after its last bridge, unless it holds servers without one. Just while a command uses the servers of a
// project it waits as long again.
func (d *daemon) endUnused() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.bridges) > 0 {
		return
	}
	busy := false
	for _, h := range d.hosts {
		if h.held {
			return
		}
		busy = busy || h.isUsed()
	}
	if busy {
		d.unused.Reset(d.idle)
		return
	}
	d.end(errUnused)
}

// watchSocket restores the socket when a cleaning of the runtime directory has removed it. If another daemon has begun meanwhile,
// this one ends: its agents go on with the other.
func (d *daemon) watchSocket(ctx context.Context) {
	t := time.NewTicker(socketCheck)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		switch err := d.listener.Restore(); {
		case errors.Is(err, control.ErrRunning):
			d.end(err)
		case err != nil:
			d.reportFailure(err)
		}
	}
}

// errReplaced is the cause of the end of a daemon that gives way.
var errReplaced = errors.New("a newer mcpvisor takes its place")

// errStopped is the cause of the end of a daemon that a person has ended by a command. One who ends it by a signal cancels the context.
var errStopped = errors.New("it was asked to end")

// errUnused is the cause of the end of a daemon that nobody needs.
var errUnused = errors.New("no agent has used it")

// recoverPanic ends the daemon in good order after a panic.
func (d *daemon) recoverPanic() {
	if p := recover(); p != nil {
		d.reportFailure(fmt.Errorf("a defect of mcpvisor: %s", messages.Line(fmt.Sprint(p), 400)))
		d.end(errors.New("a defect of mcpvisor"))
	}
}

// reportFailure writes an error into the log of the daemon.
func (d *daemon) reportFailure(err error) {
	now := time.Now()
	skipped, say := d.failures.Allow(string(messages.ClassOf(err)), now)
	if !say {
		return
	}
	text := messages.Line(err.Error(), 800)
	if skipped > 0 {
		text += fmt.Sprintf(" (and %d times more in the minute before)", skipped)
	}
	fmt.Fprintf(d.options.Err, "%s mcpvisor: %s\n", now.Format(time.RFC3339), text)
}

// acceptBridges accepts connections until the listener is closed.
func (d *daemon) acceptBridges(ctx context.Context) {
	for {
		conn, examine, err := d.listener.AcceptPeer()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no more descriptors: the bridges that are there go on, and more fit in later
			d.reportFailure(err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		b := &bridgeConn{Conn: conn}
		if !d.addBridge(b) {
			_ = client.WriteLine(conn, client.Welcome{Protocol: client.Protocol, Draining: d.isEnding(), Error: "too many agents are connected"})
			_ = conn.Close()
			continue
		}
		go func() {
			defer d.removeBridge(b)
			defer d.recoverPanic()
			if err := d.serveBridge(ctx, b, examine); err != nil {
				d.reportFailure(err)
			}
		}()
	}
}

// addBridge counts a connection. It reports false if there is no room, or the daemon is ending.
func (d *daemon) addBridge(b *bridgeConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ending || len(d.bridges) >= maxBridges {
		return false
	}
	d.running.Add(1)
	d.bridges[b] = true
	d.unused.Stop()
	return true
}

// removeBridge ends a connection. The time without bridges begins with the last one.
func (d *daemon) removeBridge(b *bridgeConn) {
	d.mu.Lock()
	if !slices.Contains(d.awaiting, b.Conn) {
		_ = b.Close() // the bridge learns by it
	}
	delete(d.bridges, b)
	if len(d.bridges) == 0 && !d.ending {
		d.unused.Reset(d.idle)
	}
	d.mu.Unlock()
	d.running.Done()
}

// awaitEnd keeps a connection open until the process has ended, by which the other side notices that.
func (d *daemon) awaitEnd(b *bridgeConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.awaiting = append(d.awaiting, b.Conn)
}

func (d *daemon) isEnding() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ending
}

// drainBridges ends the daemon for its bridges: none is accepted any more, those that are there send nothing more, and what they have sent
// is answered within drainTime. An agent that does not read then loses what it was sent. Where another daemon follows, bridges of older
// programs, told before it is there, would each start one of their own program, and those give way one after the other. Where a person has
// ended the daemon, idle agents must not start the next one.
func (d *daemon) drainBridges(cause error) {
	replaced, line := errors.Is(cause, errReplaced), client.DrainLine
	if errors.Is(cause, errStopped) || errors.Is(cause, context.Canceled) {
		line = client.StopLine
	}
	d.mu.Lock()
	d.ending, d.replaced = true, replaced
	d.unused.Stop()
	var all []*bridgeConn
	for b := range d.bridges {
		all = append(all, b)
	}
	d.mu.Unlock()
	d.listener.StopListening()
	for given := time.Now().Add(successorTime); replaced && !d.listener.HasSuccessor() && time.Now().Before(given); {
		time.Sleep(5 * time.Millisecond)
	}
	deadline := time.Now().Add(drainTime)
	for _, b := range all {
		go func() { // it ends at the deadline at the latest
			defer d.recoverPanic()
			b.announceEnd(line, deadline)
		}()
	}
	for time.Now().Before(deadline) && d.countBridges() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// countBridges returns how many bridges are there.
func (d *daemon) countBridges() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.bridges)
}
