package lifecycle

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Step is the machine: what follows from event in state s. It changes nothing but its result.
func Step(s State, e Event) (State, []Effect) {
	m := machine{State: s}
	m.applyEvent(e)
	// The one place that ends waiting: whoever waits for a server waits until nothing is on its way.
	if m.Settled() && !m.Refreshing {
		m.Answered = m.Ticket
	}
	return m.State, m.effects
}

// machine is a State under change and the effects so far.
type machine struct {
	State
	effects []Effect
	// released: the event is the Closed of a connection that nobody told to end.
	released bool
}

func (m *machine) emitEffect(e Effect) { m.effects = append(m.effects, e) }

func (m *machine) applyEvent(e Event) {
	// Also the ticket of a wish that changes nothing: whoever waits is told so at once.
	m.Ticket = max(m.Ticket, eventTicket(e))
	switch {
	case m.Removing:
		m.handleRemoving(e)
	case m.Phase == "":
		m.handleBeforeInit(e)
	default:
		m.handleEvent(e)
	}
}

// eventTicket is that of a wish, and 0 for every other event.
func eventTicket(e Event) uint64 {
	switch e := e.(type) {
	case Init:
		return e.Ticket
	case Enable:
		return e.Ticket
	case Disable:
		return e.Ticket
	case Reconnect:
		return e.Ticket
	case Wake:
		return e.Ticket
	case Refresh:
		return e.Ticket
	case Respec:
		return e.Ticket
	}
	return 0
}

// handleBeforeInit is the time before Init, which is the first event that counts.
func (m *machine) handleBeforeInit(e Event) {
	switch e := e.(type) {
	case Init:
		m.Wanted, m.Lazy, m.Blocked, m.EverConnected = e.Enabled, e.Lazy, e.Blocked, e.Cached
		m.startFresh(Normal)
	case Remove:
		m.removeServer()
	case Granted:
		m.emitEffect(Decline{e.Epoch})
	}
}

// handleEvent is the time between Init and Remove.
func (m *machine) handleEvent(e Event) {
	switch e := e.(type) {
	case Enable:
		m.enableServer()
	case Disable:
		m.disableServer(e.Cold)
	case Reconnect:
		m.reconnectServer()
	case Wake:
		m.wakeServer()
	case Refresh:
		m.refreshTools()
	case Respec:
		m.replaceSpec(e)
	case Remove:
		m.removeServer()
	case Announce:
		m.announceTools()
	case Granted:
		m.handleGranted(e.Epoch)
	case Scheduled:
		m.handleScheduled(e)
	case Dialed:
		if m.isOpening(e.Epoch) && m.Step == messages.Dialing {
			m.Step = messages.Handshaking
			m.emitEffect(Greet{e.Epoch})
		}
	case Installing:
		if m.isOpening(e.Epoch) && m.Step == messages.Handshaking {
			m.Step = messages.Installing
			m.emitEffect(Install{e.Epoch})
		}
	case Greeted:
		if m.isOpening(e.Epoch) && (m.Step == messages.Handshaking || m.Step == messages.Installing) {
			m.Step = messages.Listing
			m.Listing, m.Dirty = true, false // what changed during the handshake is in this list
			m.emitEffect(Answer{e.Epoch})
			m.emitEffect(List{Epoch: e.Epoch, First: true})
		}
	case Listed:
		m.handleListed(e.Epoch)
	case ListFailed:
		m.handleListFailed(e.Epoch, e.Cause)
	case Failed:
		if m.isOpening(e.Epoch) {
			m.attemptFailed(e.Cause)
		}
	case Lost:
		m.handleLost(e.Epoch, e.Cause)
	case Unauthorized:
		m.handleUnauthorized(e.Epoch, e.Cause)
	case Closed:
		m.handleClosed(e.Epoch)
	case ToolsChanged:
		m.handleToolsChanged(e.Epoch)
	case RelistDue:
		if m.Phase == messages.Connected && m.isOpen(e.Epoch) && m.Dirty && !m.Listing {
			m.listTools()
		}
	case IdleOut:
		if m.Phase == messages.Connected && m.isOpen(e.Epoch) && m.Lazy && !m.Listing {
			m.becomeIdle()
			m.shutConnection(true) // a call may have been admitted a moment before the gate closed
		}
	}
}

func (m *machine) isOpening(epoch uint64) bool { return m.Conn == Opening && m.Epoch == epoch }

func (m *machine) isOpen(epoch uint64) bool { return m.Conn == Open && m.Epoch == epoch }

