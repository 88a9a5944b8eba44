package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// slowWatcher watches the manager as an embedding program does: in a goroutine of its own, with room for few events, and with
// pauses. It checks that the manager reports every gap, and delivers at once while the watcher waits.
type slowWatcher struct {
	world   *simulation
	watcher *supervisor.Watcher
	// sequence checks the numbers of the events, and that each gap says how many are missing; readEvents owns it until ended is closed.
	sequence history.Sequence
	// ended is closed when the watcher has returned that the manager is closed.
	ended chan struct{}
}

const (
	// slowBuffer is the room for events, slowEvery the number of events between two pauses, slowPause the virtual time of a
	// pause.
	slowBuffer = 48
	slowEvery  = 40
	slowPause  = 700 * time.Millisecond
	// maxEventDelay bounds how late the event of a call may reach a watcher that waits: actors.Hub promises one millisecond.
	maxEventDelay = time.Millisecond
)

// startReading starts the watcher's goroutine, which ends when the manager closes.
func (s *slowWatcher) startReading(w *simulation) {
	s.world, s.watcher, s.ended = w, w.manager.Watch(slowBuffer), make(chan struct{})
	go s.readEvents()
}

// readEvents reads events and checks their sequence and delay. The delay counts only for events that happened after the watcher
// began to wait.
func (s *slowWatcher) readEvents() {
	defer close(s.ended)
	for n := 1; ; n++ {
		waitedSince := time.Now()
		e, err := s.world.nextEvent(context.Background(), s.watcher)
		if err != nil {
			return
		}
		if problem := s.sequence.Next(e); problem != "" {
			s.world.reportMisled("one with room for few: " + problem)
		}
		if late := time.Since(e.Time); e.Time.After(waitedSince) && e.Kind != messages.EventGap && late > maxEventDelay {
			s.world.reportMisled(fmt.Sprintf("one who waited was told of a %s of %s only %s after it had happened", e.Kind, e.Server, late))
		}
		if n%slowEvery == 0 {
			time.Sleep(slowPause)
		}
	}
}

// checkLastEvent checks, after the manager has closed, that the watcher has seen the last event and the end. It waits for a
// watcher that pauses.
func (s *slowWatcher) checkLastEvent() {
	if s.watcher == nil || !s.world.watch.hasEnded() {
		return
	}
	select {
	case <-s.ended:
	case <-time.After(2 * slowPause):
		s.world.reportMisled("one who waits was not told that the manager has closed")
		return
	}
	if all := s.world.watch.sequence.Last; s.sequence.Last != all {
		s.world.reportMisled(fmt.Sprintf("the last event that one with room for few was told is %d, and there were %d", s.sequence.Last, all))
	}
}

// reportBrokenPromise records that the manager broke a promise about messages, reads, questions or consents (invariant I20).
// Any goroutine may call it.
func (w *simulation) reportBrokenPromise(server, text string) {
	w.rec.Add(history.Event{T: w.elapsedTime(), Side: history.Harness, Kind: history.Violation, Name: "I20", Server: server, Text: text})
}

// reportMisled records that a watcher got a wrong event, or missed one without a gap (invariant I19). Any goroutine may call
// it.
func (w *simulation) reportMisled(text string) {
	w.rec.Add(history.Event{T: w.elapsedTime(), Side: history.Harness, Kind: history.Violation, Name: "I19", Text: "a watcher was misled: " + text})
}
