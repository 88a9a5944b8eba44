package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// slowWatcher is a watcher as programs have one: it waits for events in a goroutine of its own, has room for few, and does something else
// now and then. What it misses it must be told of, and of what comes while it waits, at once.
type slowWatcher struct {
	world    *simulation
	watcher  *supervisor.Watcher
	sequence history.Sequence
	ended    chan struct{} // closed when it has been told that there will be no more
}

const (
	slowBuffer = 48                     // events
	slowEvery  = 40                     // events between two pauses
	slowPause  = 700 * time.Millisecond // in virtual time
	// maxEventDelay is how late somebody who waits may be told of a call: one millisecond, as actors.Hub says.
	maxEventDelay = time.Millisecond
)

func (s *slowWatcher) startReading(w *simulation) {
	s.world, s.watcher, s.ended = w, w.manager.Watch(slowBuffer), make(chan struct{})
	go s.readEvents() // ends when the manager closes
}

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

// checkLastEvent judges the last word. The manager has closed; a reader who is pausing is waited for.
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

// reportBrokenPromise takes down that the manager did not keep what it promises of what is said by message, read, asked and approved. It is for any
// goroutine.
func (w *simulation) reportBrokenPromise(server, text string) {
	w.rec.Add(history.Event{T: w.elapsedTime(), Side: history.Harness, Kind: history.Violation, Name: "I20", Server: server, Text: text})
}

// reportMisled takes down that a watcher was told something wrong, or not told. It is for any goroutine.
func (w *simulation) reportMisled(text string) {
	w.rec.Add(history.Event{T: w.elapsedTime(), Side: history.Harness, Kind: history.Violation, Name: "I19", Text: "a watcher was misled: " + text})
}