// startFresh is what a server does with a spec that is new to it and nothing open.
func (m *machine) startFresh(u Urgency) {
	switch {
	case !m.Wanted:
		m.becomeDisabled()
	case m.Blocked != nil:
		m.becomeFailed(*m.Blocked)
		m.Retry = messages.RetryNever
	case m.Lazy && m.EverConnected:
		m.becomeIdle()
	case m.Lazy:
		m.requestStart(Background, true)
	default:
		m.requestStart(u, true)
	}
}

// requestStart asks for a start, or arranges that it is asked for as soon as the old connection has released everything.
func (m *machine) requestStart(u Urgency, fresh bool) {
	m.NextAt, m.Retry = time.Time{}, ""
	if m.Conn != None {
		m.becomePending(messages.Closing)
		m.DueUrgency = u
		return
	}
	m.becomePending(messages.Queued)
	m.StartRequested = true
	m.emitEffect(Ask{Urgency: u, Fresh: fresh})
}

func (m *machine) cancelStart() {
	if m.StartRequested {
		m.StartRequested = false
		m.emitEffect(Unask{})
	}
}

func (m *machine) becomePending(step messages.Step) {
	m.Phase, m.Step = messages.Pending, step
}

func (m *machine) becomeDisabled() {
	m.Phase, m.Step, m.Cause = messages.Disabled, "", nil
	m.Retry, m.NextAt = "", time.Time{}
}

func (m *machine) becomeFailed(c Cause) {
	m.Phase, m.Step, m.Cause = messages.Failed, "", &c
	m.Retry, m.NextAt = "", time.Time{}
	if c.Class == messages.ClassUnauthorized {
		m.Phase = messages.NeedsAuth
	}
}

func (m *machine) becomeConnected() {
	m.Phase, m.Step, m.Cause = messages.Connected, "", nil
	m.EverConnected, m.WasUp = true, true
	m.ToolsShown = true
	m.Rev++
	m.emitEffect(Show{m.Epoch, m.Rev})
	if m.Dirty { // the list changed while it was being listed
		m.emitEffect(Coalesce{Epoch: m.Epoch})
	}
}

// shutConnection ends the connection that there is.
func (m *machine) shutConnection(drain bool) {
	if m.Conn == Opening || m.Conn == Open {
		if !m.released {
			m.emitEffect(Shut{Epoch: m.Epoch, Drain: drain})
		}
		m.Conn = Closing
	}
	m.Listing, m.Dirty, m.RelistAfter, m.Refreshing, m.ListFailures = false, false, false, false, 0
}

// withdrawTools takes the tools away, if the registry knows any.
func (m *machine) withdrawTools() {
	if m.ToolsShown {
		m.ToolsShown = false
		m.Rev++
		m.emitEffect(Withdraw{m.Epoch, m.Rev})
	}
}

// becomeIdle shows the tools that are known from before: their use wakes the server.
func (m *machine) becomeIdle() {
	m.ToolsShown = true
	m.Rev++
	m.emitEffect(Rest{m.Epoch, m.Rev})
	m.becomePending(messages.Idle)
}

// loseTools keeps the tools in sight for a moment: the server is expected back.
func (m *machine) loseTools() {
	if m.ToolsShown {
		m.Rev++
		m.emitEffect(Lose{m.Epoch, m.Rev})
	}
}

func (m *machine) enableServer() {
	if m.Wanted {
		return // it is on its way, or has said why not
	}
	m.Wanted = true
	switch {
	case m.Conn == Open && (m.Dirty || m.Listing):
		// "a list_changed only marks it dirty and it is re-listed before its tools return"
		m.becomePending(messages.Listing)
		if m.Listing {
			m.RelistAfter = m.Dirty // what is in flight is older than the change
		} else {
			m.listTools()
		}
	case m.Conn == Open:
		m.becomeConnected()
	case m.Blocked == nil && !(m.Lazy && m.EverConnected):
		m.requestStart(Person, true) // whoever enables it waits for it, also if it is lazy
	default:
		m.startFresh(Person)
	}
}

func (m *machine) disableServer(cold bool) {
	m.Wanted = false
	m.cancelStart()
	m.withdrawTools()
	m.Refreshing, m.RelistAfter = false, false
	if cold || m.Conn == Opening {
		m.shutConnection(false)
	}
	m.becomeDisabled()
}

