package live

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/house"
)

const (
	// lookEvery is how often it is looked if all is well, steady how long it must have been without a break: a server
	// that is about to fall again has done so by then, and notifications have been followed.
	lookEvery = 50 * time.Millisecond
	steady    = 3 * time.Second
)

// settle waits until the healed world is well again, or until the plan's end.
func (r *run) settle(ctx context.Context) {
	since := time.Duration(0)
	for r.now() < r.plan.End && r.sleepUntil(ctx, r.now()+lookEvery) {
		if !r.well() {
			since = 0
			continue
		}
		if since == 0 {
			since = r.now()
		}
		if r.now()-since >= steady {
			return
		}
	}
}

// well reports whether every server is what was asked of it, and the catalog shows what it offers.
func (r *run) well() bool {
	snap := r.manager.Tools()
	for _, srv := range r.plan.Servers {
		st, err := r.manager.ServerStatus(srv.Name)
		switch r.driver.wishOf(srv.Name) {
		case removed:
			if err == nil {
				return false
			}
			continue
		case unwanted:
			if err != nil || st.Status != messages.Disabled {
				return false
			}
			continue
		case wanted:
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
		if r.seats[srv.Name].offers() != r.sums.of(srv.Name, snap.Server(srv.Name)) {
			return false
		}
	}
	return true
}

// offers is the hash of what the server offers now.
func (s *seat) offers() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.truth
}

// scan looks for secrets where they could have been kept until now: in the past of each server, and in the arguments of
// its processes, which everybody on the machine can read.
func (r *run) scan() {
	for _, srv := range r.plan.Servers {
		if st, err := r.manager.ServerStatus(srv.Name); err == nil {
			r.secrets.status(&st)
		}
		past, err := r.manager.History(srv.Name)
		if err != nil {
			continue
		}
		for _, e := range past {
			r.secrets.text(srv.Name, "the history", e.Text)
			r.secrets.text(srv.Name, "the history (standard error)", e.Stderr)
		}
		for _, pid := range r.seats[srv.Name].processes() {
			r.secrets.secretIn(srv.Name, "the arguments of a process", house.Arguments(pid))
		}
	}
}

// houseTime is how long the house has to become clean after the manager has closed. Zombies of the init process, the
// runtime's own goroutines and closed sockets take a moment.
const houseTime = 8 * time.Second

// clean ends what the harness itself has, waits until this process holds what it held before, and records what it
// holds. What is left then is killed.
func (r *run) clean(before history.Housekeeping, lag time.Duration) {
	r.tally.enter("cleaning")
	marks := house.Options{Mark: r.lobby.address, Known: r.known}
	now := house.Count(marks)
	for deadline := time.Now().Add(houseTime); now.Processes > before.Processes && time.Now().Before(deadline); {
		time.Sleep(lookEvery)
		now = house.Count(marks)
	}
	r.partings()
	left := house.Left(marks)
	r.dissolve()
	for deadline := time.Now().Add(houseTime); time.Now().Before(deadline); time.Sleep(lookEvery) {
		now = house.Count(marks)
		if now.Descriptors <= before.Descriptors && now.Goroutines <= before.Goroutines {
			break
		}
	}
	r.seats, r.lobby.seats, r.manager, r.tokens = nil, nil, nil, nil // what the harness itself remembers
	now.Heap, now.Lag = house.Heap(), lag
	for _, p := range left {
		now.Left = append(now.Left, p.String())
		kill(p.PID)
	}
	if now.Goroutines > before.Goroutines {
		now.Left = append(now.Left, house.Goroutines(now.Goroutines-before.Goroutines)...)
	}
	r.record(history.Event{Side: history.Harness, Kind: history.House, Text: "after close", House: &now})
}

// partingTime is how long the ends of sockets that the manager has closed may take to be seen.
const partingTime = 2 * time.Second

// partings releases the connections of which nothing is open: over HTTP a client need not say that it goes.
func (r *run) partings() {
	for deadline := time.Now().Add(partingTime); time.Now().Before(deadline); time.Sleep(lookEvery) {
		open := 0
		for _, s := range r.seats {
			open += s.part()
		}
		if open == 0 {
			return
		}
	}
}

// part releases what is over, and says how many connections are not.
func (s *seat) part() (open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweepLocked()
	return len(s.links)
}
