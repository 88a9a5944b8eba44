package restart

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcpvisor/mcpvisor/messages"
)

// model is the gate without heaps, lanes or counters: a list of requests and a list of grants, searched from end to
// end.
type model struct {
	limits  Limits
	waiting []modelRequest
	open    []modelGrant
	seq     int
	asked   map[string]bool // by kind: the last grant was one that was asked for
	// width is the number of slots for processes, after so many cuts.
	width, cuts int
}

type modelRequest struct {
	Request
	since time.Time
	seq   int
}

type modelGrant struct {
	Request
	begun     time.Time
	expires   time.Time
	gone      bool // its slot was given up
	displaced bool
	// cuts counts how often the gate was narrowed before it began, eased is set when it has had its part in widening.
	cuts  int
	eased bool
	// installing was told to be, apart is not counted with the silent ones.
	installing, apart bool
}

func kindOf(k messages.TransportKind) string {
	switch k {
	case messages.Stdio:
		return "process"
	case messages.SDK:
		return "in process"
	default:
		return "network"
	}
}

func (m *model) ask(now time.Time, r Request) {
	m.seq++
	w := modelRequest{Request: r, since: now, seq: m.seq}
	if r.NotBefore.After(now) {
		w.since = r.NotBefore
	}
	for _, old := range m.waiting {
		if old.Server == r.Server && !old.since.After(now) && !r.NotBefore.After(now) {
			w.since, w.seq = old.since, old.seq
		}
	}
	m.cancel(r.Server)
	m.waiting = append(m.waiting, w)
}

func (m *model) cancel(server string) {
	m.waiting = slices.DeleteFunc(m.waiting, func(w modelRequest) bool { return w.Server == server })
}

func (m *model) end(server string) {
	m.open = slices.DeleteFunc(m.open, func(o modelGrant) bool { return o.Server == server })
}

func (m *model) install(now time.Time, server string) {
	apart := 0
	for _, o := range m.open {
		if o.apart {
			apart++
		}
	}
	for i := range m.open {
		o := &m.open[i]
		if o.Server == server && kindOf(o.Kind) == "process" && !o.installing {
			o.gone = true
			o.installing, o.Spared, o.displaced = true, true, false
			o.apart = apart < m.limits.Processes*m.limits.UnansweredFactor
		}
	}
}

// answered widens the gate if the answer came within Hold.
func (m *model) answered(now time.Time, server string) {
	for i := range m.open {
		if o := &m.open[i]; o.Server == server && kindOf(o.Kind) == "process" && now.Sub(o.begun) <= m.limits.Hold {
			m.ease(o)
		}
	}
}

func (m *model) ease(o *modelGrant) {
	if !o.eased && o.cuts == m.cuts {
		m.width = min(m.width+1, m.limits.Processes)
	}
	o.eased = true
}

func (m *model) waited(now time.Time, server string, ran, waited time.Duration) {
	unanswered := 0
	for _, o := range m.open {
		if kindOf(o.Kind) == "process" && !o.apart {
			unanswered++
		}
	}
	for i := range m.open {
		o := &m.open[i]
		if o.Server != server || kindOf(o.Kind) != "process" || o.installing {
			continue
		}
		waited := min(waited, now.Sub(o.begun))
		switch {
		case waited >= 7*ran && waited >= m.limits.Hold/2 && o.cuts == m.cuts:
			m.cuts++
			m.width = min(m.limits.Processes, max(2, min(m.width, unanswered)/2))
		case ran > 0 && waited <= ran:
			m.ease(o)
		}
		if until := o.begun.Add(min(m.limits.Hold+waited, 10*m.limits.Hold)); !o.gone {
			o.expires = later(o.expires, until)
		}
	}
}

// free reports whether the limits leave room for r at now.
func (m *model) free(now time.Time, r Request) bool {
	held, origin, unanswered := 0, 0, 0
	for _, o := range m.open {
		if o.Server == r.Server {
			return false
		}
		if kindOf(o.Kind) != kindOf(r.Kind) {
			continue
		}
		if !o.apart {
			unanswered++
		}
		if !o.gone && o.expires.After(now) {
			held++
			if o.Origin == r.Origin {
				origin++
			}
		}
	}
	switch kindOf(r.Kind) {
	case "process":
		return held < m.width && unanswered < m.limits.Processes*m.limits.UnansweredFactor
	case "in process":
		return held < m.limits.InProcess
	default:
		return held < m.limits.Network && (r.Origin == "" || origin < m.limits.PerOrigin)
	}
}

func (m *model) class(now time.Time, w modelRequest) int {
	return min(int(w.Priority)+int(now.Sub(w.since)/m.limits.Age), int(Urgent))
}

