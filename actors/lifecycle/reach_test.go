package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	now   = 5 // the epoch of every canonical state that had one
	stale = 3
)

// alphabet is every event in every variant that the machine can tell apart, for a state of the epoch now. Facts come
// with the current epoch and with a stale one.
var alphabet = slices.Concat(wishes, facts(now), facts(stale), []string{
	"Granted epoch=6", "Granted epoch=5", "Granted epoch=3",
})

var wishes = []string{
	"Init", "Init cached", "Init lazy", "Init lazy cached",
	"Init enabled", "Init enabled cached", "Init enabled lazy", "Init enabled lazy cached",
	"Init enabled blocked=config", "Init enabled blocked=unauthorized", "Init enabled lazy cached blocked=config",
	"Enable", "Disable", "Disable cold", "Reconnect", "Wake", "Refresh",
	"Respec", "Respec enabled", "Respec enabled lazy", "Respec lazy", "Respec enabled blocked=config",
	"Respec enabled blocked=unauthorized", "Respec keep", "Respec enabled keep", "Respec enabled lazy keep",
	"Respec enabled keep blocked=config", "Remove", "Announce",
}

func facts(epoch int) []string {
	var list []string
	for _, fact := range []string{
		"Scheduled epoch=%d retry=retry at=1s", "Scheduled epoch=%d retry=parked at=5m0s", "Scheduled epoch=%d retry=none",
		"Dialed epoch=%d", "Installing epoch=%d", "Greeted epoch=%d", "Listed epoch=%d",
		"ListFailed epoch=%d cause=timeout", "ListFailed epoch=%d cause=unauthorized",
		"Failed epoch=%d cause=network", "Failed epoch=%d cause=unauthorized",
		"Lost epoch=%d cause=exited", "Lost epoch=%d cause=unauthorized",
		"Closed epoch=%d", "Unauthorized epoch=%d cause=unauthorized",
		"ToolsChanged epoch=%d", "RelistDue epoch=%d", "IdleOut epoch=%d",
	} {
		list = append(list, fmt.Sprintf(fact, epoch))
	}
	return list
}

// key is a State without what has no bound: every state that behaves alike has the same key.
type key struct {
	wanted, removing, lazy                bool
	blocked                               messages.Class
	phase                                 messages.Phase
	step                                  messages.Step
	begun                                 bool // an epoch was granted
	conn                                  Conn
	cause                                 messages.Class
	retry                                 messages.Retry
	scheduled, asked, wasUp, ever         bool
	due                                   Urgency
	listing, dirty, repeated, listFailing bool
	refreshing, shown, waits              bool
}

// canonical is the state of its key: epochs, revisions and tickets begin again.
func canonical(s State) (key, State) {
	waits := s.Ticket != s.Answered
	s.Ticket, s.Answered, s.Rev = 0, 0, 0
	if waits {
		s.Ticket = 1
	}
	if s.Epoch != 0 {
		s.Epoch = now
	}
	s.ListFailures = min(s.ListFailures, 1)
	class := func(c *Cause) messages.Class {
		if c == nil {
			return ""
		}
		return c.Class
	}
	return key{
		s.Wanted, s.Removing, s.Lazy, class(s.Blocked), s.Phase, s.Step, s.Epoch != 0, s.Conn, class(s.Cause), s.Retry,
		!s.NextAt.IsZero(), s.StartRequested, s.WasUp, s.EverConnected, s.DueUrgency, s.Listing, s.Dirty, s.RelistAfter, s.ListFailures > 0,
		s.Refreshing, s.ToolsShown, waits,
	}, s
}

// letters holds the alphabet's events, as they are in a state of the epoch now and in one before the first epoch.
var letters = func() map[string][2]Event {
	m := map[string][2]Event{}
	for _, line := range alphabet {
		early := strings.ReplaceAll(line, fmt.Sprintf("epoch=%d", now), "epoch=0")
		if strings.HasPrefix(line, "Granted") {
			early = strings.ReplaceAll(early, fmt.Sprintf("epoch=%d", stale), "epoch=0")
		}
		var pair [2]Event
		for i, form := range []string{line, early} {
			e, err := read(form)
			if err != nil {
				panic(err)
			}
			pair[i] = e
		}
		m[line] = pair
	}
	return m
}()

// letter is an event of the alphabet as it is in s.
func letter(s State, line string) Event {
	if s.Epoch == 0 {
		return letters[line][1]
	}
	return letters[line][0]
}

// reached is one of the states that histories lead to, with the shortest of them.
type reached struct {
	State
	history []string
}

// reach visits every state that any history of the alphabet leads to, shortest histories first.
func reach(visit func(reached)) {
	var zero State
	first, _ := canonical(zero)
	seen, queue := map[key]bool{first: true}, []reached{{State: zero}}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		visit(s)
		for _, line := range alphabet {
			for _, ticket := range []uint64{0, s.Ticket + 1} {
				e, isWish := withTicket(letter(s.State, line), ticket)
				if ticket != 0 && !isWish {
					continue
				}
				after, _ := Step(s.State, e)
				if k, next := canonical(after); !seen[k] {
					seen[k] = true
					queue = append(queue, reached{next, append(slices.Clip(s.history), line)})
				}
			}
		}
	}
}

// withTicket puts a ticket on a wish; it reports false for what carries none.
func withTicket(e Event, ticket uint64) (Event, bool) {
	switch e := e.(type) {
	case Init:
		e.Ticket = ticket
		return e, true
	case Enable:
		e.Ticket = ticket
		return e, true
	case Disable:
		e.Ticket = ticket
		return e, true
	case Reconnect:
		e.Ticket = ticket
		return e, true
	case Wake:
		e.Ticket = ticket
		return e, true
	case Refresh:
		e.Ticket = ticket
		return e, true
	case Respec:
		e.Ticket = ticket
		return e, true
	}
	return e, false
}

// TestEveryReachableState checks the invariants in every state that there is, after every event that there is: not a
// sample, all of them.
func TestEveryReachableState(t *testing.T) {
	states, steps := 0, 0
	reach(func(s reached) {
		states++
		for _, line := range alphabet {
			steps++
			e := letter(s.State, line)
			after, _ := Step(s.State, e)
			if err := after.Check(); err != nil {
				t.Errorf("%s; %s: %v", strings.Join(s.history, "; "), line, err)
			}
			if !legal(s.Phase, after.Phase, e) {
				t.Errorf("%s; %s: no edge from %q to %q (I8)", strings.Join(s.history, "; "), line, s.Phase, after.Phase)
			}
		}
	})
	t.Logf("%d states, %d steps", states, steps)
	if states < 1000 {
		t.Errorf("%d states: the search ended too early", states)
	}
}
