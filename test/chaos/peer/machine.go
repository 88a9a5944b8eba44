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

// machine is the server. Its methods collect what is to be done in out, which each call from outside empties.
type machine struct {
	cfg  Config
	rand *rand.Rand
	now  time.Duration
	out  []Action

	conns map[int]*conn
	// pendingDials are those that hang, in order.
	pendingDials []int
	sessionCount int
	taskCount    int // how many there were, in all connections

	list   toolList
	offers offerState
	// inputRounds are what requests were answered with that are to come back with input, by the state that they bring.
	inputRounds map[string]questionKind
	runCounts   map[string]int // how often each tool ran, over all connections

	activeFaults []*fault // those that last, in the order of their begins
	scheduled    map[int]scheduledAction
	lastToken    int
	// downUntil is until when nothing can be opened, after the crash downFault.
	downUntil time.Duration
	downFault *fault
	// eraFlips counts the faults that make the server speak the other era.
	eraFlips int
	// deadConns are connections that have no server any more while the client does not see that, and through which fault.
	deadConns map[int]*fault
	// seenTokens are the credentials that clients have shown, revoked those that count no more, and through which fault.
	seenTokens    map[string]bool
	revokedTokens map[string]*fault
}

// scheduledAction is what will be done at a Wake. What belongs to a connection is forgotten with it.
type scheduledAction struct {
	conn *conn // nil: of the whole server
	do   func()
}

var _ Machine = (*machine)(nil)

// New makes a healthy server.
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

// withDefaults is for a server that does not come out of a plan, where every default is filled in.
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

// beginTurn begins a call from outside.
func (m *machine) beginTurn(now time.Duration) { m.now, m.out = now, nil }

// addActions adds something to be done.
func (m *machine) addActions(a ...Action) { m.out = append(m.out, a...) }

// recordEvent adds a fact for the record.
func (m *machine) recordEvent(e history.Event) {
	if e.Side == "" {
		e.Side = history.World
	}
	m.addActions(Note{e})
}

// sortedConns are those that stand, by number: the order of a map must not decide what happens first.
func (m *machine) sortedConns() []*conn {
	all := make([]*conn, 0, len(m.conns))
	for _, id := range slices.Sorted(maps.Keys(m.conns)) {
		all = append(all, m.conns[id])
	}
	return all
}

// drawAround draws from half of mean to one and a half of it.
func (m *machine) drawAround(mean time.Duration) time.Duration {
	if mean <= 0 {
		return 0
	}
	return mean/2 + time.Duration(m.rand.Int64N(int64(mean)+1))
}

// drawChance is true with a probability. It draws nothing where nothing is left to chance, so that a fault that always has
// its effect does not change what the others draw.
func (m *machine) drawChance(p float64) bool {
	switch {
	case p >= 1:
		return true
	case p <= 0:
		return false
	}
	return m.rand.Float64() < p
}

// scheduleAfter does something later on a connection, nil for the whole server, or at once if there is nothing to wait for.
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

// repeatWhileActive does something again and again, as long as a fault lasts. It is never more often than a thousand times per second.
func (m *machine) repeatWhileActive(f *fault, every time.Duration, do func()) {
	every = max(every, time.Millisecond)
	m.scheduleAfter(nil, every, func() {
		if !f.ended {
			do()
			m.repeatWhileActive(f, every, do)
		}
	})
}

// splitRate is how a rate per second is kept: so often, and so much each time.
func splitRate(rate float64) (every time.Duration, count int) {
	if rate <= 100 {
		return time.Duration(float64(time.Second) / max(rate, 1e-5)), 1
	}
	return 10 * time.Millisecond, int(rate/100 + 0.5)
}

// cancelScheduled makes a wait come to nothing.
func (m *machine) cancelScheduled(token int) { delete(m.scheduled, token) }

// Wake implements Machine.
func (m *machine) Wake(now time.Duration, token int) []Action {
	m.beginTurn(now)
	w, ok := m.scheduled[token]
	if !ok {
		return nil
	}
	delete(m.scheduled, token)
	switch {
	case w.conn == nil:
		w.do()
	case m.conns[w.conn.id] == w.conn:
		m.runOrHold(w.conn, w.do)
	}
	return m.out
}

// quoteJSON is a text as JSON.
func quoteJSON(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return `""` // no text makes this happen
	}
	return string(b)
}