// next grants one kind after the other, as the gate does: the order between kinds means nothing.
func (m *model) next(now time.Time) (granted []string) {
	for i := range m.open {
		m.open[i].gone = m.open[i].gone || !m.open[i].expires.After(now)
	}
	for _, kind := range []string{"process", "network", "in process"} {
		for {
			best := -1
			for i, w := range m.waiting {
				if kindOf(w.Kind) != kind || w.since.After(now) || !m.free(now, w.Request) {
					continue
				}
				if best < 0 {
					best = i
					continue
				}
				if m.first(now, kind, w, m.waiting[best]) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			w := m.waiting[best]
			m.waiting = slices.Delete(m.waiting, best, best+1)
			m.open = append(m.open, modelGrant{Request: w.Request, begun: now, expires: now.Add(m.limits.Hold), cuts: m.cuts})
			m.asked[kind] = w.Priority == Urgent
			granted = append(granted, w.Server)
		}
	}
	return granted
}

// displace computes the result of Gate.Displace at now: the indices of the grants, in the order in which they gave up their slots.
func (m *model) displace(now time.Time) (victims []int) {
	held, unanswered, wanted := 0, 0, 0
	for i, o := range m.open {
		if kindOf(o.Kind) != "process" {
			continue
		}
		if !o.apart {
			unanswered++
		}
		switch {
		case o.displaced:
			wanted--
		case !o.gone && o.expires.After(now):
			held++
		case !o.Spared:
			victims = append(victims, i)
		}
	}
	eager := 0
	for _, w := range m.waiting {
		starting := slices.ContainsFunc(m.open, func(o modelGrant) bool { return o.Server == w.Server })
		if kindOf(w.Kind) == "process" && w.Displaces && !w.since.After(now) && !starting {
			eager++
		}
	}
	wanted += min(eager, m.width-held)
	slices.SortStableFunc(victims, func(a, b int) int { return m.open[a].expires.Compare(m.open[b].expires) })
	if unanswered < m.limits.Processes*m.limits.UnansweredFactor || wanted <= 0 {
		return nil
	}
	return victims[:min(wanted, len(victims))]
}

// first reports whether a goes before b.
func (m *model) first(now time.Time, kind string, a, b modelRequest) bool {
	if c := m.class(now, a) - m.class(now, b); c != 0 {
		return c > 0
	}
	if (a.Priority == Urgent) != (b.Priority == Urgent) { // one has risen to where the other began: they take turns
		return (a.Priority == Urgent) != m.asked[kind]
	}
	return a.since.Before(b.since) || a.since.Equal(b.since) && a.seq < b.seq
}

// wake is the first moment at which time alone lets something be granted or be displaced, found by trying all moments that matter.
func (m *model) wake(now time.Time) (at time.Time) {
	var moments []time.Time
	for _, w := range m.waiting {
		moments = append(moments, w.since)
	}
	for _, o := range m.open {
		moments = append(moments, o.expires)
	}
	slices.SortFunc(moments, time.Time.Compare)
	for _, t := range moments {
		if !t.After(now) {
			continue
		}
		if len(m.displace(t)) > 0 {
			return t
		}
		for _, w := range m.waiting {
			if !w.since.After(t) && m.free(t, w.Request) {
				return t
			}
		}
	}
	return time.Time{}
}

// TestRandomWalk drives the gate and the model with the same words and compares every grant. Small limits and few
// servers make the corners frequent.
func TestRandomWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			Processes: rapid.IntRange(1, 5).Draw(t, "processes"), PerOrigin: rapid.IntRange(1, 2).Draw(t, "per origin"),
			Network: rapid.IntRange(1, 4).Draw(t, "network"), InProcess: rapid.IntRange(1, 2).Draw(t, "in process"),
			Hold: 2 * time.Second, UnansweredFactor: rapid.IntRange(1, 2).Draw(t, "factor"), Age: 10 * time.Second,
		}
		g, m := NewGate(limits), &model{limits: limits, asked: map[string]bool{}, width: limits.Processes}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		asks := map[string]bool{}           // servers whose Ask has not been granted
		notBefore := map[string]time.Time{} // of the last Ask
		open := map[string]bool{}           // granted, and neither answered nor closed
		wakeups, words := 0, 0              // a bound on how often the gate wakes its owner for nothing
		var granted int
		var wake time.Time

		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			server := fmt.Sprint("s", rapid.IntRange(0, 11).Draw(t, "server"))
			action := rapid.SampledFrom([]string{"ask", "ask", "ask", "answered", "closed", "cancel", "installing", "waited", "waited", "wait",
				"wake", "wake"}).Draw(t, "action")
			switch action {
			case "ask":
				r := Request{
					Server: server,
					Kind: rapid.SampledFrom([]messages.TransportKind{messages.Stdio, messages.Stdio, messages.HTTP, messages.SSE,
						messages.SDK}).Draw(t, "kind"),
					Priority:  Priority(rapid.IntRange(0, int(Urgent)).Draw(t, "priority")),
					Displaces: rapid.Bool().Draw(t, "displaces"), Spared: rapid.Bool().Draw(t, "spared"),
				}
				if kindOf(r.Kind) == "network" {
					r.Origin = rapid.SampledFrom([]string{"", "https://a", "https://b"}).Draw(t, "origin")
				}
				if ms := rapid.SampledFrom([]int{0, 0, -500, 1, 3000, 60_000}).Draw(t, "not before"); ms != 0 {
					r.NotBefore = now.Add(time.Duration(ms) * time.Millisecond)
				}
				g.Enqueue(now, r)
				m.ask(now, r)
				asks[server], notBefore[server] = true, r.NotBefore
			case "answered":
				g.Answered(now, server)
				m.answered(now, server)
				m.end(server)
				delete(open, server)
			case "closed":
				g.Closed(now, server)
				m.end(server)
				delete(open, server)
			case "installing":
				g.Installing(now, server)
				m.install(now, server)
			case "waited":
				ran := time.Duration(rapid.SampledFrom([]int{0, 10, 150, 2000}).Draw(t, "ran")) * time.Millisecond
				waited := time.Duration(rapid.SampledFrom([]int{0, 100, 999, 1500, 40_000}).Draw(t, "waited")) * time.Millisecond
				g.Waited(now, server, ran, waited)
				m.waited(now, server, ran, waited)
			case "cancel":
				g.Cancel(server)
				m.cancel(server)
				delete(asks, server)
			case "wait":
				now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 500, 2000, 9999, 10_000}).Draw(t,
					"wait")) * time.Millisecond)
			case "wake":
				if wake.IsZero() {
					continue
				}
				now = later(now, wake)
				wakeups++
			}
			if action != "wake" {
				words++
			}

			var got []string
			got, wake = g.Next(now)
			want := m.next(now)
			if !slices.Equal(got, want) {
				t.Fatalf("after %s of %s: granted %v, the model %v", action, server, got, want)
			}
			granted += len(got)
			for _, s := range got {
				switch {
				case !asks[s]:
					t.Fatalf("G4: %s was granted and had not asked", s)
				case notBefore[s].After(now):
					t.Fatalf("G3: %s was granted %v too early", s, notBefore[s].Sub(now))
				case open[s]:
					t.Fatalf("G5: %s was granted twice", s)
				}
				delete(asks, s)
				open[s] = true
			}
			var victims []string
			for _, i := range m.displace(now) {
				m.open[i].displaced = true
				victims = append(victims, m.open[i].Server)
			}
			if got := g.Displace(now); !slices.Equal(got, victims) {
				t.Fatalf("G10: after %s of %s: displaced %v, the model %v", action, server, got, victims)
			}
			if second := g.Displace(now); second != nil {
				t.Fatalf("G10: %v were displaced by the second word", second)
			}
			if err := g.Check(); err != nil {
				t.Fatal(err)
			}
			if second, _ := g.Next(now); second != nil {
				t.Fatalf("G7: %v could have been granted before", second)
			}
			exact := m.wake(now)
			switch {
			case !wake.IsZero() && len(m.waiting) == 0:
				t.Fatalf("the gate wakes and nobody waits")
			case !wake.IsZero() && !wake.After(now):
				t.Fatalf("G8: wake is %v before now", now.Sub(wake))
			case !exact.IsZero() && (wake.IsZero() || wake.After(exact)):
				t.Fatalf("G8: wake is %v, something could start at %v", wake, exact)
			}
			st := g.Stats()
			if st.Waiting != len(m.waiting) || int(st.Granted) != granted || st.Width != m.width {
				t.Fatalf("stats %+v, the model has %d waiting, %d granted and a width of %d", st, len(m.waiting), granted, m.width)
			}
		}
		// Every word may cause a few wake-ups (its NotBefore, the expiry of its slot), no more.
		if wakeups > 3*words {
			t.Fatalf("%d wake-ups for %d words", wakeups, words)
		}
		// No request starves: when all running starts are closed again and again, every request is granted.
		for range 10_000 {
			if len(asks) == 0 {
				return
			}
			for s := range open {
				g.Closed(now, s)
				delete(open, s)
			}
			var got []string
			if got, wake = g.Next(now); len(got) == 0 {
				if wake.IsZero() {
					t.Fatalf("%v wait and the gate does not wake", asks)
				}
				now = later(now, wake)
			}
			for _, s := range got {
				delete(asks, s)
				open[s] = true
			}
		}
		t.Fatalf("%v were never granted", asks)
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
