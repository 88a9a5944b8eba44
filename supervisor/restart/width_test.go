package restart_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// machine runs processes that start through a gate, and divides its processors evenly among those that want one.
type machine struct {
	gate       *restart.Gate
	now        time.Time
	processors float64
	running    []*starting
	up         map[string]time.Duration // after the start, from the grant on
	most       int                      // at once, since it was last looked at
	narrowest  int
}

// starting is a process that answers when it has run for need; 0: never, and it sleeps once it has run for 100 ms.
type starting struct {
	server      string
	need        time.Duration
	ran, waited time.Duration
	begun, look time.Time
	was         time.Duration // what it had waited for at the last look
}

const (
	step = 10 * time.Millisecond
	// early and again are when an attempt tells what its processes have waited for, as package opening has it.
	early, repeatStep = 1500 * time.Millisecond, time.Second
)

func newMachine(processors float64) *machine {
	l := restart.DefaultLimits(2)
	return &machine{gate: restart.NewGate(l), now: start, processors: processors, up: map[string]time.Duration{}, narrowest: l.Processes}
}

func (m *machine) ask(needs map[string]time.Duration) {
	for server := range needs {
		m.gate.Enqueue(m.now, restart.Request{Server: server, Kind: messages.Stdio, Priority: restart.Never})
	}
}

// run goes on until nothing waits and nothing wants a processor.
func (m *machine) run(t *testing.T, needs map[string]time.Duration) {
	t.Helper()
	m.most = 0
	for range 100 * 3600 {
		granted, _ := m.gate.Next(m.now)
		for _, server := range granted {
			m.running = append(m.running, &starting{server: server, need: needs[server], begun: m.now, look: m.now.Add(early)})
		}
		if err := m.gate.Check(); err != nil {
			t.Fatal(err)
		}
		var eager []*starting
		for _, p := range m.running {
			if p.need > 0 || p.ran < 100*time.Millisecond {
				eager = append(eager, p)
			}
		}
		if len(eager) == 0 && m.gate.Stats().Waiting == 0 {
			return
		}
		m.most = max(m.most, len(eager))
		share := min(1, m.processors/float64(max(len(eager), 1)))
		m.now = m.now.Add(step)
		for _, p := range eager {
			p.ran += time.Duration(share * float64(step))
			p.waited += time.Duration((1 - share) * float64(step))
		}
		m.running = slices.DeleteFunc(m.running, func(p *starting) bool {
			if p.need == 0 || p.ran < p.need {
				return false
			}
			m.up[p.server] = m.now.Sub(p.begun)
			m.gate.Answered(m.now, p.server)
			return true
		})
		for _, p := range m.running {
			if p.look.IsZero() || p.look.After(m.now) {
				continue
			}
			m.gate.Waited(m.now, p.server, p.ran, p.waited)
			p.look = time.Time{}
			if p.waited-p.was >= early/2 {
				p.look, p.was = m.now.Add(repeatStep), p.waited
			}
		}
		m.narrowest = min(m.narrowest, m.gate.Stats().Width)
	}
	t.Fatal("it did not come to an end")
}

func servers(prefix string, n int, need time.Duration) map[string]time.Duration {
	needs := map[string]time.Duration{}
	for i := range n {
		needs[fmt.Sprintf("%s-%02d", prefix, i)] = need
	}
	return needs
}

// TestTheGateNarrowsWhereItIsStarved starts forty servers on less and less of a processor. The first ones to start are as many
// as ever; those behind them are few at a time, and answer after a time that does not depend on how many wait.
func TestTheGateNarrowsWhereItIsStarved(t *testing.T) {
	for _, c := range []struct {
		processors float64
		narrowest  [2]int
		longest    time.Duration // of one server's start, the first eight left out
	}{
		{4, [2]int{8, 8}, time.Second},
		{2, [2]int{8, 8}, 2 * time.Second},
		{1, [2]int{4, 8}, 5 * time.Second},
		{0.5, [2]int{2, 4}, 6 * time.Second},
		{0.25, [2]int{2, 2}, 10 * time.Second},
	} {
		m := newMachine(c.processors)
		needs := servers("s", 40, 450*time.Millisecond)
		m.ask(needs)
		m.run(t, needs)
		if m.narrowest < c.narrowest[0] || m.narrowest > c.narrowest[1] {
			t.Errorf("on %v processors the gate was narrowed to %d", c.processors, m.narrowest)
		}
		if m.most > 8 {
			t.Errorf("on %v processors %d were starting at once", c.processors, m.most)
		}
		var took []time.Duration
		for _, d := range m.up {
			took = append(took, d)
		}
		slices.Sort(took)
		if len(took) != 40 || took[31] > c.longest {
			t.Errorf("on %v processors %d are up, and all but eight took up to %v", c.processors, len(took), took[31])
		}
		// What is lost by starting fewer at once is nothing: they want a processor all the time.
		if whole, fair := m.now.Sub(start), time.Duration(40*0.45/c.processors*float64(time.Second)); float64(whole) > 1.1*float64(fair) &&
			c.processors <= 2 {
			t.Errorf("on %v processors it took %v, the processors' time is %v", c.processors, whole, fair)
		}
	}
}

