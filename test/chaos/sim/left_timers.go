package sim

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// leftTimers notices timers that outlive their actor. What such a timer sends reaches nobody: protoactor says of it that it is a dead
// letter. Other messages of an actor's helpers may arrive after its end, because they were under way; a timer is to be stopped.
//
// Timers that send nothing, as those of a session, are not noticed.
type leftTimers struct {
	mu sync.Mutex
	// endedAt says when each actor of the manager has ended, by the id of its PID. closedAt is the end of the run, 0 before.
	endedAt  map[string]time.Duration
	closedAt time.Duration
}

// leftTimerTime is how long the run waits, in virtual time, for timers that were left: longer than the longest pause of the manager.
const leftTimerTime = time.Hour

// watchTimers begins to look for the messages of timers that were left.
func (w *simulation) watchTimers() {
	w.manager.System().EventStream.Subscribe(func(e any) {
		if dead, ok := e.(*actor.DeadLetterEvent); ok && dead.PID != nil {
			w.noteDeadLetter(dead.PID.Id, dead.Message)
		}
	})
}

// noteEnd notes that an actor has ended. Any goroutine may call it.
func (w *simulation) noteEnd(pid *actor.PID) {
	w.leftTimers.mu.Lock()
	defer w.leftTimers.mu.Unlock()
	if w.leftTimers.endedAt == nil {
		w.leftTimers.endedAt = map[string]time.Duration{}
	}
	w.leftTimers.endedAt[pid.Id] = w.elapsedTime()
}

// noteDeadLetter records a message that a timer has sent to an actor which had ended. In the instant of the end it may have been on its
// way. Any goroutine may call it.
func (w *simulation) noteDeadLetter(id string, message any) {
	l := &w.leftTimers
	l.mu.Lock()
	defer l.mu.Unlock()
	now := w.elapsedTime()
	ended, known := l.endedAt[id]
	if !known || now <= ended+time.Millisecond || !isOfTimer(message) {
		return
	}
	at := now
	if l.closedAt > 0 {
		at = l.closedAt
	}
	w.rec.Add(history.Event{T: at, Side: history.Harness, Kind: history.Violation, Name: "I12", Text: fmt.Sprintf("a timer was left: its message %T went to the actor "+
		"%s at %s, which had ended at %s", message, id, now, ended)})
}

// isOfTimer reports whether a message is one that a timer sends: the names of the manager's end in Due.
func isOfTimer(message any) bool {
	t := reflect.TypeOf(message)
	return t != nil && strings.HasSuffix(t.Name(), "Due")
}

// awaitLeftTimers lets the timers fire that were left. It does not wait beside goroutines that were left: they would end meanwhile, and
// nobody would see them.
func (w *simulation) awaitLeftTimers() {
	own := bubbleOf(dumpStacks(false))
	for s := range strings.SplitSeq(string(dumpStacks(true)), "\n\n") {
		// The goroutines of the bubble itself have a frame of it, or of what runs it.
		if bubbleOf([]byte(s)) == own && !strings.Contains(s, "sim.(*bubble).run") && !strings.Contains(s, "synctest.Test(") && !strings.Contains(s, "synctest.testingSynctestTest(") {
			return
		}
	}
	w.leftTimers.mu.Lock()
	w.leftTimers.closedAt = w.elapsedTime()
	w.leftTimers.mu.Unlock()
	time.Sleep(leftTimerTime)
	// protoactor's throttle for dead letters, as in runPlan.
	time.Sleep(time.Millisecond)
}
