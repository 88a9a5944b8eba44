package peer

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// fault is one planned fault from its Begin to its End.
type fault struct {
	plan   scenario.PlannedFault
	params faults.Values
	hooks  hooks
	// ended stops the scheduled functions of the fault that are still to run: they ask it before each effect.
	ended bool
	// effectCount counts effects where a hook needs different values each time, countPerConn does the same by connection
	// number.
	effectCount  int
	countPerConn map[int]int
	// heldActions waits for the end of the fault. keptConns are connections that the client has closed while the fault kept the
	// server from leaving; they end with the fault.
	heldActions []heldAction
	keptConns   []*conn
	// secret is the text that leak-canary puts into a tool's description, fixed at its begin so that the list stays the same.
	secret string
}

// heldAction is a function that a fault holds for a connection until its end. releaseHeld skips it if the connection has ended.
type heldAction struct {
	conn *conn
	do   func()
}

// hooks are the places at which a fault interferes. The machine calls them in the order in which the faults began. A hook that
// returns true has handled the matter, and the machine asks no later fault and does nothing itself. A nil hook does not
// interfere.
type hooks struct {
	// onBegin and onEnd run in Begin and End.
	onBegin, onEnd func(m *machine, f *fault)
	// onDial decides a dial, onConnCreated changes a connection before it is accepted, onConnOpened acts on it after.
	onDial        func(m *machine, f *fault, id int) bool
	onConnCreated func(m *machine, f *fault, c *conn)
	onConnOpened  func(m *machine, f *fault, c *conn)
	// onUnknownConn decides a message over HTTP whose connection the machine does not know; onLostSession one of a session that
	// it forgot.
	onUnknownConn func(m *machine, f *fault, id int, body []byte) bool
	onLostSession func(m *machine, f *fault, c *conn, q *message) bool
	// onMessage sees each message before the server, extraDelay lengthens the time until an answer.
	onMessage  func(m *machine, f *fault, c *conn, q *message) bool
	extraDelay func(m *machine, f *fault, c *conn, q *message) time.Duration
	// beforeAnswer sees each answer before the machine sends it and may change or take it, afterAnswer runs once it is sent.
	beforeAnswer func(m *machine, f *fault, c *conn, a *answer) bool
	afterAnswer  func(m *machine, f *fault, c *conn, a *answer)
	// onCall sees a call that has arrived, beforeRun one whose tool is about to run, afterRun one whose tool has run, and
	// onCancel one that the client has cancelled.
	onCall, beforeRun, onCancel func(m *machine, f *fault, c *conn, k *call) bool
	afterRun                    func(m *machine, f *fault, c *conn, k *call, a *answer) bool
	// editTools changes the tool list that the server shows, editPage one page of it.
	editTools func(f *fault, all []tool) []tool
	editPage  func(m *machine, f *fault, c *conn, p *toolPage)
	// beforeListen runs before the server acknowledges a subscription, afterListen after.
	beforeListen, afterListen func(m *machine, f *fault, c *conn, l *subscriptionStream)
	// onClosed decides whether the server stays when the client closes its side, or when a signal arrives.
	onClosed func(m *machine, f *fault, c *conn, signal bool) bool
}

// behaviours returns the hooks of every fault by its name. The first Begin joins the tables of the fault_*.go files into one map.
var behaviours = sync.OnceValue(func() map[string]hooks {
	all := make(map[string]hooks)
	for _, g := range []map[string]hooks{
		processFaults, holdFaults, outputFaults, callFaults, listFaults, protocolFaults, httpFaults, networkFaults, trustFaults,
	} {
		maps.Copy(all, g)
	}
	return all
})

// recordFired records that the fault has an effect on a connection; conn is 0 for an effect on the whole server.
func (f *fault) recordFired(m *machine, conn int) {
	m.recordEvent(history.Event{
		Side: history.Harness, Kind: history.Fired, Fault: f.plan.ID, Name: f.plan.Fault, Conn: conn,
	})
}

// drawChance draws whether the fault strikes this time, by its parameter chance.
func (f *fault) drawChance(m *machine) bool { return m.drawChance(f.params.Float("chance")) }

// holdUntilEnd keeps a function back until the fault ends; only faults whose onEnd is releaseHeld may use it.
func (f *fault) holdUntilEnd(c *conn, do func()) {
	f.heldActions = append(f.heldActions, heldAction{c, do})
}

// releaseHeld does what the fault held, and ends the connections that it kept open after their clients had left.
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

// Begin implements [Machine].
func (m *machine) Begin(now time.Duration, p scenario.PlannedFault) []Action {
	m.beginTurn(now)
	m.lastFaultAt = now
	kind, known := faults.Lookup(p.Fault)
	behaviour, implemented := behaviours()[p.Fault]
	if !known || !implemented || !kind.Applies(m.cfg.Server.Kind, m.cfg.Server.Era) {
		return nil
	}
	m.announceTools()
	f := &fault{plan: p, params: kind.With(faults.Sim, p.With), hooks: behaviour, countPerConn: make(map[int]int)}
	if !kind.Instant.Has(faults.Sim) {
		m.activeFaults = append(m.activeFaults, f)
	}
	if behaviour.onBegin != nil {
		// End implements [Machine].
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
	f.ended, m.lastFaultAt = true, now
	m.activeFaults = slices.Delete(slices.Clone(m.activeFaults), i, i+1)
	if f.hooks.onEnd != nil {
		f.hooks.onEnd(m, f)
	}
	return m.out
}
