package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// turnScheduler lets the actors of a manager handle their messages one at a time, in an order that the seed chooses. An actor that
// has messages waits for its turn; a turn is one message.
//
// The mailbox is the library's own: turns only holds back the goroutine that empties it, before its first message (as the
// actor's dispatcher) and before every further one (as middleware in front of Receive).
type turnScheduler struct {
	rng *rand.Rand // only the world's loop draws from it
	// wake is called, by any goroutine, when somebody waits for a turn.
	wake func()

	mu        sync.Mutex
	waiting   []*mailbox // sorted by name and number
	spawned   int
	turnCount int // of turns given
}

// mailbox is that of one actor.
type mailbox struct {
	turns  *turnScheduler
	name   string
	number int

	run    func()        // under turns.mu: empties the mailbox; nil while its goroutine waits in front of a message
	resume chan struct{} // its goroutine waits here in front of a message
	// fresh says that the turn's message is still to come. Only the goroutine that empties the mailbox uses it.
	fresh bool
	// current is what the actor is handling now; nil while it handles nothing.
	current atomic.Pointer[handledMessage]
	// lastHandled is what it began to handle last. The world's loop reads it when every goroutine waits.
	lastHandled *handledMessage
}

// handledMessage is one message with its actor.
type handledMessage struct {
	actor    string
	message  any
	reported bool // only the world's loop uses it
}

func (h *handledMessage) String() string { return fmt.Sprintf("%T", h.message) }

// actorOptions is supervisor.Config.ActorOptions.
func (t *turnScheduler) actorOptions(name string) []actor.PropsOption {
	t.mu.Lock()
	t.spawned++
	m := &mailbox{turns: t, name: name, number: t.spawned, resume: make(chan struct{})}
	t.mu.Unlock()
	return []actor.PropsOption{actor.WithDispatcher(m), actor.WithReceiverMiddleware(m.receive)}
}

// Schedule implements actor.Dispatcher.
func (m *mailbox) Schedule(run func()) { m.awaitTurn(run) }

// Throughput implements actor.Dispatcher. After so many messages the library lets other goroutines run, which would be a
// choice that the seed does not make.
func (m *mailbox) Throughput() int { return 1 << 30 }

// receive is in front of every message of the actor.
func (m *mailbox) receive(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		if !m.fresh {
			m.awaitTurn(nil)
			<-m.resume
		}
		m.fresh = false
		m.lastHandled = &handledMessage{actor: m.name, message: envelope.Message}
		m.current.Store(m.lastHandled)
		defer m.current.Store(nil) // also when it panics
		next(c, envelope)
	}
}

// awaitTurn makes the actor wait for a turn.
func (m *mailbox) awaitTurn(run func()) {
	t := m.turns
	t.mu.Lock()
	m.run = run
	at, _ := slices.BinarySearchFunc(t.waiting, m, func(a, b *mailbox) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.number, b.number))
	})
	t.waiting = slices.Insert(t.waiting, at, m)
	t.mu.Unlock()
	t.wake()
}

// giveTurn gives one actor its turn and returns it; nil if none waits. It does not wait for the turn's end.
func (t *turnScheduler) giveTurn() *mailbox {
	t.mu.Lock()
	if len(t.waiting) == 0 {
		t.mu.Unlock()
		return nil
	}
	at := 0
	if len(t.waiting) > 1 {
		at = t.rng.IntN(len(t.waiting))
	}
	m := t.waiting[at]
	t.waiting = slices.Delete(t.waiting, at, at+1)
	t.turnCount++
	run := m.run
	m.run = nil
	t.mu.Unlock()
	if run == nil {
		m.resume <- struct{}{}
		return m
	}
	go func() { // ends when the mailbox is empty; the library catches what the actor panics with
		m.fresh = true
		run()
	}()
	return m
}

// isIdle reports that nobody waits for a turn.
func (t *turnScheduler) isIdle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) == 0
}
