package budget_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// fillShare takes in small steps until the share is refused, and gives what it holds then.
func fillShare(s *budget.Share, step int64) int64 {
	for s.Take(step) == nil {
	}
	return s.Held()
}

func TestTheGreediestIsRefusedFirst(t *testing.T) {
	const limit = 1 << 20
	b := budget.New(limit)
	greedy, late, small := b.Open("greedy"), b.Open("late"), b.Open("small")
	third := int64(limit / 6) // its fair share
	alone := fillShare(greedy, 1)
	if alone != third+limit/4 {
		t.Errorf("alone it gets %d, want its share and half of what is common, %d", alone, third+limit/4)
	}
	second := fillShare(late, 1)
	if second >= alone || second <= third {
		t.Errorf("the second gets %d beside %d", second, alone)
	}
	if greedy.Take(1) == nil {
		t.Error("the greediest is served while others hold less")
	}
	if err := small.Take(third); err != nil {
		t.Errorf("less than the fair share is refused: %v", err)
	}
	err := greedy.Take(5 << 20)
	var exceeded *budget.ExceededError
	if !errors.As(err, &exceeded) || !errors.Is(err, messages.ErrMemory) || exceeded.Server != "greedy" || exceeded.Held != alone ||
		!strings.Contains(err.Error(), `"greedy" asked for 5.0 MiB and holds 427 KiB`) {
		t.Errorf("%v", err)
	}
	greedy.Give(alone)
	if late.Take(1) != nil {
		t.Error("what was given back serves nobody")
	}
}

// TestRandomWalk: the total is the sum of the shares and at most the limit; a server below its fair share is always served; who
// is refused would be refused with everything that others, who hold more, are refused; nothing is left at the end.
func TestRandomWalk(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit := int64(1000 + r.IntN(100_000))
		b := budget.New(limit)
		n := 1 + r.IntN(12)
		shares, held, kept := make([]*budget.Share, n), make([]int64, n), make([]int64, n)
		for i := range shares {
			shares[i] = b.Open(fmt.Sprint(i))
		}
		fair := limit / 2 / int64(n)
		for step := range 500 {
			i := r.IntN(n)
			s := shares[i]
			switch r.IntN(6) {
			case 0, 1, 2:
				ask := 1 + r.Int64N(limit/2)
				err := s.Take(ask)
				if err == nil {
					held[i] += ask
				} else if held[i]+ask <= fair {
					t.Fatalf("seed %d, step %d: %v, and its fair share is %d", seed, step, err, fair)
				} else {
					for j := range shares {
						if held[j] >= held[i] && held[j] > fair && shares[j].Take(ask) == nil {
							t.Fatalf("seed %d, step %d: %d is refused with %d, and %d gets as much with %d", seed, step, i, held[i], j, held[j])
						}
					}
				}
			case 3:
				if free := held[i] - kept[i]; free > 0 {
					give := 1 + r.Int64N(free)
					s.Give(give)
					held[i] -= give
				}
			case 4: // a list takes the place of the one before
				if taken := held[i] - kept[i]; taken > 0 {
					list := r.Int64N(taken) + 1
					s.Keep(taken, list)
					held[i], kept[i] = list, list
				}
			case 5:
				if r.IntN(20) == 0 {
					s.Close()
					s.Close()
					if s.Take(1) == nil {
						t.Fatal("a closed share takes")
					}
					s.Give(1)
					s.Keep(0, 5)
					shares[i], held[i], kept[i] = b.Open("again"), 0, 0
				}
			}
			var sum int64
			for i := range shares {
				if got := shares[i].Held(); got != held[i] {
					t.Fatalf("seed %d, step %d: %d holds %d, want %d", seed, step, i, got, held[i])
				}
				sum += held[i]
			}
			if total := b.Total(); total != sum || total > limit {
				t.Fatalf("seed %d, step %d: total %d of %d, the sum is %d", seed, step, total, limit, sum)
			}
		}
		for _, s := range shares {
			s.Close()
		}
		if total := b.Total(); total != 0 {
			t.Fatalf("seed %d: %d left", seed, total)
		}
	}
}

// TestLateServersAreServed: servers that are added get their fair share whatever the older ones hold, and when these let go the
// total is below the limit again.
func TestLateServersAreServed(t *testing.T) {
	b := budget.New(1 << 20)
	first := b.Open("first")
	held := fillShare(first, 1)
	for n := int64(2); n <= 50; n++ {
		s := b.Open("late")
		if err := s.Take(1 << 19 / n); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if first.Take(1) == nil {
		t.Error("the first is still served")
	}
	first.Give(held)
	if first.Take(1000) != nil {
		t.Error("it gave everything back and is refused less than its fair share")
	}
}

func TestNoBoundAndNoShare(t *testing.T) {
	b := budget.New(-1)
	s := b.Open("s")
	if err := s.Take(1 << 40); err != nil || b.Total() != 1<<40 {
		t.Errorf("%v, %d", err, b.Total())
	}
	var none *budget.Share
	if err := none.Take(1 << 40); err != nil || none.Held() != 0 {
		t.Error(err)
	}
	none.Give(1)
	none.Keep(1, 2)
	none.Close()
	if err := budget.New(0).Open("s").Take(100 << 20); err != nil {
		t.Errorf("the default: %v", err)
	}
}

func TestFreed(t *testing.T) {
	b := budget.New(1000)
	s, other := b.Open("s"), b.Open("other")
	if s.Take(100) != nil {
		t.Fatal("refused")
	}
	for _, free := range []func(){func() { s.Give(1) }, other.Close, s.Close} {
		freed := s.Freed()
		select {
		case <-freed:
			t.Fatal("nothing was given back yet")
		default:
		}
		free()
		select {
		case <-freed:
		default:
			t.Error("nobody was told")
		}
	}
}
