// Package children knows the processes that this program has started as servers or helpers. Package stdio notes each start and end,
// and supervisor/control asks whether a caller of the control socket belongs to one.
//
// It is public for supervisor/control; what it exports may change without notice.
//
// # How it fits
//
//	package process ── TrackStart, MarkReaped ──> the table of this program <── Find, AwaitStarts ── control/internal/fence
//
// There is one table for the whole program and not one for each manager, because process numbers are unique in the machine. One
// mutex guards it, is held for a look-up only, and no other lock is taken under it.
//
// Guarantees: a child that can already run is found after AwaitStarts has returned, so that a server cannot be faster than its own
// entry. A number that was given to a new child names the new one.
//
// Not promised: of the children that have ended only the last 4,096 are known.
package children

import (
	"context"
	"os/exec"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// Child is a process that this program has started as a server or as a helper (a command that prints headers, say). Its
// descendants belong to it, and so do all processes of the session or the process group that has its number. The control socket
// uses this to decide whether a caller is a child of a server.
type Child struct {
	PID int
	// Start is the time of its start, which tells it from a later process of the same number, in the unit of procinfo.Process; 0 if
	// the system did not say.
	Start uint64
	// Server is the name of the server that it runs, empty for a helper or where stdio.Config.Server was not given.
	Server string
	// MayControl is stdio.Config.MayControl.
	MayControl bool
	// Isolated is true if the child was started with any isolation.
	Isolated bool
	// Ended is true after it has been reaped. Other processes of its session may live on.
	Ended bool
}

// maxEndedChildren bounds the children that are remembered after their end, because their descendants may still call. The oldest
// is forgotten first.
const maxEndedChildren = 4096

// children has all children of this program, whatever manager they belong to: process numbers are unique in the machine.
var children childTable

// childTable knows the children by their numbers. An entry is replaced only when its number is given to a new child, and then no
// process of the old one's session is left: no system gives a number away while a session or a group has it. It is safe for
// concurrent use; the zero value is ready.
type childTable struct {
	// mu guards all fields.
	mu    sync.Mutex
	known map[int]*Child
	// ended has the reaped ones, the oldest first, at most maxEndedChildren.
	ended []*Child
	// isolated is true once any child was started isolated, and stays so.
	isolated bool
	// starting has a channel for each start under way, which is closed at the start's end.
	starting []chan struct{}
}

// trackedStart returns a function that starts cmd and notes the child before it returns, for package process. The child may run for a
// moment before it is known; AwaitStarts covers that moment.
func (t *childTable) trackedStart(cmd *exec.Cmd, child Child) func() error {
	return func() error {
		// The start is announced first, so that AwaitStarts has something to wait for before the child can exist.
		done := make(chan struct{})
		t.mu.Lock()
		t.starting = append(t.starting, done)
		t.mu.Unlock()
		err := cmd.Start()
		if err == nil {
			child.PID = cmd.Process.Pid
			// The child has not been reaped, so that the number is still its own.
			if p, err := procinfo.Find(child.PID); err == nil {
				child.Start = p.Start
			}
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.starting = slices.DeleteFunc(t.starting, func(c chan struct{}) bool { return c == done })
		close(done)
		if err != nil {
			return err
		}
		if t.known == nil {
			t.known = map[int]*Child{}
		}
		t.known[child.PID] = &child
		t.isolated = t.isolated || child.Isolated
		return nil
	}
}

// TrackStart returns a function that starts cmd as child and notes it among the children of this program.
func TrackStart(cmd *exec.Cmd, child Child) func() error { return children.trackedStart(cmd, child) }

// MarkReaped notes that the child with that number was reaped.
func MarkReaped(pid int) { children.markReaped(pid) }

// markReaped notes that a child has ended, and forgets the oldest of the ended ones when there are more than maxEndedChildren.
func (t *childTable) markReaped(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.known[pid]
	if c == nil || c.Ended {
		return
	}
	c.Ended = true
	if t.ended = append(t.ended, c); len(t.ended) <= maxEndedChildren {
		return
	}
	oldest := t.ended[0]
	t.ended = slices.Delete(t.ended, 0, 1)
	// The number may belong to a new child by now, whose entry must stay.
	if t.known[oldest.PID] == oldest {
		delete(t.known, oldest.PID)
	}
}

// awaitStarts returns when every start has ended that was under way when it was called. Later starts do not hold it up.
func (t *childTable) awaitStarts(ctx context.Context) error {
	t.mu.Lock()
	starting := slices.Clone(t.starting)
	t.mu.Unlock()
	for _, done := range starting {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// AwaitStarts returns when [Find] knows every child that could already run when it was called. The control socket calls it
// before it judges a caller that it does not know. The error is that of ctx: a program on a file system that hangs may take long
// to start.
func AwaitStarts(ctx context.Context) error { return children.awaitStarts(ctx) }

// Find returns the newest child of this program with a number: one that runs, or one of the last 4,096 that have ended. It
// reports false if there is none.
func Find(pid int) (Child, bool) {
	children.mu.Lock()
	defer children.mu.Unlock()
	if c := children.known[pid]; c != nil {
		return *c, true
	}
	return Child{}, false
}

// AnyIsolated reports whether any child of this program was started isolated since the program began.
func AnyIsolated() bool {
	children.mu.Lock()
	defer children.mu.Unlock()
	return children.isolated
}
