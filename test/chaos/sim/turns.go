package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// turnScheduler lets the actors of a manager handle their messages one at a time, in an order that the seed chooses. An actor
// that has messages waits for its turn; a turn is one message.
//
// The mailbox is protoactor's own: the scheduler only holds back the goroutine that empties it, before its first message (as
// the actor's dispatcher) and before every further one (as middleware in front of Receive).
type turnScheduler struct {
	// Only the loop draws from rng, which begins anew in each instant.
	seed   uint64
	source *rand.PCG
	rng    *rand.Rand
	// wake wakes the loop when an actor waits for a turn. Any goroutine calls it.
	wake func()
	// ended is told of each actor that has ended, received of each message that an actor is about to handle, handled of each actor that has
	// handled one, and panicked of each actor that breakActor broke. Any goroutine calls them.
	ended    func(*actor.PID, actor.Actor)
	received func(actor.Actor, any)
	handled  func(actor.Actor, *handledMessage)
	panicked func(actorName string)

	// goroutines empty the mailboxes.
	goroutines goroutinePool

	// mu guards the fields below, and run of each mailbox.
	mu sync.Mutex
	// waiting is sorted by name and number, so that the seed's choice does not depend on the order of arrival.
	waiting []*mailbox
	spawned int
	// broken names the actors that panic in the place of their next message, if that comes before a time.
	broken map[string]time.Time
	// turnCount counts the turns given.
	turnCount int
}

func newTurnScheduler(seed uint64) *turnScheduler {
	source := rand.NewPCG(seed, seedOf("turns"))
	return &turnScheduler{seed: seed, source: source, rng: rand.New(source)}
}

// beginInstant has the turns of an instant drawn by the seed and its time alone. What chance decides in one instant without a trace in the
// history, such as which of two waits ends first, would otherwise change the order of all further turns.
func (t *turnScheduler) beginInstant(at time.Duration) {
	t.source.Seed(t.seed, seedOf("turns")+uint64(at))
}

// mailbox is the dispatcher and middleware of one actor.
type mailbox struct {
	turns  *turnScheduler
	name   string
	number int

	// run empties the mailbox; nil while the mailbox's goroutine waits in front of a message.
	run func()
	// resume lets that goroutine go on.
	resume chan struct{}
	// fresh is set while the first message of a turn is still to come. Only the goroutine that empties the mailbox uses it.
	fresh bool
	// current is the message that the actor is handling, nil while it handles none.
	current atomic.Pointer[handledMessage]
	// lastHandled is the message that the actor handled last. The loop reads it when every goroutine waits.
	lastHandled *handledMessage
}

// handledMessage is one message with its actor.
type handledMessage struct {
	// actor and message never change, because the loop reads them while the actor is at work.
	actor   string
	message any
	// reported is set once the loop has reported that the actor blocks; only the loop uses it.
	reported bool
}

func (h *handledMessage) String() string { return fmt.Sprintf("%T", h.message) }

// actorOptions returns the options of a new actor. It is supervisor.Config.ActorOptions.
func (t *turnScheduler) actorOptions(name string) []actor.PropsOption {
	t.mu.Lock()
	t.spawned++
	m := &mailbox{turns: t, name: name, number: t.spawned, resume: make(chan struct{})}
	t.mu.Unlock()
	return []actor.PropsOption{actor.WithDispatcher(m), actor.WithReceiverMiddleware(m.receive)}
}

// Schedule implements actor.Dispatcher.
func (m *mailbox) Schedule(run func()) { m.awaitTurn(run) }

// Throughput implements actor.Dispatcher. After so many messages protoactor lets other goroutines run, a choice that the seed
// would not make.
func (m *mailbox) Throughput() int { return 1 << 30 }

// receive is the middleware in front of every message of the actor: it waits for a turn, unless this is the turn's first
// message.
func (m *mailbox) receive(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		if !m.fresh {
			m.awaitTurn(nil)
			<-m.resume
		}
		m.fresh = false
		m.lastHandled = &handledMessage{actor: m.name, message: envelope.Message}
		m.current.Store(m.lastHandled)
		// The deferred call clears current also if the actor panics.
		defer m.current.Store(nil)
		m.turns.received(c.Actor(), envelope.Message)
		if m.turns.takeBroken(m.name, envelope.Message) {
			m.turns.panicked(m.name)
			panic(brokenActor)
		}
		next(c, envelope)
		m.turns.handled(c.Actor(), m.lastHandled)
		if _, stopped := envelope.Message.(*actor.Stopped); stopped {
			m.turns.ended(c.Self(), c.Actor())
		}
	}
}

// brokenActor is the panic of an actor that breakActor has broken.
const brokenActor = "the day broke this actor"

// breakActor lets an actor panic in the place of a message of the next second, as a defect of the manager's own code would.
func (t *turnScheduler) breakActor(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = map[string]time.Time{name: time.Now().Add(time.Second)}
}

// takeBroken reports whether an actor is to panic in the place of a message. The messages of protoactor itself are spared, because it
// handles them without the actor.
func (t *turnScheduler) takeBroken(name string, message any) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until, broken := t.broken[name]; !broken || time.Now().After(until) || strings.HasPrefix(fmt.Sprintf("%T", message), "*actor.") {
		return false
	}
	delete(t.broken, name)
	return true
}

// awaitTurn queues the actor for a turn and wakes the loop. run empties the mailbox, nil if its goroutine waits on resume.
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

// giveTurn gives a turn to one waiting actor, drawn at random, and returns its mailbox; nil if none waits. It does not wait for
// the end of the turn.
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
	// The function returns when the mailbox is empty; protoactor recovers an actor's panic.
	t.goroutines.run(func() {
		m.fresh = true
		run()
	})
	return m
}

// isIdle reports whether no actor waits for a turn.
func (t *turnScheduler) isIdle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) == 0
}
