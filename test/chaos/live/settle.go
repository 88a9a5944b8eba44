package live

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/resources"
)

const (
	// pollInterval is how often it is looked if all is well, steady how long it must have been without a break: a server
	// that is about to fall again has done so by then, and notifications have been followed.
	pollInterval = 50 * time.Millisecond
	steadyTime   = 3 * time.Second
)

// awaitSettled waits until the healed world is well again, or until the plan's end.
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

// isSettled reports whether every server is what was asked of it, and the catalog shows what it offers.
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
			continue // configured so, or let go: nobody uses it
		}
		if err == nil && (st.Status == messages.NeedsAuth || st.Status == messages.Failed && st.Retry == messages.RetryNever) {
			continue // only a person can help, and nobody does any more
		}
		if err != nil || st.Status != messages.Connected {
			return false
		}
		if r.servers[srv.Name].currentToolsHash() != r.settledHashes.hashOf(srv.Name, snap.Server(srv.Name)) {
			return false
		}
	}
	return true
}

// currentToolsHash is the hash of what the server offers now.
func (s *chaosServer) currentToolsHash() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offeredHash
}

// scanForSecrets looks for secrets where they could have been kept until now: in the past of each server, and in the arguments of
// its processes, which everybody on the machine can read.
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
		for _, pid := range r.servers[srv.Name].childPIDs() {
			r.secrets.checkForSecret(srv.Name, "the arguments of a process", resources.Arguments(pid))
		}
	}
}

// cleanupTimeout is how long the house has to become clean after the manager has closed. Zombies of the init process, the
// runtime's own goroutines and closed sockets take a moment.
const cleanupTimeout = 8 * time.Second

// checkLeftovers ends what the harness itself has, waits until this process holds what it held before, and records what it
// holds. What is left then is killed.
func (r *run) checkLeftovers(before history.ResourceUsage, lag time.Duration) {
	r.progress.enterStage("cleaning")
	marks := resources.Options{Mark: r.children.address, Known: r.knownProcesses}
	now := resources.Count(marks)
	for deadline := time.Now().Add(cleanupTimeout); now.Processes > before.Processes && time.Now().Before(deadline); {
		time.Sleep(pollInterval)
		now = resources.Count(marks)
	}
	r.releaseEndedConns()
	leftover := resources.Processes(marks)
	r.releaseAll()
	for deadline := time.Now().Add(cleanupTimeout); time.Now().Before(deadline); time.Sleep(pollInterval) {
		now = resources.Count(marks)
		if now.Descriptors <= before.Descriptors && now.Goroutines <= before.Goroutines {
			break
		}
	}
	r.servers, r.children.servers, r.manager, r.tokens = nil, nil, nil, nil // what the harness itself remembers
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

// connEndTimeout is how long the ends of sockets that the manager has closed may take to be seen.
const connEndTimeout = 2 * time.Second

// releaseEndedConns releases the connections of which nothing is open: over HTTP a client need not say that it goes.
func (r *run) releaseEndedConns() {
	for deadline := time.Now().Add(connEndTimeout); time.Now().Before(deadline); time.Sleep(pollInterval) {
		open := 0
		for _, s := range r.servers {
			open += s.releaseEnded()
		}
		if open == 0 {
			return
		}
	}
}

// releaseEnded releases what is over, and says how many connections are not.
func (s *chaosServer) releaseEnded() (open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseEndedLocked()
	return len(s.conns)
}
