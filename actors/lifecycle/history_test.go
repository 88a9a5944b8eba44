package lifecycle

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/mcpvisor/mcpvisor/messages"
)

// history performs steps and judges them by what no single state can show. Whatever the events are, also those that no
// shell would send, what it checks must hold.
type history struct {
	state State
	// attempts holds what was done in each epoch that was dialled.
	attempts map[uint64]*conduct
	rev      uint64
	// tools is the state of the tools in the registry: "", "live", "cached" or "lost". The gate is open while they are live.
	tools string
	gone  bool
}

// conduct records the machine's effects for one attempt.
type conduct struct{ greeted, listed, answered, up, shut, closed bool }

func newHistory() *history { return &history{attempts: map[uint64]*conduct{}} }

// step performs one event. The error names everything that must not be.
func (h *history) step(e Event) ([]Effect, error) {
	before := h.state
	after, effects := Step(before, e)
	var faults []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s in %s: "+format, append([]any{write(e), writeState(before)}, args...)...))
		}
	}
	second, sameEffects := Step(before, e)
	must(reflect.DeepEqual(after, second) && reflect.DeepEqual(effects, sameEffects), "a second Step differs")
	err := after.Check()
	must(err == nil, "%v", err)
	must(after.Epoch >= before.Epoch && after.Rev >= before.Rev && after.Answered >= before.Answered, "a count falls")
	must(after.Ticket == max(before.Ticket, ticketOf(e)), "the ticket is forgotten")
	must(after.Removing || !before.Removing, "removal is taken back")
	must(legal(before.Phase, after.Phase, e), "no edge from %q to %q (I8)", before.Phase, after.Phase)

	if c, ok := e.(Closed); ok && c.Epoch == before.Epoch && before.Conn != None {
		h.attempts[c.Epoch].closed = true // before its effects: nothing is done with what is released
	}
	for _, effect := range effects {
		h.judge(before, after, e, effect, must)
	}
	if a := h.attempts[after.Epoch]; a != nil && a.closed {
		must(after.Conn == None, "epoch %d is closed and still %v", after.Epoch, after.Conn)
	}
	must((h.tools == "live") == (after.Phase == messages.Connected), "the registry's tools are %q", h.tools)
	must(after.Step != messages.Idle || h.tools == "cached", "nobody can wake it: the registry's tools are %q", h.tools)
	must(h.tools == "" || after.Phase != messages.Disabled && after.Phase != messages.NeedsAuth,
		"tools of a server that cannot be called are %q", h.tools)
	must(!after.Removing || after.Conn != None || h.gone, "it is removed and released, and Gone was not said")
	h.state = after
	return effects, errors.Join(faults...)
}

// judge checks one effect and notes it.
func (h *history) judge(before, after State, e Event, effect Effect, must func(bool, string, ...any)) {
	must(!h.gone || kindOf(effect) == "Decline", "%s after Gone", write(effect))
	epoch, hasEpoch := number(effect, "Epoch")
	if d, ok := effect.(Decline); ok {
		must(e == Event(Granted(d)), "%s answers no grant", write(effect))
		return
	}
	must(!hasEpoch || epoch == after.Epoch, "%s is of another epoch", write(effect))
	if rev, ok := number(effect, "Rev"); ok {
		must(rev > h.rev, "%s: the registry heard of %d before (L7)", write(effect), h.rev)
		h.rev = rev
	}
	a, known := h.attempts[epoch]
	if !known {
		a = new(conduct)
	}
	once := func(done *bool) {
		must(!*done, "%s a second time", write(effect))
		*done = true
	}
	alive := func() { must(known && !a.shut && !a.closed, "%s of what has ended", write(effect)) }
	switch effect := effect.(type) {
	case Ask:
		must(after.Conn == None, "a start is asked for before the release")
	case Unask:
		must(before.StartRequested, "nothing was asked for")
	case Report:
		must(a.closed, "a start is asked for before the release")
		must(effect.Up == a.up, "Report says up=%v", effect.Up)
	case Dial:
		must(before.StartRequested && before.Conn == None, "a dial that nobody asked for, or beside a connection (L3)")
		must(!known && epoch > before.Epoch, "epoch %d is not new", epoch)
		last := h.attempts[before.Epoch]
		must(last == nil || last.closed, "epoch %d is not closed", before.Epoch)
		h.attempts[epoch] = new(conduct)
	case Greet:
		alive()
		once(&a.greeted)
	case Answer:
		once(&a.answered)
	case List:
		alive()
		must(effect.First == !a.listed && a.greeted, "the first list and only the first is the first")
		a.listed = true
	case Up:
		alive()
		once(&a.up)
		must(a.answered, "up before the handshake's answer")
	case Coalesce:
		alive()
		must(after.Dirty && !after.Listing, "nothing to list again")
	case Shut:
		must(!a.closed, "it is closed already")
		once(&a.shut)
	case Show:
		alive()
		must(h.tools != "live", "a second gate")
		must(a.up, "tools before up")
		h.tools = "live"
	case Update:
		alive()
		must(h.tools == "live", "no gate is open")
	case Lose:
		h.tools = "lost"
	case Withdraw:
		h.tools = ""
	case Rest:
		h.tools = "cached"
	case Gone:
		must(after.Removing && after.Conn == None, "Gone before its time")
		h.gone = true
	}
}

// legal is I8: the edges that lead out of a phase. Those of pending, connected and failed are in the package comment's
// list; here stands what no fact may ever do.
func legal(from, to messages.Phase, e Event) bool {
	if from == to {
		return true
	}
	switch e.(type) {
	case Init:
		return from == ""
	case Remove:
		return to == messages.Disabled
	case Respec:
		return from != ""
	case Disable:
		return to == messages.Disabled && from != ""
	case Enable:
		return from == messages.Disabled
	case Reconnect:
		return to == messages.Pending && from != messages.Disabled && from != ""
	}
	return from != "" && from != messages.Disabled && from != messages.NeedsAuth && to != messages.Disabled
}

// ticketOf is the ticket of a wish, 0 for every other event.
func ticketOf(e Event) uint64 {
	n, _ := number(e, "Ticket")
	return n
}

func number(v any, field string) (uint64, bool) {
	f := reflect.ValueOf(v).FieldByName(field)
	if !f.IsValid() {
		return 0, false
	}
	return f.Uint(), true
}
