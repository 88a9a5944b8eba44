package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// slowWatch is a watcher as programs have one: it waits for events in a goroutine of its own, has room for few, and does something else
// now and then. What it misses it must be told of, and of what comes while it waits, at once.
type slowWatch struct {
	world    *world
	watcher  *supervisor.Watcher
	sequence history.Sequence
	ended    chan struct{} // closed when it has been told that there will be no more
}

const (
	slowRoom  = 48                     // events
	slowEvery = 40                     // events between two pauses
	slowPause = 700 * time.Millisecond // in virtual time
	// toldWithin is how late somebody who waits may be told of a call: one millisecond, as actors.Hub says.
	toldWithin = time.Millisecond
)

func (s *slowWatch) begin(w *world) {
	s.world, s.watcher, s.ended = w, w.manager.Watch(slowRoom), make(chan struct{})
	go s.read() // ends when the manager closes
}

func (s *slowWatch) read() {
	defer close(s.ended)
	for n := 1; ; n++ {
		asked := time.Now()
		e, err := s.world.next(context.Background(), s.watcher)
		if err != nil {
			return
		}
		if wrong := s.sequence.Next(e); wrong != "" {
			s.world.misled("one with room for few: " + wrong)
		}
		if late := time.Since(e.Time); e.Time.After(asked) && e.Kind != messages.EventGap && late > toldWithin {
			s.world.misled(fmt.Sprintf("one who waited was told of a %s of %s only %s after it had happened", e.Kind, e.Server, late))
		}
		if n%slowEvery == 0 {
			time.Sleep(slowPause)
		}
	}
}

// end judges the last word. The manager has closed; a reader who is pausing is waited for.
func (s *slowWatch) end() {
	if s.watcher == nil || !s.world.watch.over() {
		return
	}
	select {
	case <-s.ended:
	case <-time.After(2 * slowPause):
		s.world.misled("one who waits was not told that the manager has closed")
		return
	}
	if all := s.world.watch.sequence.Last; s.sequence.Last != all {
		s.world.misled(fmt.Sprintf("the last event that one with room for few was told is %d, and there were %d", s.sequence.Last, all))
	}
}

// unkept takes down that the manager did not keep what it promises of what is said by message, read, asked and approved. It is for any
// goroutine.
func (w *world) unkept(server, text string) {
	w.rec.Add(history.Event{T: w.clock(), Side: history.Harness, Kind: history.Violation, Name: "I20", Server: server, Text: text})
}

// misled takes down that a watcher was told something wrong, or not told. It is for any goroutine.
func (w *world) misled(text string) {
	w.rec.Add(history.Event{T: w.clock(), Side: history.Harness, Kind: history.Violation, Name: "I19", Text: "a watcher was misled: " + text})
}