func (m *machine) reconnectServer() {
	if !m.Wanted || m.Blocked != nil {
		return // the wish and the spec overrule: the caller is told so by the status
	}
	switch m.Conn {
	case Opening:
		return // a fresh attempt is on its way
	case Open:
		m.loseTools()
		m.shutConnection(true)
	case None, Closing:
	}
	m.requestStart(Person, true)
}

func (m *machine) wakeServer() {
	if m.Wanted && m.Phase == messages.Pending && m.Step == messages.Idle {
		m.requestStart(Person, true)
	}
}

func (m *machine) refreshTools() {
	if m.Phase != messages.Connected {
		return
	}
	m.Refreshing = true
	if m.Listing {
		m.RelistAfter = true // what is in flight may be older than the wish
	} else {
		m.listTools()
	}
}

func (m *machine) listTools() {
	m.Listing, m.Dirty, m.RelistAfter = true, false, false
	m.emitEffect(List{Epoch: m.Epoch})
}

func (m *machine) replaceSpec(e Respec) {
	if m.Keeps(e) {
		m.adjustSpec(e)
		return
	}
	m.cancelStart()
	m.withdrawTools()
	m.shutConnection(true) // what was admitted under the old spec may finish, within the bound
	m.Wanted, m.Lazy, m.Blocked = e.Enabled, e.Lazy, e.Blocked
	m.Cause, m.EverConnected = nil, false
	m.startFresh(Person)
}

// adjustSpec goes on with the connection, or the rest, that there is, and says again what the registry knows: the way to the
// tools, or which of them are offered, may be another one.
func (m *machine) adjustSpec(e Respec) {
	m.Lazy = e.Lazy
	switch {
	case e.Enabled && !m.Wanted:
		m.enableServer()
	case !e.Enabled && m.Wanted:
		m.disableServer(false)
	case m.Phase == messages.Connected:
		m.Rev++
		m.emitEffect(Update{m.Epoch, m.Rev})
	case m.Step == messages.Idle && m.Lazy:
		m.becomeIdle()
	case m.Step == messages.Idle:
		m.requestStart(Normal, true)
	}
}

func (m *machine) removeServer() {
	m.Removing, m.Wanted = true, false
	m.cancelStart()
	m.withdrawTools()
	m.shutConnection(true)
	m.becomeDisabled()
	if m.Conn == None {
		m.emitEffect(Gone{})
	}
}

// handleRemoving is the end: only the release of the connection matters.
func (m *machine) handleRemoving(e Event) {
	switch e := e.(type) {
	case Granted:
		m.emitEffect(Decline{e.Epoch})
	case Closed:
		if e.Epoch == m.Epoch && m.Conn != None {
			m.Conn = None
			m.emitEffect(Gone{})
		}
	}
}

// announceTools says again what the registry may have lost when it was restarted.
func (m *machine) announceTools() {
	m.Rev++
	switch {
	case m.Phase == messages.Connected:
		m.emitEffect(Update{m.Epoch, m.Rev})
	case m.Phase == messages.Pending && m.Step == messages.Idle:
		m.emitEffect(Rest{m.Epoch, m.Rev})
	case m.ToolsShown:
		m.emitEffect(Lose{m.Epoch, m.Rev})
	default:
		m.emitEffect(Withdraw{m.Epoch, m.Rev})
	}
}

func (m *machine) handleGranted(epoch uint64) {
	if !m.StartRequested || epoch <= m.Epoch {
		m.emitEffect(Decline{epoch})
		return
	}
	m.StartRequested = false
	m.Epoch, m.Conn, m.WasUp = epoch, Opening, false
	m.Retry, m.NextAt = "", time.Time{}
	m.becomePending(messages.Dialing)
	m.emitEffect(Dial{epoch})
}

func (m *machine) handleScheduled(e Scheduled) {
	if e.Epoch != m.Epoch || !m.StartRequested || m.Step == messages.Queued {
		return // queued: a newer Ask has overtaken the Report that this answers
	}
	m.Retry, m.NextAt = e.Retry, e.At
	if e.Retry == messages.RetryNever {
		m.StartRequested, m.NextAt = false, time.Time{}
	}
	if e.Retry != messages.RetryAt && m.Phase == messages.Pending {
		// It was connected and nothing brings it back soon: that is a failure, not a restart.
		m.Phase, m.Step = messages.Failed, ""
	}
}

func (m *machine) handleListed(epoch uint64) {
	switch {
	case m.isOpening(epoch) && m.Listing:
		m.Conn, m.Listing = Open, false
		m.emitEffect(Up{epoch})
		m.becomeConnected()
	case m.isOpen(epoch) && m.Listing:
		m.Listing, m.Refreshing, m.ListFailures = false, m.Refreshing && m.RelistAfter, 0
		switch m.Phase {
		case messages.Connected:
			m.Rev++
			m.emitEffect(Update{m.Epoch, m.Rev})
			if m.RelistAfter {
				m.listTools()
			} else if m.Dirty {
				m.emitEffect(Coalesce{Epoch: m.Epoch})
			}
		case messages.Pending: // enabled again
			if m.RelistAfter {
				m.listTools()
			} else {
				m.becomeConnected()
			}
		case messages.Disabled, messages.Failed, messages.NeedsAuth: // warm: the list is there when it is enabled
		}
	}
}

func (m *machine) handleListFailed(epoch uint64, c Cause) {
	if m.isOpening(epoch) {
		m.attemptFailed(c)
		return
	}
	if !m.isOpen(epoch) || !m.Listing {
		return
	}
	if c.Class == messages.ClassUnauthorized && m.Phase != messages.Disabled {
		m.handleUnauthorized(epoch, c)
		return
	}
	m.Listing, m.RelistAfter, m.Refreshing = false, false, false
	m.Dirty = true // the old list stands, and the change is not forgotten
	m.ListFailures++
	switch m.Phase {
	case messages.Connected:
		m.emitEffect(Coalesce{Epoch: m.Epoch, Failures: m.ListFailures})
	case messages.Pending: // enabled again, and its tools cannot be known
		m.shutConnection(false)
		m.becomeFailed(c)
	case messages.Disabled, messages.Failed, messages.NeedsAuth: // warm: Enable lists again
	}
}

// attemptFailed ends an attempt that never reached connected.
func (m *machine) attemptFailed(c Cause) {
	if c.Class == messages.ClassUnauthorized {
		m.withdrawTools() // nobody is expected back soon; otherwise the registry lets lost tools go in time
	}
	m.shutConnection(false)
	m.becomeFailed(c)
}

func (m *machine) handleLost(epoch uint64, c Cause) {
	if m.isOpening(epoch) {
		m.attemptFailed(c)
		return
	}
	if !m.isOpen(epoch) {
		return
	}
	if c.Class == messages.ClassUnauthorized && m.Phase != messages.Disabled {
		m.handleUnauthorized(epoch, c)
		return
	}
	switch m.Phase {
	case messages.Connected:
		m.loseTools()
		m.shutConnection(false)
		m.Cause = &c
		m.becomePending(messages.Restarting)
	case messages.Pending: // enabled again and listing
		m.shutConnection(false)
		m.Cause = &c
		m.becomePending(messages.Restarting)
	case messages.Disabled: // "a death while warm schedules nothing"
		m.shutConnection(false)
	case messages.Failed, messages.NeedsAuth: // never open
	}
}

func (m *machine) handleUnauthorized(epoch uint64, c Cause) {
	c.Class = messages.ClassUnauthorized
	if m.isOpening(epoch) {
		m.attemptFailed(c)
		return
	}
	if !m.isOpen(epoch) || m.Phase == messages.Disabled {
		return
	}
	m.withdrawTools()
	m.shutConnection(true)
	m.becomeFailed(c)
}

func (m *machine) handleClosed(epoch uint64) {
	if epoch != m.Epoch || m.Conn == None {
		return
	}
	if m.Conn != Closing { // released without a word before: as good as lost
		m.released = true
		m.handleLost(epoch, Cause{Class: messages.ClassNetwork, Text: "the connection ended"})
	}
	m.Conn = None
	switch {
	case m.Phase == messages.Pending && m.Step == messages.Closing:
		m.requestStart(m.DueUrgency, true)
	case m.Phase == messages.Pending && m.Step == messages.Restarting, m.Phase == messages.Failed && m.Blocked == nil:
		m.StartRequested = true
		m.emitEffect(Report{Epoch: epoch, Cause: *m.Cause, Up: m.WasUp})
	}
}

func (m *machine) handleToolsChanged(epoch uint64) {
	if m.Epoch != epoch || m.Conn != Opening && m.Conn != Open {
		return
	}
	m.Dirty = true
	// After a re-list that failed the next one is due already, and a server that talks must not shorten the wait for it.
	if m.Phase == messages.Connected && !m.Listing && m.ListFailures == 0 {
		m.emitEffect(Coalesce{Epoch: m.Epoch})
	}
}
