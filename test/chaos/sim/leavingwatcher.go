package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// leavingWatcher watches the manager as a program does that loses interest: it watches from one glance to the next, reads little of what
// happens, closes its watcher, and reads what it had not read only at the glance after that, while others watch on. "Each may still read
// the events that it has not read", in order and none of later. Only the loop uses it.
type leavingWatcher struct {
	world *simulation
	// open watches now; closed waits until it is read. Both are nil at first.
	open, closed *supervisor.Watcher
	// openEvents and closedEvents follow what each has read; until is the newest event when closed was closed.
	openEvents, closedEvents *history.Sequence
	until                    uint64
	turn                     int
}

// readBeforeClose is how many events every second watcher reads before it is closed.
const readBeforeClose = 5

// lookAround reads the watcher that was closed at the last glance, closes the one that was opened then, and opens another one.
func (l *leavingWatcher) lookAround() {
	l.readClosed()
	l.turn++
	if l.open != nil {
		for range (l.turn % 2) * readBeforeClose {
			l.readEvent(l.open, l.openEvents)
		}
	}
	l.world.watch.recordNew() // it reads whatever has happened
	newest := l.world.watch.sequence.Last
	if l.open != nil {
		l.open.Close()
		l.closed, l.closedEvents, l.until = l.open, l.openEvents, newest
	}
	// What it has not read when it is closed may be more than it has room for: the first event that it reads then is a gap.
	l.open, l.openEvents = l.world.manager.Watch(slowBuffer), history.SequenceAfter(newest)
	// Every third one needs no events of calls. That takes them from no other watcher, neither while it watches nor when it leaves.
	if l.turn%3 == 0 {
		l.open.WithoutCalls()
	}
}

// readClosed reads what the closed watcher has not read, and checks that it ends with the newest event of the time when it was closed.
func (l *leavingWatcher) readClosed() {
	if l.closed == nil {
		return
	}
	for l.readEvent(l.closed, l.closedEvents) {
	}
	if last := l.closedEvents.Last; last != l.until {
		l.world.reportMisled(fmt.Sprintf("one that was closed after the event %d was told events up to %d", l.until, last))
	}
	l.closed = nil
}

// readEvent reads one event without waiting; it returns false if there is none.
func (l *leavingWatcher) readEvent(from *supervisor.Watcher, events *history.Sequence) bool {
	e, err := l.world.nextEvent(l.world.watch.canceledCtx, from)
	if err != nil {
		if !errors.Is(err, messages.ErrClosed) && !errors.Is(err, context.Canceled) {
			l.world.reportMisled("one that reads without waiting got the error " + err.Error())
		}
		return false
	}
	if problem := events.Next(e); problem != "" {
		l.world.reportMisled("one that had been closed, or was about to be: " + problem)
		return false
	}
	return true
}
