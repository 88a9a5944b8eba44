package live

import (
	"context"
	"os"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/resources"
)

const (
	// pollInterval is the time between two checks of the settled state. steadyTime is how long it must hold without a break: by
	// then a server that is about to fall again has fallen, and the manager has followed the notifications.
	pollInterval = 50 * time.Millisecond
	steadyTime   = 3 * time.Second
)

// awaitSettled waits until the healed servers have been settled for steadyTime, or until the plan's end.
func (r *run) awaitSettled(ctx context.Context) {
	since := time.Duration(0)
	for r.elapsedTime() < r.plan.End && r.sleepUntil(ctx, r.elapsedTime()+pollInterval) {
		if !r.isSettled() {
			since = 0
			continue
		}
		if since == 0 {
			since = r.elapsedTime()
		}
		if r.elapsedTime()-since >= steadyTime {
			return
		}
	}
}

// isSettled reports whether every server is in the state that the owner wants, and the manager's catalog shows the tools that
// the server offers now.
func (r *run) isSettled() bool {
	snap := r.manager.Tools()
	for _, srv := range r.plan.Servers {
		st, err := r.manager.ServerStatus(srv.Name)
		switch r.driver.wantedStateOf(srv.Name) {
		case wantRemoved:
			if err == nil {
				return false
			}
			continue
		case wantDisabled:
			if err != nil || st.Status != messages.Disabled {
				return false
			}
			continue
		case wantConnected:
		}
		resting := err == nil && st.Status == messages.Pending && st.Step == messages.Idle
		if srv.Disabled || resting {
			// The server is disabled in the plan, or the manager has let it go idle.
			continue
		}
		if err == nil && (st.Status == messages.NeedsAuth || st.Status == messages.Failed && st.Retry == messages.RetryNever) {
			// Only a person could sign in or correct the spec, and the run has none.
			continue
		}
		if err != nil || st.Status != messages.Connected {
			return false
		}
		if r.servers.Server(srv.Name).ToolsHash() != r.settledHashes.hashOf(srv.Name, snap.Server(srv.Name)) {
			return false
		}
	}
	return true
}

// scanForSecrets looks for secrets where they may have collected during the run: in each server's status and history, and in
// the arguments of its processes, which every user of the machine can read.
func (r *run) scanForSecrets() {
	for _, srv := range r.plan.Servers {
		if st, err := r.manager.ServerStatus(srv.Name); err == nil {
			r.secrets.checkStatus(&st)
		}
		entries, err := r.manager.History(srv.Name)
		if err != nil {
			continue
		}
		for _, e := range entries {
			r.secrets.checkText(srv.Name, "the history", e.Text)
			r.secrets.checkText(srv.Name, "the history (standard error)", e.Stderr)
		}
		for _, pid := range r.servers.Server(srv.Name).ChildPIDs() {
			r.secrets.checkForSecret(srv.Name, "the arguments of a process", resources.Arguments(pid))
		}
	}
}

// cleanupTimeout bounds the wait until processes, and then descriptors and goroutines, are back at their old numbers. Zombies
// of the init process, the runtime's own goroutines and closed sockets take a moment.
const cleanupTimeout = 8 * time.Second

// checkLeftovers first waits for the manager's processes to end, then releases what the harness itself holds, and waits until
// this process holds no more than before. It records what is left, and kills leftover processes.
func (r *run) checkLeftovers(before history.ResourceUsage, lag time.Duration) {
	r.progress.enterStage("cleaning")
	marks := resources.Options{Mark: r.servers.Mark(), Known: r.knownProcesses}
	now := resources.Count(marks)
	for deadline := time.Now().Add(cleanupTimeout); now.Processes > before.Processes && time.Now().Before(deadline); {
		time.Sleep(pollInterval)
		now = resources.Count(marks)
	}
	// The processes are named before Close: it ends the control connections, and leftover processes would end with them.
	r.releaseEndedConns()
	leftover := resources.Processes(marks)
	r.servers.Close()
	for deadline := time.Now().Add(cleanupTimeout); time.Now().Before(deadline); time.Sleep(pollInterval) {
		now = resources.Count(marks)
		if now.Descriptors <= before.Descriptors && now.Goroutines <= before.Goroutines {
			break
		}
	}
	// The heap must hold nothing of the run, so that it can be compared with the baseline.
	r.servers, r.manager, r.tokens = nil, nil, nil
	now.Heap, now.Lag = resources.Heap(), lag
	for _, p := range leftover {
		now.Left = append(now.Left, p.String())
		killProcess(p.PID)
	}
	if now.Goroutines > before.Goroutines {
		now.Left = append(now.Left, resources.Goroutines(now.Goroutines-before.Goroutines)...)
	}
	r.recordEvent(history.Event{Side: history.Harness, Kind: history.Resources, Text: "after close", House: &now})
}

// connEndTimeout bounds the wait until the harness sees the ends of the sockets that the manager has closed.
const connEndTimeout = 2 * time.Second

// releaseEndedConns releases the connections of which no socket is open, because a client over HTTP need not announce its end.
func (r *run) releaseEndedConns() {
	for deadline := time.Now().Add(connEndTimeout); time.Now().Before(deadline); time.Sleep(pollInterval) {
		if r.servers.ReleaseEnded() == 0 {
			return
		}
	}
}

// killProcess ends a process at once. A process that has ended already is no error.
func killProcess(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}
