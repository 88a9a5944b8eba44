package transports

import (
	"context"
	"os/exec"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// Child is a process that this program has started as a server or as a helper: a command that prints headers, say. What
// descends from it belongs to it, and so does who is in the session or the process group that has its number.
type Child struct {
	PID int
	// Start tells it from a later process of the same number, in the unit of procinfo.Process; 0 is not known.
	Start uint64
	// Server is the name of the server that it is, empty for a helper or where StdioConfig.Server was not given.
	Server string
	// MayControl is StdioConfig.MayControl.
	MayControl bool
	// Isolated says that it is kept from something.
	Isolated bool
	// Ended says that it has been reaped. Others of its session may live on.
	Ended bool
}

// maxEndedChildren bounds the children that are remembered after their end.
const maxEndedChildren = 4096

// children are all of this program, whatever manager they belong to.
var children childTable

// childTable knows the children by their numbers. A number that is given to a new child is free of the old one's session:
// no system gives a number away while a session or a group has it. Safe for concurrent use; the zero value is ready.
type childTable struct {
	mu       sync.Mutex
	known    map[int]*Child
	ended    []*Child // the oldest first
	isolated bool
	starting []chan struct{} // one for each start under way, closed at its end
}

// trackedStart gives a function that starts cmd and notes the child before it returns, for launch. The child may run a little
// earlier than it is known: see await.
func (t *childTable) trackedStart(cmd *exec.Cmd, child Child) func() error {
	return func() error {
		done := make(chan struct{})
		t.mu.Lock()
		t.starting = append(t.starting, done)
		t.mu.Unlock()
		err := cmd.Start()
		if err == nil {
			child.PID = cmd.Process.Pid
			if p, err := procinfo.Find(child.PID); err == nil { // it has not been reaped: the number is its own
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

// markReaped notes that a child has ended.
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
	if t.known[oldest.PID] == oldest {
		delete(t.known, oldest.PID)
	}
}

// awaitStarts returns when every start has ended that was under way when it was called.
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

// AwaitStarts returns when every child is known to FindChild that could run when it was called. The error is that of ctx:
// a program on a file system that hangs may take long to start.
func AwaitStarts(ctx context.Context) error { return children.awaitStarts(ctx) }

// FindChild is the newest child of this program with a number: one that runs, or one of the last 4,096 that have ended.
func FindChild(pid int) (Child, bool) {
	children.mu.Lock()
	defer children.mu.Unlock()
	if c := children.known[pid]; c != nil {
		return *c, true
	}
	return Child{}, false
}

// IsolatesChildren reports whether any child of this program was started isolated.
func IsolatesChildren() bool {
	children.mu.Lock()
	defer children.mu.Unlock()
	return children.isolated
}
