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
	plan   scenario.PlannedFault
	params faults.Values
	hooks  hooks
	// ended says that it has ended.
	ended bool
	// effectCount counts what it did, countPerConn on one connection.
	effectCount  int
	countPerConn map[int]int
	// heldActions is what it holds back until its end, left are the connections whose clients have left while it kept them.
	heldActions []heldAction
	keptConns   []*conn
	// secret is what it may write where it does not belong.
	secret string
}

// heldAction is what is done on a connection at the end of a fault, unless the connection has ended.
type heldAction struct {
	conn *conn
	do   func()
}

// hooks are the places at which a fault can interfere. One that returns true has dealt with the matter, and nobody else
// is asked. nil does nothing.
type hooks struct {
	// onBegin and end switch it.
	onBegin, onEnd func(m *machine, f *fault)
	// onDial is asked when a dial arrives, start when a connection is made, opened when it has been.
	onDial        func(m *machine, f *fault, id int) bool
	onConnCreated func(m *machine, f *fault, c *conn)
	onConnOpened  func(m *machine, f *fault, c *conn)
	// onUnknownConn is asked when a message comes over HTTP that is of no connection, noSession when it is of a lost session.
	onUnknownConn func(m *machine, f *fault, id int, body []byte) bool
	onLostSession func(m *machine, f *fault, c *conn, q *message) bool
	// onMessage sees each message before the server, delay lengthens the time of an answer.
	onMessage  func(m *machine, f *fault, c *conn, q *message) bool
	extraDelay func(m *machine, f *fault, c *conn, q *message) time.Duration
	// beforeAnswer sees each answer before it is sent, answered after.
	beforeAnswer func(m *machine, f *fault, c *conn, a *answer) bool
	afterAnswer  func(m *machine, f *fault, c *conn, a *answer)
	// onCall sees a call that has come, run one that is about to run, ran one that has, cancelled one that is not wanted any
	// more.
	onCall, beforeRun, onCancel func(m *machine, f *fault, c *conn, k *call) bool
	afterRun                    func(m *machine, f *fault, c *conn, k *call, a *answer) bool
	// editTools sees the tool list as it is sent, page one page of it.
	editTools func(f *fault, all []tool) []tool
	editPage  func(m *machine, f *fault, c *conn, p *toolPage)
	// beforeListen sees a subscription before it is agreed to, listens after.
	beforeListen, afterListen func(m *machine, f *fault, c *conn, l *subscriptionStream)
	// onClosed is asked when the client closes, or when a signal comes.
	onClosed func(m *machine, f *fault, c *conn, signal bool) bool
}

// behaviours are the faults by name.
var behaviours = sync.OnceValue(func() map[string]hooks {
	all := make(map[string]hooks)
	for _, g := range []map[string]hooks{
		processFaults, holdFaults, outputFaults, callFaults, listFaults, protocolFaults, httpFaults, networkFaults, trustFaults,
	} {
		maps.Copy(all, g)
	}
	return all
})

// recordFired notes that the fault has an effect.
func (f *fault) recordFired(m *machine, conn int) {
	m.recordEvent(history.Event{
		Side: history.Harness, Kind: history.Fired, Fault: f.plan.ID, Name: f.plan.Fault, Conn: conn,
	})
}

// drawChance draws whether the fault befalls one of the cases that its parameter chance is about.
func (f *fault) drawChance(m *machine) bool { return m.drawChance(f.params.Float("chance")) }

// holdUntilEnd keeps something back until the end of the fault.
func (f *fault) holdUntilEnd(c *conn, do func()) {
	f.heldActions = append(f.heldActions, heldAction{c, do})
}

// releaseHeld is the end of hold.
func releaseHeld(m *machine, f *fault) {
	for _, h := range f.heldActions {
		if !m.isEnded(h.conn) {
			m.runOrHold(h.conn, h.do)
		}
	}
	for _, c := range f.keptConns {
		m.endConn(c, Exit{})
	}
}

// Begin implements Machine.
func (m *machine) Begin(now time.Duration, p scenario.PlannedFault) []Action {
	m.beginTurn(now)
	kind, known := faults.Find(p.Fault)
	behaviour, implemented := behaviours()[p.Fault]
	if !known || !implemented || !kind.Applies(m.cfg.Server.Kind, m.cfg.Server.Era) {
		return nil
	}
	m.announceTools()
	f := &fault{plan: p, params: kind.With(p.With), hooks: behaviour, countPerConn: make(map[int]int)}
	if !kind.Instant {
		m.activeFaults = append(m.activeFaults, f)
	}
	if behaviour.onBegin != nil {
		behaviour.onBegin(m, f)
	}
	return m.out
}

// End implements Machine.
func (m *machine) End(now time.Duration, p scenario.PlannedFault) []Action {
	m.beginTurn(now)
	i := slices.IndexFunc(m.activeFaults, func(f *fault) bool { return f.plan.ID == p.ID && f.plan.Fault == p.Fault })
	if i < 0 {
		return nil
	}
	f := m.activeFaults[i]
	f.ended = true
	m.activeFaults = slices.Delete(slices.Clone(m.activeFaults), i, i+1)
	if f.hooks.onEnd != nil {
		f.hooks.onEnd(m, f)
	}
	return m.out
}
