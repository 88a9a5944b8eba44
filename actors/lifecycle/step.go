package lifecycle

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Step is the machine: what follows from event in state s. It changes nothing but its result.
func Step(s State, e Event) (State, []Effect) {
	m := machine{State: s}
	m.apply(e)
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

func (m *machine) do(e Effect) { m.effects = append(m.effects, e) }

func (m *machine) apply(e Event) {
	// Also the ticket of a wish that changes nothing: whoever waits is told so at once.
	m.Ticket = max(m.Ticket, ticket(e))
	switch {
	case m.Removing:
		m.removing(e)
	case m.Phase == "":
		m.notBegun(e)
	default:
		m.alive(e)
	}
}

// ticket is that of a wish, and 0 for every other event.
func ticket(e Event) uint64 {
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

// notBegun is the time before Init, which is the first event that counts.
func (m *machine) notBegun(e Event) {
	switch e := e.(type) {
	case Init:
		m.Wanted, m.Lazy, m.Blocked, m.Ever = e.Enabled, e.Lazy, e.Blocked, e.Cached
		m.begin(Normal)
	case Remove:
		m.remove()
	case Granted:
		m.do(Decline{e.Epoch})
	}
}

// alive is the time between Init and Remove.
func (m *machine) alive(e Event) {
	switch e := e.(type) {
	case Enable:
		m.enable()
	case Disable:
		m.disable(e.Cold)
	case Reconnect:
		m.reconnect()
	case Wake:
		m.wake()
	case Refresh:
		m.refresh()
	case Respec:
		m.respec(e)
	case Remove:
		m.remove()
	case Announce:
		m.announce()
	case Granted:
		m.granted(e.Epoch)
	case Scheduled:
		m.scheduled(e)
	case Dialed:
		if m.opening(e.Epoch) && m.Step == messages.Dialing {
			m.Step = messages.Handshaking
			m.do(Greet{e.Epoch})
		}
	case Installing:
		if m.opening(e.Epoch) && m.Step == messages.Handshaking {
			m.Step = messages.Installing
			m.do(Install{e.Epoch})
		}
	case Greeted:
		if m.opening(e.Epoch) && (m.Step == messages.Handshaking || m.Step == messages.Installing) {
			m.Step = messages.Listing
			m.Listing, m.Dirty = true, false // what changed during the handshake is in this list
			m.do(Answer{e.Epoch})
			m.do(List{Epoch: e.Epoch, First: true})
		}
	case Listed:
		m.listed(e.Epoch)
	case ListFailed:
		m.listFailed(e.Epoch, e.Cause)
	case Failed:
		if m.opening(e.Epoch) {
			m.attemptFailed(e.Cause)
		}
	case Lost:
		m.lost(e.Epoch, e.Cause)
	case Unauthorized:
		m.unauthorized(e.Epoch, e.Cause)
	case Closed:
		m.closed(e.Epoch)
	case ToolsChanged:
		m.toolsChanged(e.Epoch)
	case RelistDue:
		if m.Phase == messages.Connected && m.open(e.Epoch) && m.Dirty && !m.Listing {
			m.list()
		}
	case IdleOut:
		if m.Phase == messages.Connected && m.open(e.Epoch) && m.Lazy && !m.Listing {
			m.rest()
			m.shut(true) // a call may have been admitted a moment before the gate closed
		}
	}
}

func (m *machine) opening(epoch uint64) bool { return m.Conn == Opening && m.Epoch == epoch }

func (m *machine) open(epoch uint64) bool { return m.Conn == Open && m.Epoch == epoch }

// begin is what a server does with a spec that is new to it and nothing open.
func (m *machine) begin(u Urgency) {
	switch {
	case !m.Wanted:
		m.becomeDisabled()
	case m.Blocked != nil:
		m.becomeFailed(*m.Blocked)
		m.Retry = messages.RetryNever
	case m.Lazy && m.Ever:
		m.rest()
	case m.Lazy:
		m.ask(Background, true)
	default:
		m.ask(u, true)
	}
}

// ask asks for a start, or arranges that it is asked for as soon as the old connection has released everything.
func (m *machine) ask(u Urgency, fresh bool) {
	m.NextAt, m.Retry = time.Time{}, ""
	if m.Conn != None {
		m.becomePending(messages.Closing)
		m.Due = u
		return
	}
	m.becomePending(messages.Queued)
	m.Asked = true
	m.do(Ask{Urgency: u, Fresh: fresh})
}

func (m *machine) unask() {
	if m.Asked {
		m.Asked = false
		m.do(Unask{})
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
	m.Ever, m.WasUp = true, true
	m.Shown = true
	m.Rev++
	m.do(Show{m.Epoch, m.Rev})
	if m.Dirty { // the list changed while it was being listed
		m.do(Coalesce{Epoch: m.Epoch})
	}
}

// shut ends the connection that there is.
func (m *machine) shut(drain bool) {
	if m.Conn == Opening || m.Conn == Open {
		if !m.released {
			m.do(Shut{Epoch: m.Epoch, Drain: drain})
		}
		m.Conn = Closing
	}
	m.Listing, m.Dirty, m.Again, m.Refreshing, m.ListFailures = false, false, false, false, 0
}

// withdraw takes the tools away, if the registry knows any.
func (m *machine) withdraw() {
	if m.Shown {
		m.Shown = false
		m.Rev++
		m.do(Withdraw{m.Epoch, m.Rev})
	}
}

// rest shows the tools that are known from before: their use wakes the server.
func (m *machine) rest() {
	m.Shown = true
	m.Rev++
	m.do(Rest{m.Epoch, m.Rev})
	m.becomePending(messages.Idle)
}

// lose keeps the tools in sight for a moment: the server is expected back.
func (m *machine) lose() {
	if m.Shown {
		m.Rev++
		m.do(Lose{m.Epoch, m.Rev})
	}
}

func (m *machine) enable() {
	if m.Wanted {
		return // it is on its way, or has said why not
	}
	m.Wanted = true
	switch {
	case m.Conn == Open && (m.Dirty || m.Listing):
		// "a list_changed only marks it dirty and it is re-listed before its tools return"
		m.becomePending(messages.Listing)
		if m.Listing {
			m.Again = m.Dirty // what is in flight is older than the change
		} else {
			m.list()
		}
	case m.Conn == Open:
		m.becomeConnected()
	case m.Blocked == nil && !(m.Lazy && m.Ever):
		m.ask(Person, true) // whoever enables it waits for it, also if it is lazy
	default:
		m.begin(Person)
	}
}

func (m *machine) disable(cold bool) {
	m.Wanted = false
	m.unask()
	m.withdraw()
	m.Refreshing, m.Again = false, false
	if cold || m.Conn == Opening {
		m.shut(false)
	}
	m.becomeDisabled()
}

func (m *machine) reconnect() {
	if !m.Wanted || m.Blocked != nil {
		return // the wish and the spec overrule: the caller is told so by the status
	}
	switch m.Conn {
	case Opening:
		return // a fresh attempt is on its way
	case Open:
		m.lose()
		m.shut(true)
	case None, Closing:
	}
	m.ask(Person, true)
}

func (m *machine) wake() {
	if m.Wanted && m.Phase == messages.Pending && m.Step == messages.Idle {
		m.ask(Person, true)
	}
}

func (m *machine) refresh() {
	if m.Phase != messages.Connected {
		return
	}
	m.Refreshing = true
	if m.Listing {
		m.Again = true // what is in flight may be older than the wish
	} else {
		m.list()
	}
}

func (m *machine) list() {
	m.Listing, m.Dirty, m.Again = true, false, false
	m.do(List{Epoch: m.Epoch})
}

func (m *machine) respec(e Respec) {
	if m.Keeps(e) {
		m.adjust(e)
		return
	}
	m.unask()
	m.withdraw()
	m.shut(true) // what was admitted under the old spec may finish, within the bound
	m.Wanted, m.Lazy, m.Blocked = e.Enabled, e.Lazy, e.Blocked
	m.Cause, m.Ever = nil, false
	m.begin(Person)
}

// adjust goes on with the connection, or the rest, that there is, and says again what the registry knows: the way to the
// tools, or which of them are offered, may be another one.
func (m *machine) adjust(e Respec) {
	m.Lazy = e.Lazy
	switch {
	case e.Enabled && !m.Wanted:
		m.enable()
	case !e.Enabled && m.Wanted:
		m.disable(false)
	case m.Phase == messages.Connected:
		m.Rev++
		m.do(Update{m.Epoch, m.Rev})
	case m.Step == messages.Idle && m.Lazy:
		m.rest()
	case m.Step == messages.Idle:
		m.ask(Normal, true)
	}
}

func (m *machine) remove() {
	m.Removing, m.Wanted = true, false
	m.unask()
	m.withdraw()
	m.shut(true)
	m.becomeDisabled()
	if m.Conn == None {
		m.do(Gone{})
	}
}

// removing is the end: only the release of the connection matters.
func (m *machine) removing(e Event) {
	switch e := e.(type) {
	case Granted:
		m.do(Decline{e.Epoch})
	case Closed:
		if e.Epoch == m.Epoch && m.Conn != None {
			m.Conn = None
			m.do(Gone{})
		}
	}
}

// announce says again what the registry may have lost when it was restarted.
func (m *machine) announce() {
	m.Rev++
	switch {
	case m.Phase == messages.Connected:
		m.do(Update{m.Epoch, m.Rev})
	case m.Phase == messages.Pending && m.Step == messages.Idle:
		m.do(Rest{m.Epoch, m.Rev})
	case m.Shown:
		m.do(Lose{m.Epoch, m.Rev})
	default:
		m.do(Withdraw{m.Epoch, m.Rev})
	}
}

func (m *machine) granted(epoch uint64) {
	if !m.Asked || epoch <= m.Epoch {
		m.do(Decline{epoch})
		return
	}
	m.Asked = false
	m.Epoch, m.Conn, m.WasUp = epoch, Opening, false
	m.Retry, m.NextAt = "", time.Time{}
	m.becomePending(messages.Dialing)
	m.do(Dial{epoch})
}

func (m *machine) scheduled(e Scheduled) {
	if e.Epoch != m.Epoch || !m.Asked || m.Step == messages.Queued {
		return // queued: a newer Ask has overtaken the Report that this answers
	}
	m.Retry, m.NextAt = e.Retry, e.At
	if e.Retry == messages.RetryNever {
		m.Asked, m.NextAt = false, time.Time{}
	}
	if e.Retry != messages.RetryAt && m.Phase == messages.Pending {
		// It was connected and nothing brings it back soon: that is a failure, not a restart.
		m.Phase, m.Step = messages.Failed, ""
	}
}

func (m *machine) listed(epoch uint64) {
	switch {
	case m.opening(epoch) && m.Listing:
		m.Conn, m.Listing = Open, false
		m.do(Up{epoch})
		m.becomeConnected()
	case m.open(epoch) && m.Listing:
		m.Listing, m.Refreshing, m.ListFailures = false, m.Refreshing && m.Again, 0
		switch m.Phase {
		case messages.Connected:
			m.Rev++
			m.do(Update{m.Epoch, m.Rev})
			if m.Again {
				m.list()
			} else if m.Dirty {
				m.do(Coalesce{Epoch: m.Epoch})
			}
		case messages.Pending: // enabled again
			if m.Again {
				m.list()
			} else {
				m.becomeConnected()
			}
		case messages.Disabled, messages.Failed, messages.NeedsAuth: // warm: the list is there when it is enabled
		}
	}
}

func (m *machine) listFailed(epoch uint64, c Cause) {
	if m.opening(epoch) {
		m.attemptFailed(c)
		return
	}
	if !m.open(epoch) || !m.Listing {
		return
	}
	if c.Class == messages.ClassUnauthorized && m.Phase != messages.Disabled {
		m.unauthorized(epoch, c)
		return
	}
	m.Listing, m.Again, m.Refreshing = false, false, false
	m.Dirty = true // the old list stands, and the change is not forgotten
	m.ListFailures++
	switch m.Phase {
	case messages.Connected:
		m.do(Coalesce{Epoch: m.Epoch, Failures: m.ListFailures})
	case messages.Pending: // enabled again, and its tools cannot be known
		m.shut(false)
		m.becomeFailed(c)
	case messages.Disabled, messages.Failed, messages.NeedsAuth: // warm: Enable lists again
	}
}

// attemptFailed ends an attempt that never reached connected.
func (m *machine) attemptFailed(c Cause) {
	if c.Class == messages.ClassUnauthorized {
		m.withdraw() // nobody is expected back soon; otherwise the registry lets lost tools go in time
	}
	m.shut(false)
	m.becomeFailed(c)
}

func (m *machine) lost(epoch uint64, c Cause) {
	if m.opening(epoch) {
		m.attemptFailed(c)
		return
	}
	if !m.open(epoch) {
		return
	}
	if c.Class == messages.ClassUnauthorized && m.Phase != messages.Disabled {
		m.unauthorized(epoch, c)
		return
	}
	switch m.Phase {
	case messages.Connected:
		m.lose()
		m.shut(false)
		m.Cause = &c
		m.becomePending(messages.Restarting)
	case messages.Pending: // enabled again and listing
		m.shut(false)
		m.Cause = &c
		m.becomePending(messages.Restarting)
	case messages.Disabled: // "a death while warm schedules nothing"
		m.shut(false)
	case messages.Failed, messages.NeedsAuth: // never open
	}
}

func (m *machine) unauthorized(epoch uint64, c Cause) {
	c.Class = messages.ClassUnauthorized
	if m.opening(epoch) {
		m.attemptFailed(c)
		return
	}
	if !m.open(epoch) || m.Phase == messages.Disabled {
		return
	}
	m.withdraw()
	m.shut(true)
	m.becomeFailed(c)
}

func (m *machine) closed(epoch uint64) {
	if epoch != m.Epoch || m.Conn == None {
		return
	}
	if m.Conn != Closing { // released without a word before: as good as lost
		m.released = true
		m.lost(epoch, Cause{Class: messages.ClassNetwork, Text: "the connection ended"})
	}
	m.Conn = None
	switch {
	case m.Phase == messages.Pending && m.Step == messages.Closing:
		m.ask(m.Due, true)
	case m.Phase == messages.Pending && m.Step == messages.Restarting, m.Phase == messages.Failed && m.Blocked == nil:
		m.Asked = true
		m.do(Report{Epoch: epoch, Cause: *m.Cause, Up: m.WasUp})
	}
}

func (m *machine) toolsChanged(epoch uint64) {
	if m.Epoch != epoch || m.Conn != Opening && m.Conn != Open {
		return
	}
	m.Dirty = true
	// After a re-list that failed the next one is due already, and a server that talks must not shorten the wait for it.
	if m.Phase == messages.Connected && !m.Listing && m.ListFailures == 0 {
		m.do(Coalesce{Epoch: m.Epoch})
	}
}
