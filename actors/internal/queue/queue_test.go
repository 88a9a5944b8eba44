package queue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/actors/internal/queue"
)

// stage plays a queue whose waiters are words.
type stage struct {
	t *testing.T
	q *queue.Queue[string]
	w map[string]*queue.Waiter[string]
}

func newStage(t *testing.T, inFlight, waiting int) *stage {
	return &stage{t, queue.New[string](queue.Limits{InFlight: inFlight, Waiting: waiting}), map[string]*queue.Waiter[string]{}}
}

// enter returns the outcome for a call: "go", "wait", "full", or "wait for NAME" if NAME has to leave.
func (s *stage) enter(key, name string) string {
	s.t.Helper()
	answer, w, displaced := s.q.Enter(key, func() string { return name })
	s.sound()
	switch {
	case answer == queue.Go:
		return "go"
	case answer == queue.Full:
		return "full"
	case displaced != nil:
		s.w[name] = w
		return "wait for " + displaced.Value
	}
	s.w[name] = w
	return "wait"
}

func (s *stage) leave() string {
	s.t.Helper()
	w := s.q.Leave()
	s.sound()
	if w == nil {
		return "nobody"
	}
	return w.Value
}

func (s *stage) sound() {
	s.t.Helper()
	if err := s.q.Check(); err != nil {
		s.t.Fatal(err)
	}
}

func TestKeysTakeTurns(t *testing.T) {
	s := newStage(t, 1, 100)
	if got := s.enter("a", "a0"); got != "go" {
		t.Fatal(got)
	}
	for _, name := range []string{"a1", "a2", "a3", "b1", "b2", "c1"} {
		if got := s.enter(name[:1], name); got != "wait" {
			t.Fatalf("%s: %s", name, got)
		}
	}
	var order []string
	for range 7 {
		order = append(order, s.leave())
	}
	if got := strings.Join(order, " "); got != "a1 b1 c1 a2 b2 a3 nobody" {
		t.Error(got)
	}
	if s.q.InFlight() != 0 {
		t.Errorf("%d in flight", s.q.InFlight())
	}
}

// A key with a thousand calls does not make a key with one call wait for more than one of them.
func TestOneCallIsNotStarvedByAThousand(t *testing.T) {
	s := newStage(t, 2, 1000)
	for i := range 1000 {
		s.enter("greedy", fmt.Sprint("greedy", i))
	}
	if got := s.enter("modest", "modest"); got != "wait" {
		t.Fatal(got)
	}
	if first, second := s.leave(), s.leave(); first != "greedy2" || second != "modest" {
		t.Errorf("%s, %s", first, second)
	}
}

// A key that fills every place for waiting does not keep another from waiting.
func TestAFullQueueIsShared(t *testing.T) {
	s := newStage(t, 1, 4)
	s.enter("a", "a0")
	for _, c := range []struct{ name, want string }{
		{"a1", "wait"}, {"a2", "wait"}, {"a3", "wait"}, {"a4", "wait"}, {"a5", "full"},
		{"b1", "wait for a4"}, {"b2", "wait for a3"}, {"b3", "full"}, {"a6", "full"},
		{"c1", "wait for a2"}, {"c2", "full"}, {"d1", "wait for b2"}, {"e1", "full"},
	} {
		if got := s.enter(c.name[:1], c.name); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if s.q.Drop(s.w["a4"]) {
		t.Error("what was displaced waited still")
	}
}

func TestNobodyWaitsWhereNobodyMay(t *testing.T) {
	s := newStage(t, 1, 0)
	if a, b := s.enter("a", "1"), s.enter("b", "2"); a != "go" || b != "full" {
		t.Errorf("%s, %s", a, b)
	}
	if got := newStage(t, -3, -3).enter("a", "1"); got != "go" { // bounds without sense are the least that have some
		t.Error(got)
	}
}

func TestLimits(t *testing.T) {
	s := newStage(t, 1, 10)
	for _, name := range []string{"a0", "a1", "a2", "a3", "b1"} {
		s.enter(name[:1], name)
	}
	names := func(ws []*queue.Waiter[string]) (out []string) {
		for _, w := range ws {
			out = append(out, w.Value)
		}
		return out
	}
	admitted, displaced := s.q.SetLimits(queue.Limits{InFlight: 3, Waiting: 1})
	if got := fmt.Sprint(names(admitted), names(displaced)); got != "[a1 b1] [a3]" {
		t.Error(got)
	}
	s.sound()
	if admitted, displaced = s.q.SetLimits(queue.Limits{InFlight: 1, Waiting: 1}); admitted != nil || displaced != nil {
		t.Errorf("%v %v", admitted, displaced)
	}
	for range 2 { // three in flight end before there is room for one
		if got := s.leave(); got != "nobody" {
			t.Error(got)
		}
	}
	if got := s.leave(); got != "a2" {
		t.Error(got)
	}
}

// A walk is held to the guarantees of the package by its own books, which know nothing of lines and rings.
func TestWalks(t *testing.T) {
	for seed := range uint64(300) {
		walk(t, rand.New(rand.NewPCG(seed, 1)), 400)
	}
}

func FuzzWalk(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { walk(t, rand.New(rand.NewPCG(a, b)), 200) })
}

