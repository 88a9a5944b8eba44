package peer

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// machine implements [Machine]. Its methods collect the actions of one call from outside in out, which beginTurn empties.
type machine struct {
	// now is the time of the current call, since the start of the run.
	cfg  Config
	rand *rand.Rand
	now  time.Duration
	out  []Action

	conns map[int]*conn
	// pendingDials are the numbers of the dials that hang, in the order of their arrival.
	pendingDials []int
	// sessionCount and taskCount count sessions and tasks over all connections, so that no two ever share an id.
	sessionCount int
	taskCount    int

	list   toolList
	offers offerState
	// inputRounds maps each requestState that the server has given out to the question it went with, so that a state that comes
	// back can be checked (modern era). runCounts counts how often each tool ran, over all connections; a call's result carries
	// the count.
	inputRounds map[string]*inputRound
	// lostRounds counts the requests in a row that were to come back after a pause, and have not; lostUntil is when the newest of them was overdue.
	lostRounds int
	lostUntil  time.Duration
	runCounts  map[string]int

	// activeFaults are the faults that have begun and not ended, in the order of their begins; instant faults never enter. End
	// replaces the slice instead of changing it, because a hook may run while it is iterated.
	activeFaults []*fault
	// scheduled maps the token of each outstanding Wait to its action; lastToken is the last token given out, and tokens start
	// at 1.
	scheduled map[int]scheduledAction
	lastToken int
	// lastFaultAt is the time at which a fault last began or ended.
	lastFaultAt time.Duration
	// downUntil is the time until which the server refuses connections after the crash downFault; 0 before any crash.
	downUntil time.Duration
	downFault *fault
	// eraFlips counts the faults that make the server speak the other era.
	eraFlips int
	// deadConns maps connections that have lost their server, while the client cannot see that, to the fault that did it.
	deadConns map[int]*fault
	// seenTokens are the Authorization headers that the server has accepted. revokedTokens maps the ones that it accepts no
	// longer to the fault that revoked them.
	seenTokens    map[string]bool
	revokedTokens map[string]*fault
}

// scheduledAction is done at a Wake. The machine drops those of a connection when it forgets the connection.
type scheduledAction struct {
	conn *conn // nil: of the whole server
	do   func()
}

var _ Machine = (*machine)(nil)

// New makes a healthy server. It fills in the defaults that a plan would have filled in, so that a test may leave them out.
func New(c Config) Machine {
	c.Server = withDefaults(c.Server)
	m := &machine{
		cfg: c, rand: rand.New(rand.NewPCG(c.Seed, 0x70656572)), // "peer"
		conns: make(map[int]*conn), runCounts: make(map[string]int), scheduled: make(map[int]scheduledAction),
		deadConns: make(map[int]*fault), seenTokens: make(map[string]bool), revokedTokens: make(map[string]*fault),
	}
	m.list.fillTools(c.Server.Tools, c.Server.Tasks)
	return m
}

// withDefaults fills in what a plan fills in, for a server that does not come out of a plan: stdio, legacy, three tools, one
// page.
func withDefaults(s scenario.Server) scenario.Server {
	if s.Kind == "" {
		s.Kind = messages.Stdio
	}
	if s.Era != messages.EraModern || s.Kind == messages.SSE { // HTTP+SSE belongs to 2024-11-05
		s.Era = messages.EraLegacy
	}
	if s.Tools <= 0 {
		s.Tools = 3
	}
	s.Pages = max(s.Pages, 1)
	return s
}

// beginTurn starts a call from outside: it sets the time and empties the list of actions.
func (m *machine) beginTurn(now time.Duration) { m.now, m.out = now, nil }

// addActions appends to the actions that the current call returns.
func (m *machine) addActions(a ...Action) { m.out = append(m.out, a...) }

// recordEvent appends a fact for the history. Without a side it is the server's own (history.World).
func (m *machine) recordEvent(e history.Event) {
	if e.Side == "" {
		e.Side = history.World
	}
	m.addActions(Note{e})
}

// sortedConns returns the open connections by number, because the random order of a map would make runs with one seed differ.
func (m *machine) sortedConns() []*conn {
	all := make([]*conn, 0, len(m.conns))
	for _, id := range slices.Sorted(maps.Keys(m.conns)) {
		all = append(all, m.conns[id])
	}
	return all
}

// drawAround draws uniformly from half of mean to one and a half of it. It draws nothing for a mean of 0.
func (m *machine) drawAround(mean time.Duration) time.Duration {
	if mean <= 0 {
		return 0
	}
	return mean/2 + time.Duration(m.rand.Int64N(int64(mean)+1))
}

// drawChance draws true with probability p. It draws nothing where the answer is certain, so that adding a fault that always
// has its effect does not shift the numbers that others draw.
func (m *machine) drawChance(p float64) bool {
	switch {
	case p >= 1:
		return true
	case p <= 0:
		return false
	}
	return m.rand.Float64() < p
}

// scheduleAfter does something on a connection (nil: on the whole server) after the time d, or at once if d is not above 0. It
// returns the token for cancelScheduled, 0 if it has done it already.
func (m *machine) scheduleAfter(c *conn, d time.Duration, do func()) (token int) {
	if d <= 0 {
		do()
		return 0
	}
	m.lastToken++
	m.scheduled[m.lastToken] = scheduledAction{c, do}
	m.addActions(Wait{After: d, Token: m.lastToken})
	return m.lastToken
}

// repeatWhileActive repeats something until its fault ends. It raises every to a millisecond, because an interval of 0 would
// keep the simulation in one instant for ever.
func (m *machine) repeatWhileActive(f *fault, every time.Duration, do func()) {
	every = max(every, time.Millisecond)
	m.scheduleAfter(nil, every, func() {
		if !f.ended {
			do()
			m.repeatWhileActive(f, every, do)
		}
	})
}

// splitRate turns a rate per second into an interval and a count per interval. Above 100 per second it batches by 10 ms, so
// that a high rate does not cost one Wait each; the lower bound of the rate keeps the interval finite.
func splitRate(rate float64) (every time.Duration, count int) {
	if rate <= 100 {
		return time.Duration(float64(time.Second) / max(rate, 1e-5)), 1
	}
	return 10 * time.Millisecond, int(rate/100 + 0.5)
}

// cancelScheduled makes the Wake of a token do nothing. An unknown token, 0 included, is ignored.
func (m *machine) cancelScheduled(token int) { delete(m.scheduled, token) }

// Wake implements [Machine].
func (m *machine) Wake(now time.Duration, token int) []Action {
	m.beginTurn(now)
	w, ok := m.scheduled[token]
	if !ok {
		return nil
	}
	// A connection's action runs only if the machine still knows that connection, and waits if a fault stops the server.
	delete(m.scheduled, token)
	switch {
	case w.conn == nil:
		w.do()
	case m.conns[w.conn.id] == w.conn:
		m.runOrHold(w.conn, w.do)
	}
	return m.out
}

// quoteJSON encodes a text as a JSON string.
func quoteJSON(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		// Marshal fails for no string: it replaces invalid UTF-8.
		return `""`
	}
	return string(b)
}