// TestTheGateWidensAgain starves the machine and gives it its processors back: the gate is as wide as ever when some have
// answered, and forty servers take as long as on a machine that was never starved.
func TestTheGateWidensAgain(t *testing.T) {
	m := newMachine(0.25)
	needs := servers("s", 20, 450*time.Millisecond)
	m.ask(needs)
	m.run(t, needs)
	if w := m.gate.Stats().Width; w != 2 {
		t.Fatalf("the width is %d", w)
	}
	m.processors = 2
	second, begun := servers("t", 40, 450*time.Millisecond), m.now
	m.ask(second)
	m.run(t, second)
	if w := m.gate.Stats().Width; w != 8 {
		t.Errorf("the width is %d", w)
	}
	if took := m.now.Sub(begun); took > 10*time.Second {
		t.Errorf("forty servers took %v", took)
	}
}

// TestServersThatAreNotStarvedDoNotNarrow has servers that are silent, and servers that need 10 s by their nature, on a machine
// with processors enough: the gate is not narrowed by them, and a healthy one behind them starts when their 2 s are over.
func TestServersThatAreNotStarvedDoNotNarrow(t *testing.T) {
	for name, needs := range map[string]map[string]time.Duration{
		"silent": servers("a", 8, 0), "slow": servers("a", 2, 10*time.Second),
	} {
		m := newMachine(2)
		m.ask(needs)
		granted, _ := m.gate.Next(m.now)
		for _, server := range granted {
			m.running = append(m.running, &starting{server: server, need: needs[server], begun: m.now, look: m.now.Add(early)})
		}
		needs["healthy"] = 200 * time.Millisecond
		m.ask(map[string]time.Duration{"healthy": needs["healthy"]})
		m.run(t, needs)
		if m.narrowest != 8 {
			t.Errorf("%s: the gate was narrowed to %d", name, m.narrowest)
		}
		if m.up["healthy"] > time.Second {
			t.Errorf("%s: the healthy one took %v", name, m.up["healthy"])
		}
	}
}

// TestASilentServerOnAStarvedMachine has one silent server among forty on half a core: it costs one slot for its 2 s, and the
// time of the others is the processor's.
func TestASilentServerOnAStarvedMachine(t *testing.T) {
	m := newMachine(0.5)
	needs := servers("s", 40, 450*time.Millisecond)
	needs["a-silent"] = 0
	m.ask(needs)
	m.run(t, needs)
	if took := m.now.Sub(start); len(m.up) != 40 || took > 40*time.Second {
		t.Errorf("%d of 40 are up after %v", len(m.up), took)
	}
}

// TestWaited says of one start after the other what its processes waited for.
func TestWaited(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	type word struct {
		at, ran, waited time.Duration
	}
	for _, c := range []struct {
		name  string
		words []word
		width int
		holds time.Duration // the slot, after the start
	}{
		{"nothing is known", []word{{1500 * ms, 0, 0}}, 8, 2 * s},
		{"it ran", []word{{1500 * ms, 1400 * ms, 100 * ms}}, 8, 2100 * ms},
		{"it waited as on a machine that is full", []word{{1500 * ms, 375 * ms, 1125 * ms}}, 8, 3125 * ms},
		{"it is starved", []word{{1500 * ms, 90 * ms, 1410 * ms}}, 4, 3410 * ms},
		{"it is starved for a moment", []word{{500 * ms, 0, 500 * ms}}, 8, 2500 * ms},
		{"it is starved, and says so twice", []word{{1500 * ms, 90 * ms, 1410 * ms}, {2500 * ms, 150 * ms, 2350 * ms}}, 4, 4350 * ms},
		{"it has waited for longer than it lives", []word{{1500 * ms, 90 * ms, time.Hour}}, 4, 3500 * ms},
		{"it never gets a processor", []word{{1500 * ms, 0, 1500 * ms}, {3 * s, 0, 3 * s}, {4900 * ms, 0, 4900 * ms},
			{6800 * ms, 0, 6800 * ms}, {8700 * ms, 0, 8700 * ms}, {10 * s, 0, 10 * s}, {11 * s, 0, 11 * s}, {12 * s, 0, 12 * s},
			{13 * s, 0, 13 * s}, {14 * s, 0, 14 * s}, {15 * s, 0, 15 * s}, {16 * s, 0, 16 * s}, {17 * s, 0, 17 * s}, {18 * s, 0, 18 * s},
			{19 * s, 0, 19 * s}, {19900 * ms, 0, 19900 * ms}}, 4, 20 * s},
		{"the word comes when the slot is given up", []word{{2500 * ms, 150 * ms, 2350 * ms}}, 4, 2 * s},
	} {
		g := restart.NewGate(restart.DefaultLimits(2))
		for i := range 8 {
			g.Enqueue(start, restart.Request{Server: fmt.Sprint("s", i), Kind: messages.Stdio})
		}
		g.Next(start)
		for _, w := range c.words {
			g.Next(start.Add(w.at))
			g.Waited(start.Add(w.at), "s0", w.ran, w.waited)
		}
		if got := g.Stats().Width; got != c.width {
			t.Errorf("%s: the width is %d, want %d", c.name, got, c.width)
		}
		last := start.Add(c.words[len(c.words)-1].at)
		if c.holds > last.Sub(start) {
			g.Next(start.Add(c.holds - 1))
			if held := g.Stats().Processes; held == 0 {
				t.Errorf("%s: the slot was given up before %v", c.name, c.holds)
			}
		}
		g.Next(start.Add(max(c.holds, last.Sub(start))))
		if held := g.Stats().Processes; held != 0 {
			t.Errorf("%s: %d slots are held after %v", c.name, held, c.holds)
		}
		if err := g.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