type waits struct {
	key    string
	number int
	// passed counts the turns of each other key since this one's key last had a turn or this one came, whichever is later.
	passed map[string]int
}

func walk(t *testing.T, rnd *rand.Rand, steps int) {
	limits := queue.Limits{InFlight: 1 + rnd.IntN(4), Waiting: rnd.IntN(12)}
	q := queue.New[*waits](limits)
	keys := []string{"", "a", "b", "c", "d"}[:1+rnd.IntN(5)]
	var waiting []*queue.Waiter[*waits] // in the order in which they came
	inFlight, entered, ended := 0, 0, 0

	lined := func(key string) (n int) {
		for _, w := range waiting {
			if w.Value.key == key {
				n++
			}
		}
		return n
	}
	gone := func(w *queue.Waiter[*waits]) {
		i := slices.Index(waiting, w)
		if i < 0 {
			t.Fatalf("%s/%d is told twice", w.Value.key, w.Value.number)
		}
		waiting = slices.Delete(waiting, i, i+1)
	}
	starts := func() {
		if inFlight++; inFlight > limits.InFlight {
			t.Fatalf("Q1: %d of %d are in flight", inFlight, limits.InFlight)
		}
	}
	goes := func(w *queue.Waiter[*waits]) {
		first := slices.IndexFunc(waiting, func(o *queue.Waiter[*waits]) bool { return o.Value.key == w.Value.key })
		if waiting[first] != w {
			t.Fatalf("Q4: %s/%d goes before %d", w.Value.key, w.Value.number, waiting[first].Value.number)
		}
		gone(w)
		starts()
		for _, o := range waiting {
			if o.Value.key == w.Value.key {
				clear(o.Value.passed)
			} else if o.Value.passed[w.Value.key]++; o.Value.passed[w.Value.key] > 1 {
				t.Fatalf("Q5: %q waits while %q has a second turn", o.Value.key, w.Value.key)
			}
		}
	}
	displacedBy := func(w *queue.Waiter[*waits], atLeast int) {
		if n := lined(w.Value.key); n < atLeast {
			t.Fatalf("Q7: one of %d of %q is displaced", n, w.Value.key)
		}
		gone(w)
		ended++
	}
	for range steps {
		switch n := rnd.IntN(20); {
		case n < 10:
			key := keys[rnd.IntN(len(keys))]
			entered++
			v := &waits{key: key, number: entered, passed: map[string]int{}}
			answer, w, displaced := q.Enter(key, func() *waits { return v })
			if displaced != nil {
				displacedBy(displaced, lined(key)+2)
			}
			switch answer {
			case queue.Go:
				starts()
			case queue.Wait:
				waiting = append(waiting, w)
			case queue.Full:
				ended++
				if len(waiting) < limits.Waiting {
					t.Fatalf("%d of %d wait, and it is full", len(waiting), limits.Waiting)
				}
				for _, k := range keys {
					if lined(k) >= lined(key)+2 {
						t.Fatalf("Q7: %q is refused with %d waiting, and %q has %d", key, lined(key), k, lined(k))
					}
				}
			}
		case n < 17 && inFlight > 0:
			inFlight--
			ended++
			if w := q.Leave(); w != nil {
				goes(w)
			}
		case n < 19 && len(waiting) > 0:
			w := waiting[rnd.IntN(len(waiting))]
			gone(w)
			ended++
			if !q.Drop(w) || q.Drop(w) {
				t.Fatal("one who waits does not, or twice")
			}
		case n == 19 && rnd.IntN(5) == 0:
			limits = queue.Limits{InFlight: 1 + rnd.IntN(4), Waiting: rnd.IntN(12)}
			admitted, displaced := q.SetLimits(limits)
			for _, w := range admitted {
				goes(w)
			}
			for _, w := range displaced {
				displacedBy(w, 1)
			}
			if len(waiting) > limits.Waiting {
				t.Fatalf("Q3: %d wait", len(waiting))
			}
		}
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		if q.InFlight() != inFlight || q.Waiting() != len(waiting) {
			t.Fatalf("it says %d and %d, and it is %d and %d", q.InFlight(), q.Waiting(), inFlight, len(waiting))
		}
		if entered != ended+inFlight+len(waiting) {
			t.Fatalf("of %d %d have ended, %d are in flight, %d wait: one is lost", entered, ended, inFlight, len(waiting))
		}
		if len(waiting) > 0 && inFlight < limits.InFlight {
			t.Fatalf("Q2: %d wait, %d of %d are in flight", len(waiting), inFlight, limits.InFlight)
		}
	}
}

// TestRoomCostsNothing: a call that finds room makes nothing, whatever its key.
func TestRoomCostsNothing(t *testing.T) {
	q := queue.New[string](queue.Limits{InFlight: 2, Waiting: 2})
	value := func() string { return "" }
	if n := testing.AllocsPerRun(100, func() {
		q.Enter("key", value)
		q.Leave()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
