package sim

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
)

// briefSubscriber is an actor that watches the manager's events by message, watches a second time, and ends without a word. A
// second Watch replaces the first, so each event has to come once; and the manager has to forget an actor that has ended,
// because events for it reach no actor for as long as the manager lives.
type briefSubscriber struct {
	world *simulation
	pid   *actor.PID

	// mu guards the fields below: events for an actor that has ended are seen in the goroutine that sends them.
	mu       sync.Mutex
	received receivedEvents
}

// receivedEvents holds the events that one subscriber was sent. The zero value has received nothing.
type receivedEvents struct {
	seen map[uint64]bool
	// endedAt is the time at which the subscriber was stopped; 0 before.
	endedAt time.Duration
}

// forgetTime bounds how long events may still be sent to a subscriber that has ended: its end is a message as well.
const forgetTime = 10 * time.Millisecond

// noteEvent notes the number of an event that was sent at a time, and returns what is wrong with that, empty if nothing is.
func (r *receivedEvents) noteEvent(number uint64, t time.Duration) (problem string) {
	if r.endedAt > 0 {
		if t > r.endedAt+forgetTime {
			return fmt.Sprintf("the event %d was sent at %s to an actor that had ended at %s", number, t, r.endedAt)
		}
		return ""
	}
	if r.seen[number] {
		return fmt.Sprintf("one that has watched twice was told the event %d twice", number)
	}
	if r.seen == nil {
		r.seen = map[uint64]bool{}
	}
	r.seen[number] = true
	return ""
}

// scheduleSubscriber spawns the actor, and plans its second Watch and its end: both before the world is healed.
func (p *messageActor) scheduleSubscriber() {
	w := p.world
	s := &briefSubscriber{world: w}
	s.pid = p.rootContext().Spawn(actor.PropsFromFunc(s.receiveMessage, w.turns.actorOptions("subscriber")...))
	w.manager.System().EventStream.Subscribe(func(e any) {
		if dead, ok := e.(*actor.DeadLetterEvent); ok && dead.PID.Equal(s.pid) {
			s.noteMessage(dead.Message)
		}
	})
	// The parts differ by seed, so that the two meet all sorts of events.
	part := time.Duration(2 + seedOf("subscriber", strconv.FormatUint(w.plan.Seed, 10))%3)
	w.timeline.planAction(w.plan.Heal/(2*part), "", func() {
		w.needsWait = true
		p.rootContext().RequestWithCustomSender(w.manager.PID(), &messages.Watch{Buffer: 1 << 12}, s.pid)
	})
	w.timeline.planAction(w.plan.Heal/part, "", func() {
		w.needsWait = true
		s.mu.Lock()
		s.received.endedAt = w.virtualNow
		s.mu.Unlock()
		p.rootContext().Stop(s.pid)
	})
}

// receiveMessage handles one message of the actor.
func (s *briefSubscriber) receiveMessage(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		c.Request(s.world.manager.PID(), &messages.Watch{Buffer: 1 << 12})
	case *messages.WatchEvent:
		s.noteMessage(m)
	}
}

// noteMessage checks an event that was sent to the actor. Any goroutine may call it.
func (s *briefSubscriber) noteMessage(m any) {
	e, ok := m.(*messages.WatchEvent)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if problem := s.received.noteEvent(e.GetSeq(), s.world.elapsedTime()); problem != "" {
		s.world.reportMisled("by message: " + problem)
	}
}
