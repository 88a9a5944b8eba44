package peer

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/faults"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// fault is one planned fault while it lasts.
type fault struct {
	plan  scenario.Planned
	with  faults.Values
	hooks hooks
	// over says that it has ended; waits of its own ask.
	over bool
	// times counts effects, for those that have a number of them.
	times int
	// held are the messages that it holds back.
	held []held
}

// held is a message that is held back.
type held struct {
	conn    *conn
	message *message
}

// hooks are the places at which a fault can interfere. One that returns true has dealt with the matter, and nobody else
// is asked. nil does nothing.
type hooks struct {
	// begin and end switch it.
	begin, end func(m *machine, f *fault)
	// open is asked when a dial arrives, start when a connection is made, opened when it has been.
	open   func(m *machine, f *fault, id int) bool
	start  func(m *machine, f *fault, c *conn)
	opened func(m *machine, f *fault, c *conn)
	// receive sees each message before the server, delay lengthens the time of an answer.
	receive func(m *machine, f *fault, c *conn, q *message) bool
	delay   func(m *machine, f *fault, c *conn, q *message) time.Duration
	// answer sees each answer before it is sent, answered after.
	answer   func(m *machine, f *fault, c *conn, a *answer) bool
	answered func(m *machine, f *fault, c *conn, a *answer)
	// called sees a call that has come, run one that is about to run, ran one that has, cancelled one that is not wanted any
	// more.
	called, run, cancelled func(m *machine, f *fault, c *conn, k *call) bool
	ran                    func(m *machine, f *fault, c *conn, k *call, a *answer) bool
	// tools sees the tool list as it is sent, page one page of it.
	tools func(m *machine, f *fault, all []tool) []tool
	page  func(m *machine, f *fault, c *conn, p *page)
	// listening sees a subscription before it is agreed to.
	listening func(m *machine, f *fault, c *conn, l *listen) bool
	// closed is asked when the client closes, or when a signal comes.
	closed func(m *machine, f *fault, c *conn, signal bool) bool
}

// behaviours are the faults by name.
var behaviours = map[string]hooks{
	"crash":        crash,
	"hang-start":   hangStart,
	"list-changed": listChanged,
}

// fired notes that the fault has an effect.
func (f *fault) fired(m *machine, conn int) {
	m.note(history.Event{
		Side: history.Harness, Kind: history.Fired, Fault: f.plan.ID, Name: f.plan.Fault, Conn: conn,
	})
}

// Begin implements Machine.
func (m *machine) Begin(now time.Duration, p scenario.Planned) []Action {
	m.turn(now)
	kind, known := faults.Named(p.Fault)
	does, done := behaviours[p.Fault]
	if !known || !done || !slices.Contains(kind.Kinds, m.cfg.Server.Kind) || !slices.Contains(kind.Eras, m.cfg.Server.Era) {
		return nil
	}
	m.announce()
	f := &fault{plan: p, with: kind.With(p.With), hooks: does}
	if !kind.Instant {
		m.faults = append(m.faults, f)
	}
	if does.begin != nil {
		does.begin(m, f)
	}
	return m.out
}

// End implements Machine.
func (m *machine) End(now time.Duration, p scenario.Planned) []Action {
	m.turn(now)
	i := slices.IndexFunc(m.faults, func(f *fault) bool { return f.plan.ID == p.ID && f.plan.Fault == p.Fault })
	if i < 0 {
		return nil
	}
	f := m.faults[i]
	f.over = true
	m.faults = slices.Delete(m.faults, i, i+1)
	if f.hooks.end != nil {
		f.hooks.end(m, f)
	}
	return m.out
}
