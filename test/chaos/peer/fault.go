package peer

import (
	"maps"
	"slices"
	"sync"
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
	// over says that it has ended.
	over bool
	// times counts what it did, perConn on one connection.
	times   int
	perConn map[int]int
	// held is what it holds back until its end, left are the connections whose clients have left while it kept them.
	held []held
	left []*conn
	// secret is what it may write where it does not belong.
	secret string
}

// held is what is done on a connection at the end of a fault, unless the connection has ended.
type held struct {
	conn *conn
	do   func()
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
	// stranger is asked when a message comes over HTTP that is of no connection, noSession when it is of a lost session.
	stranger  func(m *machine, f *fault, id int, body []byte) bool
	noSession func(m *machine, f *fault, c *conn, q *message) bool
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
	tools func(f *fault, all []tool) []tool
	page  func(m *machine, f *fault, c *conn, p *page)
	// listening sees a subscription before it is agreed to, listens after.
	listening, listens func(m *machine, f *fault, c *conn, l *listen)
	// closed is asked when the client closes, or when a signal comes.
	closed func(m *machine, f *fault, c *conn, signal bool) bool
}

// behaviours are the faults by name.
var behaviours = sync.OnceValue(func() map[string]hooks {
	all := make(map[string]hooks)
	for _, g := range []map[string]hooks{
		processFaults, holdingFaults, outputFaults, callFaults, listFaults, protocolFaults, httpFaults, networkFaults, trustFaults,
	} {
		maps.Copy(all, g)
	}
	return all
})

// fired notes that the fault has an effect.
func (f *fault) fired(m *machine, conn int) {
	m.note(history.Event{
		Side: history.Harness, Kind: history.Fired, Fault: f.plan.ID, Name: f.plan.Fault, Conn: conn,
	})
}

// strikes draws whether the fault befalls one of the cases that its parameter chance is about.
func (f *fault) strikes(m *machine) bool { return m.chance(f.with.Float("chance")) }

// hold keeps something back until the end of the fault.
func (f *fault) hold(c *conn, do func()) { f.held = append(f.held, held{c, do}) }

// letGo is the end of hold.
func letGo(m *machine, f *fault) {
	for _, h := range f.held {
		if !m.over(h.conn) {
			m.acts(h.conn, h.do)
		}
	}
	for _, c := range f.left {
		m.exit(c, Exit{})
	}
}

// Begin implements Machine.
func (m *machine) Begin(now time.Duration, p scenario.Planned) []Action {
	m.turn(now)
	kind, known := faults.Named(p.Fault)
	does, done := behaviours()[p.Fault]
	if !known || !done || !kind.Applies(m.cfg.Server.Kind, m.cfg.Server.Era) {
		return nil
	}
	m.announce()
	f := &fault{plan: p, with: kind.With(p.With), hooks: does, perConn: make(map[int]int)}
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
	m.faults = slices.Delete(slices.Clone(m.faults), i, i+1)
	if f.hooks.end != nil {
		f.hooks.end(m, f)
	}
	return m.out
}
