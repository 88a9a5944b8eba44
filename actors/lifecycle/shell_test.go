package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// world is a small model of everything around the machine: the actor that performs its effects, the supervisor, the
// connection, the server with its tools, and the registry. It keeps the promises of the shell and no more: every grant
// that is accepted is followed by exactly one Closed; work is answered once, or late, or never if the connection
// closed before; messages of one sender keep their order; nothing else has an order.
type world struct {
	*history
	fault error

	// The supervisor: words on their way to it, what it wants to grant, its words on their way back, slots it gave.
	toSup   []Effect
	due     bool
	fromSup []Event
	epochs  uint64
	slots   map[uint64]bool

	conns map[uint64]*connection
	// The server's tools have a version. told is the one that the actor knows, shown the one in the catalog.
	version, received, shown int
	tickets                  uint64
}

// connection is the result of an accepted grant.
type connection struct {
	epoch           uint64
	jobs            []job
	dialed          bool // messages can be sent
	shut, closed    bool
	noted, relistOn bool // a notification waits in the mailbox, the coalescing timer runs
}

// job is work that the machine asked for and that is not answered yet.
type job struct {
	kind    string // "dial", "greet", "first list", "list"
	sampled int    // the version that the list will tell, -1 while the server has not looked
}

func newWorld() *world {
	return &world{history: newHistory(), slots: map[uint64]bool{}, conns: map[uint64]*connection{}, version: 1}
}

// tell performs an event and its effects.
func (w *world) tell(e Event) {
	effects, err := w.step(e)
	if err != nil && w.fault == nil {
		w.fault = err
	}
	for _, effect := range effects {
		w.perform(effect)
	}
}

// wish tells a wish with a new ticket.
func (w *world) wish(line string) {
	e, err := read(line)
	if err != nil {
		panic(err)
	}
	w.tickets++
	e, _ = withTicket(e, w.tickets)
	w.tell(e)
}

func (w *world) perform(effect Effect) {
	c := w.conns[w.state.Epoch]
	switch e := effect.(type) {
	case Ask, Unask, Report, Answer, Install, Decline, Gone:
		w.toSup = append(w.toSup, effect)
	case Dial:
		c = &connection{epoch: e.Epoch, jobs: []job{{kind: "dial"}}}
		w.conns[e.Epoch] = c
	case Greet:
		c.jobs = append(c.jobs, job{kind: "greet"})
	case List:
		kind := map[bool]string{true: "first list", false: "list"}[e.First]
		if slices.ContainsFunc(c.jobs, func(j job) bool { return j.kind == "first list" || j.kind == "list" }) {
			w.fault = fmt.Errorf("two lists in flight in epoch %d", e.Epoch)
		}
		c.jobs = append(c.jobs, job{kind: kind, sampled: -1})
	case Coalesce:
		c.relistOn = true
	case Shut:
		c.shut = true
	case Show, Update:
		w.shown = w.received
	}
}

// supervise lets the supervisor read its next word. decide is its policy for a Report.
func (w *world) supervise(decide func() messages.Retry) {
	word := w.toSup[0]
	w.toSup = w.toSup[1:]
	switch word := word.(type) {
	case Ask:
		w.due = true
	case Unask:
		w.due = false
	case Report:
		s := Scheduled{Epoch: word.Epoch, Retry: decide()}
		if w.due = s.Retry != messages.RetryNever; w.due {
			s.At = beginning.Add(time.Second)
		}
		w.fromSup = append(w.fromSup, s)
	case Answer:
		delete(w.slots, word.Epoch)
	case Decline:
		delete(w.slots, word.Epoch)
	}
}

func (w *world) grant() {
	w.due = false
	w.epochs++
	w.slots[w.epochs] = true
	w.fromSup = append(w.fromSup, Granted{w.epochs})
}

func (w *world) deliver() {
	e := w.fromSup[0]
	w.fromSup = w.fromSup[1:]
	w.tell(e)
}

// finish answers a job, late if its connection is closed by then; a nil cause is success.
func (w *world) finish(c *connection, i int, cause *Cause) {
	j := c.jobs[i]
	c.jobs = slices.Delete(c.jobs, i, i+1)
	switch {
	case cause != nil && j.kind == "list":
		w.tell(ListFailed{c.epoch, *cause})
	case cause != nil:
		w.tell(Failed{c.epoch, *cause})
	case j.kind == "dial":
		c.dialed = true
		w.tell(Dialed{c.epoch})
	case j.kind == "greet":
		w.tell(Greeted{c.epoch})
	default:
		if j.sampled < 0 {
			j.sampled = w.version
		}
		if c.epoch == w.state.Epoch {
			w.received = j.sampled
		}
		w.tell(Listed{c.epoch})
	}
}

// change gives the server other tools, of which it tells the connection that there is.
func (w *world) change() {
	w.version++
	for _, c := range w.conns {
		if c.dialed && !c.closed {
			c.noted = true
		}
	}
}

func (w *world) release(c *connection) {
	c.closed, c.noted, c.relistOn = true, false, false
	delete(w.slots, c.epoch) // what is gone holds no slot
	w.tell(Closed{c.epoch})
}

// settle lets everything that is under way end well: no wish, no fault, no change any more. It returns an error if
// there is no end.
func (w *world) settle() error {
	for range 1000 {
		quiet := true
		do := func(f func()) { quiet = false; f() }
		switch {
		case w.fault != nil:
			return w.fault
		case len(w.toSup) > 0:
			do(func() { w.supervise(func() messages.Retry { return messages.RetryAt }) })
		case len(w.fromSup) > 0:
			do(w.deliver)
		case w.due:
			do(w.grant)
		}
		for _, epoch := range sortedKeys(w.conns) {
			c := w.conns[epoch]
			switch {
			case !quiet:
			case len(c.jobs) > 0:
				do(func() { w.finish(c, 0, nil) })
			case c.noted:
				do(func() { c.noted = false; w.tell(ToolsChanged{c.epoch}) })
			case c.relistOn:
				do(func() { c.relistOn = false; w.tell(RelistDue{c.epoch}) })
			case c.shut && !c.closed:
				do(func() { w.release(c) })
			}
		}
		if quiet {
			return w.settled()
		}
	}
	return fmt.Errorf("no end in sight: %s", writeState(w.state))
}

// settled checks what must hold when nothing is under way.
func (w *world) settled() error {
	s := w.state
	switch {
	case s.Ticket != s.Answered:
		return fmt.Errorf("ticket %d waits for ever: %s", s.Ticket, writeState(s))
	case len(w.slots) > 0:
		return fmt.Errorf("slots of %v are never given back", w.slots)
	case s.Removing:
		if !w.gone {
			return fmt.Errorf("removed and not gone: %s", writeState(s))
		}
	case !s.Wanted:
		if s.Phase != messages.Disabled {
			return fmt.Errorf("not wanted: %s", writeState(s))
		}
	case s.Phase == messages.NeedsAuth, s.Phase == messages.Failed && s.Retry == messages.RetryNever:
	case s.Step == messages.Idle && s.Lazy:
	case s.Phase != messages.Connected:
		return fmt.Errorf("wanted, healed and not connected: %s", writeState(s))
	case s.Dirty || w.shown != w.version:
		return fmt.Errorf("the catalog has version %d, the server %d: %s", w.shown, w.version, writeState(s))
	}
	for epoch, c := range w.conns {
		if !c.closed && (s.Conn == None || epoch != s.Epoch) {
			return fmt.Errorf("epoch %d is never released: %s", epoch, writeState(s))
		}
	}
	return nil
}

func sortedKeys[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }
