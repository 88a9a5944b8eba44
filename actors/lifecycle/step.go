package lifecycle

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Step is the state machine: it returns the state after an event, and the effects to perform. It changes nothing but its result.
func Step(s State, e Event) (State, []Effect) {
	m := machine{State: s}
	m.applyEvent(e)
	// This is the only place that answers tickets: a caller waits until the server changes by itself no more.
	if m.Settled() && !m.Refreshing {
		m.Answered = m.Ticket
	}
	return m.State, m.effects
}

// machine is a State while Step changes it, and the effects so far.
type machine struct {
	State
	effects []Effect
	// released: the event is the Closed of a connection that was not ordered to end, so no Shut is needed.
	released bool
}

func (m *machine) emitEffect(e Effect) { m.effects = append(m.effects, e) }

// applyEvent notes the ticket and leaves the decision to the part of the server's life that it is in.
func (m *machine) applyEvent(e Event) {
	// A command that changes nothing has a ticket too: its caller must not wait for ever.
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

// eventTicket returns the ticket of a command, and 0 for every other event.
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

// handleBeforeInit decides before Init, which is the first event that counts.
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

// handleEvent decides between Init and Remove. Each fact is compared with the present attempt first.
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
			// A change during the handshake is in this list already.
			m.Listing, m.Dirty = true, false
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
		// A list that is due is fetched first: what rests shows the tools that it listed last, and where it listed none no call can wake it.
		if m.Phase == messages.Connected && m.isOpen(e.Epoch) && m.Lazy && !m.Listing && !m.Dirty {
			// A call may have been admitted a moment before the gate closed, so the connection is drained.
			m.becomeIdle()
			m.shutConnection(true)
		}
	}
}

func (m *machine) isOpening(epoch uint64) bool { return m.Conn == Opening && m.Epoch == epoch }

func (m *machine) isOpen(epoch uint64) bool { return m.Conn == Open && m.Epoch == epoch }

// startFresh begins with a spec that is new to the server, when no connection is open.
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

// requestStart requests a start, at once, or when the old connection has released everything: two connections of one server could
// disturb each other.
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

// cancelStart takes the request back, if there is one.
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

// becomeFailed keeps the cause; refused credentials lead to needs-auth, where no retry is planned.
func (m *machine) becomeFailed(c Cause) {
	m.Phase, m.Step, m.Cause = messages.Failed, "", &c
	m.Retry, m.NextAt = "", time.Time{}
	if c.Class == messages.ClassUnauthorized {
		m.Phase = messages.NeedsAuth
	}
}

// becomeConnected opens the gate and shows the tools. A change that came during the list is fetched after the quiet period.
func (m *machine) becomeConnected() {
	m.Phase, m.Step, m.Cause = messages.Connected, "", nil
	m.EverConnected, m.WasUp = true, true
	m.ToolsShown = true
	m.Rev++
	m.emitEffect(Show{m.Epoch, m.Rev})
	if m.Dirty {
		m.emitEffect(Coalesce{Epoch: m.Epoch})
	}
}

// shutConnection ends the connection, if there is one, and forgets all that was going on about lists.
func (m *machine) shutConnection(drain bool) {
	if m.Conn == Opening || m.Conn == Open {
		if !m.released {
			m.emitEffect(Shut{Epoch: m.Epoch, Drain: drain})
		}
		m.Conn = Closing
	}
	m.Listing, m.Dirty, m.RelistAfter, m.Refreshing, m.ListFailures = false, false, false, false, 0
}

// withdrawTools removes the tools from the catalog, if the registry has any.
func (m *machine) withdrawTools() {
	if m.ToolsShown {
		m.ToolsShown = false
		m.Rev++
		m.emitEffect(Withdraw{m.Epoch, m.Rev})
	}
}

// becomeIdle shows the known tools as cached; a call of one of them wakes the server.
func (m *machine) becomeIdle() {
	m.ToolsShown = true
	m.Rev++
	m.emitEffect(Rest{m.Epoch, m.Rev})
	m.becomePending(messages.Idle)
}

// loseTools leaves the tools visible as lost, because the server is expected back: a model should not see them flap.
func (m *machine) loseTools() {
	if m.ToolsShown {
		m.Rev++
		m.emitEffect(Lose{m.Epoch, m.Rev})
	}
}

// enableServer makes a disabled server wanted. A warm one is connected at once, unless its tools may have changed meanwhile.
func (m *machine) enableServer() {
	if m.Wanted {
		// An attempt runs, or the status says why none does.
		return
	}
	m.Wanted = true
	switch {
	case m.Conn == Open && (m.Dirty || m.Listing):
		// The list has changed while the server was disabled: its tools return only after a new list.
		m.becomePending(messages.Listing)
		if m.Listing {
			// The list that is being fetched is older than the change.
			m.RelistAfter = m.Dirty
		} else {
			m.listTools()
		}
	case m.Conn == Open:
		m.becomeConnected()
	// A person who enables a server waits for it, so even a lazy one is dialled.
	case m.Blocked == nil && !(m.Lazy && m.EverConnected):
		m.requestStart(Person, true)
	default:
		m.startFresh(Person)
	}
}

// disableServer hides the tools and keeps an open connection, unless cold; an attempt that has not connected is not worth keeping.
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

// reconnectServer ends an open connection and requests a new start. An attempt that runs already is as good as a new one.
func (m *machine) reconnectServer() {
	if !m.Wanted || m.Blocked != nil {
		return // the caller sees the reason in the status
	}
	switch m.Conn {
	case Opening:
		return // a fresh attempt runs
	case Open:
		m.loseTools()
		m.shutConnection(true)
	case None, Closing:
	}
	m.requestStart(Person, true)
}

// wakeServer dials a lazy server that rests. In every other phase the caller's ticket alone counts.
func (m *machine) wakeServer() {
	if m.Wanted && m.Phase == messages.Pending && m.Step == messages.Idle {
		m.requestStart(Person, true)
	}
}

// refreshTools fetches the list again, and lets the caller wait until a list that is younger than the command has come.
func (m *machine) refreshTools() {
	if m.Phase != messages.Connected {
		return
	}
	m.Refreshing = true
	if m.Listing {
		// The list that is being fetched may be older than the command.
		m.RelistAfter = true
	} else {
		m.listTools()
	}
}

// listTools requests a list that covers all changes so far.
func (m *machine) listTools() {
	m.Listing, m.Dirty, m.RelistAfter = true, false, false
	m.emitEffect(List{Epoch: m.Epoch})
}

// replaceSpec begins again under another spec, unless the connection fits it.
func (m *machine) replaceSpec(e Respec) {
	if m.Keeps(e) {
		m.adjustSpec(e)
		return
	}
	m.cancelStart()
	m.withdrawTools()
	// Calls that were admitted under the old spec may finish, within the bound.
	m.shutConnection(true)
	m.Wanted, m.Lazy, m.Blocked = e.Enabled, e.Lazy, e.Blocked
	m.Cause, m.EverConnected = nil, false
	m.startFresh(Person)
}

// adjustSpec keeps the connection, or the rest, and announces the tools again: the bounds on the way to them, or the choice of
// offered tools, may have changed.
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

// removeServer begins the end: the tools go, the connection drains, and Gone follows its release.
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

// handleRemoving decides after Remove: only the release of the connection matters, and a late grant is returned.
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

// announceTools sends the registry again what it may have lost when it was restarted. Without tools it sends Withdraw, so that the
// registry drops those of an older snapshot.
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

// handleGranted begins an attempt. A grant that was taken back, or is not newer, is declined: the supervisor then frees its slot.
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

// handleScheduled takes over the supervisor's decision after a failure.
func (m *machine) handleScheduled(e Scheduled) {
	if e.Epoch != m.Epoch || !m.StartRequested || m.Step == messages.Queued {
		// A newer Ask has overtaken the Report that this answers.
		return
	}
	m.Retry, m.NextAt = e.Retry, e.At
	if e.Retry == messages.RetryNever {
		m.StartRequested, m.NextAt = false, time.Time{}
	}
	if e.Retry != messages.RetryAt && m.Phase == messages.Pending {
		// It was connected, and nothing brings it back soon: that is a failure, not a restart.
		m.Phase, m.Step = messages.Failed, ""
	}
}

// handleListed takes a list into use: the first one connects the server, a later one is announced if the server is connected.
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
		case messages.Pending: // enabled again while warm
			if m.RelistAfter {
				m.listTools()
			} else {
				m.becomeConnected()
			}
		case messages.Disabled, messages.Failed, messages.NeedsAuth: // warm: Enable will find the list
		}
	}
}

// handleListFailed keeps the old list and tries again later; only an attempt that has no list yet fails by it.
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
	// The old list stays, and the change is not forgotten.
	m.Dirty = true
	m.ListFailures++
	switch m.Phase {
	case messages.Connected:
		m.emitEffect(Coalesce{Epoch: m.Epoch, Failures: m.ListFailures})
	case messages.Pending: // enabled again, and its tools cannot be learned
		m.shutConnection(false)
		m.becomeFailed(c)
	case messages.Disabled, messages.Failed, messages.NeedsAuth: // warm: Enable lists again
	}
}

// attemptFailed ends an attempt that never reached connected.
func (m *machine) attemptFailed(c Cause) {
	// A server that waits for credentials is not expected back soon. Otherwise tools that are lost already expire by themselves.
	if c.Class == messages.ClassUnauthorized {
		m.withdrawTools()
	}
	m.shutConnection(false)
	m.becomeFailed(c)
}

// handleLost decides about a connection that died: a connected server restarts, a warm one only loses its connection.
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
	case messages.Pending: // enabled again, and fetching its list
		m.shutConnection(false)
		m.Cause = &c
		m.becomePending(messages.Restarting)
	case messages.Disabled: // a death while warm is no failure, and schedules nothing
		m.shutConnection(false)
	case messages.Failed, messages.NeedsAuth: // cannot occur: these phases have no open connection
	}
}

// handleUnauthorized ends a connection whose credentials the server refuses. A warm server is left alone until it is enabled.
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

// handleClosed follows the release of everything that an attempt held. It requests the start that had to wait for it.
func (m *machine) handleClosed(epoch uint64) {
	if epoch != m.Epoch || m.Conn == None {
		return
	}
	// A connection that is released without a Lost before died all the same.
	if m.Conn != Closing {
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

// handleToolsChanged notes a change, and begins the quiet period if no list is being fetched.
func (m *machine) handleToolsChanged(epoch uint64) {
	if m.Epoch != epoch || m.Conn != Opening && m.Conn != Open {
		return
	}
	m.Dirty = true
	// After a list that failed the next one is due already, and more notifications must not bring it forward.
	if m.Phase == messages.Connected && !m.Listing && m.ListFailures == 0 {
		m.emitEffect(Coalesce{Epoch: m.Epoch})
	}
}
