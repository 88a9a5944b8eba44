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
	// dials are those that hang, in order.
	dials    []int
	sessions int
	tasks    int // how many there were, in all connections

	list  list
	stock stock
	// rounds are what requests were answered with that are to come back with input, by the state that they bring.
	rounds map[string]asking
	values map[string]int // how often each tool ran, over all connections

	faults []*fault // those that last, in the order of their begins
	waits  map[int]wait
	tokens int
	// down is until when nothing can be opened, after the crash downBy.
	down   time.Duration
	downBy *fault
	// flips counts the faults that make the server speak the other era.
	flips int
	// ghosts are connections that have no server any more while the client does not see that, and through which fault.
	ghosts map[int]*fault
	// shown are the credentials that clients have shown, revoked those that count no more, and through which fault.
	shown   map[string]bool
	revoked map[string]*fault
}

// wait is what will be done at a Wake. What belongs to a connection is forgotten with it.
type wait struct {
	conn *conn // nil: of the whole server
	do   func()
}

var _ Machine = (*machine)(nil)

// New makes a healthy server.
func New(c Config) Machine {
	c.Server = withDefaults(c.Server)
	m := &machine{
		cfg: c, rand: rand.New(rand.NewPCG(c.Seed, 0x70656572)), // "peer"
		conns: make(map[int]*conn), values: make(map[string]int), waits: make(map[int]wait),
		ghosts: make(map[int]*fault), shown: make(map[string]bool), revoked: make(map[string]*fault),
	}
	m.list.fill(c.Server.Tools, c.Server.Tasks)
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

// turn begins a call from outside.
func (m *machine) turn(now time.Duration) { m.now, m.out = now, nil }

// do adds something to be done.
func (m *machine) do(a ...Action) { m.out = append(m.out, a...) }

// note adds a fact for the record.
func (m *machine) note(e history.Event) {
	if e.Side == "" {
		e.Side = history.World
	}
	m.do(Note{e})
}

// connections are those that stand, by number: the order of a map must not decide what happens first.
func (m *machine) connections() []*conn {
	all := make([]*conn, 0, len(m.conns))
	for _, id := range slices.Sorted(maps.Keys(m.conns)) {
		all = append(all, m.conns[id])
	}
	return all
}

// about draws from half of mean to one and a half of it.
func (m *machine) about(mean time.Duration) time.Duration {
	if mean <= 0 {
		return 0
	}
	return mean/2 + time.Duration(m.rand.Int64N(int64(mean)+1))
}

// chance is true with a probability. It draws nothing where nothing is left to chance, so that a fault that always has
// its effect does not change what the others draw.
func (m *machine) chance(p float64) bool {
	switch {
	case p >= 1:
		return true
	case p <= 0:
		return false
	}
	return m.rand.Float64() < p
}

// after does something later on a connection, nil for the whole server, or at once if there is nothing to wait for.
func (m *machine) after(c *conn, d time.Duration, do func()) (token int) {
	if d <= 0 {
		do()
		return 0
	}
	m.tokens++
	m.waits[m.tokens] = wait{c, do}
	m.do(Wait{After: d, Token: m.tokens})
	return m.tokens
}

// tick does something again and again, as long as a fault lasts. It is never more often than a thousand times per second.
func (m *machine) tick(f *fault, every time.Duration, do func()) {
	every = max(every, time.Millisecond)
	m.after(nil, every, func() {
		if !f.over {
			do()
			m.tick(f, every, do)
		}
	})
}

// pace is how a rate per second is kept: so often, and so much each time.
func pace(rate float64) (every time.Duration, count int) {
	if rate <= 100 {
		return time.Duration(float64(time.Second) / max(rate, 1e-5)), 1
	}
	return 10 * time.Millisecond, int(rate/100 + 0.5)
}

// forget makes a wait come to nothing.
func (m *machine) forget(token int) { delete(m.waits, token) }

// Wake implements Machine.
func (m *machine) Wake(now time.Duration, token int) []Action {
	m.turn(now)
	w, ok := m.waits[token]
	if !ok {
		return nil
	}
	delete(m.waits, token)
	switch {
	case w.conn == nil:
		w.do()
	case m.conns[w.conn.id] == w.conn:
		m.acts(w.conn, w.do)
	}
	return m.out
}

// quote is a text as JSON.
func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return `""` // no text makes this happen
	}
	return string(b)
}
