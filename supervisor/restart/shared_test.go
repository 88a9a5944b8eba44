package restart_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// TestTwoOwnersShareTheSlots checks that the slots of a shared gate are those of both owners together, that the one whose server may
// start because of the other is woken, and that an owner which leaves gives its slots back.
func TestTwoOwnersShareTheSlots(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	woken := map[string]int{}
	gate := restart.NewSharedGate(restart.Limits{Processes: 2, Hold: time.Hour})
	a := gate.Join(func() { woken["a"]++ })
	b := gate.Join(func() { woken["b"]++ })
	for _, o := range []*restart.Owner{a, b} {
		for i := range 2 { // both have servers of the same names
			o.Enqueue(now, restart.Request{Server: fmt.Sprint(i), Kind: messages.Stdio})
		}
	}
	granted, _ := a.Next(now)
	if more, _ := b.Next(now); !slices.Equal(granted, []string{"0", "1"}) || len(more) > 0 {
		t.Fatalf("granted %v and %v of two slots", granted, more)
	}
	// a frees a slot, which b's server gets: b is told.
	a.Closed(now, "0")
	if more, _ := a.Next(now); len(more) > 0 || woken["b"] != 1 || woken["a"] != 0 {
		t.Fatalf("granted %v, woken %v", more, woken)
	}
	if got, _ := b.Next(now); !slices.Equal(got, []string{"0"}) {
		t.Fatalf("b got %v", got)
	}
	a.Leave()
	if woken["b"] != 2 {
		t.Fatalf("woken %v", woken)
	}
	if got, _ := b.Next(now); !slices.Equal(got, []string{"1"}) {
		t.Fatalf("b got %v after a had left", got)
	}
}

// TestAGrantThatIsTakenBackFreesItsSlot checks the server that is removed between the grant, which another owner's call has made, and the
// moment in which its owner would hear of it.
func TestAGrantThatIsTakenBackFreesItsSlot(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	gate := restart.NewSharedGate(restart.Limits{Processes: 1, Hold: time.Hour})
	a, b := gate.Join(func() {}), gate.Join(func() {})
	b.Enqueue(now, restart.Request{Server: "x", Kind: messages.Stdio})
	_, _ = a.Next(now)
	b.Cancel("x")
	a.Enqueue(now, restart.Request{Server: "y", Kind: messages.Stdio})
	if got, _ := a.Next(now); !slices.Equal(got, []string{"y"}) {
		t.Fatalf("a got %v", got)
	}
	if got, _ := b.Next(now); len(got) > 0 {
		t.Fatalf("b got %v", got)
	}
}

// TestASharedGateGrantsWhatOneGateWould plays random requests of four owners, and the same to one gate: each moment, as many servers
// have been granted, and never more than the limits allow.
func TestASharedGateGrantsWhatOneGateWould(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		limits := restart.Limits{Processes: 1 + r.IntN(4), Hold: time.Duration(1+r.IntN(3)) * time.Second}
		one, shared := restart.NewGate(limits), restart.NewSharedGate(limits)
		var owners [4]*restart.Owner
		var due [4]bool
		for i := range owners {
			owners[i] = shared.Join(func() { due[i] = true })
		}
		now := time.Unix(1_000_000, 0)
		var open []string
		for range 200 {
			now = now.Add(time.Duration(r.IntN(900)) * time.Millisecond)
			i := r.IntN(len(owners))
			switch n := r.IntN(3); {
			case n == 0 && len(open) > 0:
				k := r.IntN(len(open))
				var owner int
				var name string
				_, _ = fmt.Sscanf(open[k], "%d/%s", &owner, &name)
				one.Closed(now, open[k])
				owners[owner].Closed(now, name)
				open = slices.Delete(open, k, k+1)
			default:
				name := fmt.Sprint(r.IntN(6))
				if slices.Contains(open, fmt.Sprintf("%d/%s", i, name)) {
					continue
				}
				request := restart.Request{Kind: messages.Stdio, Priority: restart.Priority(r.IntN(3)), NotBefore: now.Add(time.Duration(r.IntN(2000)-1000) * time.Millisecond)}
				request.Server = fmt.Sprintf("%d/%s", i, name)
				one.Enqueue(now, request)
				request.Server = name
				owners[i].Enqueue(now, request)
			}
			want, _ := one.Next(now)
			got := []string{}
			for k := range owners {
				mine, _ := owners[k].Next(now)
				for _, name := range mine {
					got = append(got, fmt.Sprintf("%d/%s", k, name))
				}
				due[k] = false
			}
			for k := range owners { // those that an earlier owner's grants were for hear of it now
				if due[k] {
					t.Fatalf("seed %d: owner %d is due after its own Next", seed, k)
				}
				mine, _ := owners[k].Next(now)
				for _, name := range mine {
					got = append(got, fmt.Sprintf("%d/%s", k, name))
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(want, got) {
				t.Fatalf("seed %d: granted %v, one gate grants %v", seed, got, want)
			}
			open = append(open, want...)
		}
	}
}

// TestAnOwnerThatHasGoneStandsInNoQueue: the gate grants an owner that retired or left nothing that it had asked for, and keeps for it no slot that
// another owner's server waits for.
func TestAnOwnerThatHasGoneStandsInNoQueue(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for what, gone := range map[string]func(*restart.Owner){"retired": (*restart.Owner).Retire, "left": (*restart.Owner).Leave} {
		gate := restart.NewSharedGate(restart.Limits{Processes: 1, Hold: time.Hour})
		a, b := gate.Join(func() {}), gate.Join(func() {})
		b.Enqueue(now, restart.Request{Server: "first", Kind: messages.Stdio})
		if got, _ := b.Next(now); len(got) != 1 {
			t.Fatalf("%s: b got %v of an empty gate", what, got)
		}
		a.Enqueue(now, restart.Request{Server: "waits", Kind: messages.Stdio})
		if got, _ := a.Next(now); len(got) != 0 {
			t.Fatalf("%s: a got %v of a full gate", what, got)
		}
		gone(a)
		b.Closed(now, "first")
		b.Enqueue(now, restart.Request{Server: "second", Kind: messages.Stdio})
		if got, _ := b.Next(now); !slices.Equal(got, []string{"second"}) {
			t.Errorf("%s: b got %v of a gate that it has alone", what, got)
		}
	}
}

// TestWhatOneOwnerSaysCountsForAll: an answer, an installation and a wait for a processor free, widen or keep slots that others wait for; and a
// server that makes room for one of another owner is told to its own.
func TestWhatOneOwnerSaysCountsForAll(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ask := func(o *restart.Owner, servers ...string) {
		for _, s := range servers {
			o.Enqueue(now, restart.Request{Server: s, Kind: messages.Stdio, Displaces: true})
		}
	}
	for what, frees := range map[string]func(a *restart.Owner){
		"an answer":       func(a *restart.Owner) { a.Answered(now, "x") },
		"an installation": func(a *restart.Owner) { a.Installing(now, "x") },
		"an end":          func(a *restart.Owner) { a.Closed(now, "x") },
		"what is none":    nil,
	} {
		woken := 0
		gate := restart.NewSharedGate(restart.Limits{Processes: 1, Hold: time.Hour})
		a, b := gate.Join(func() {}), gate.Join(func() { woken++ })
		ask(a, "x")
		_, _ = a.Next(now)
		ask(b, "x") // another server, of the same name
		if got, _ := b.Next(now); len(got) != 0 {
			t.Fatalf("b got %v of a full gate", got)
		}
		if frees != nil {
			frees(a)
		}
		_, _ = a.Next(now)
		if got, _ := b.Next(now); (len(got) == 1) != (frees != nil) || (woken == 1) != (frees != nil) {
			t.Errorf("%s: b got %v and was woken %d times", what, got, woken)
		}
	}

	// A process that waits for a processor is not silent: its slot is held for longer.
	for _, waits := range []bool{false, true} {
		gate := restart.NewSharedGate(restart.Limits{Processes: 1, Hold: time.Minute, UnansweredFactor: 2})
		a, b := gate.Join(func() {}), gate.Join(func() {})
		ask(a, "x")
		_, _ = a.Next(now)
		ask(b, "y")
		later := now.Add(50 * time.Second)
		if waits {
			a.Waited(later, "x", time.Second, 40*time.Second)
		}
		if got, _ := b.Next(now.Add(70 * time.Second)); (len(got) == 0) != waits {
			t.Errorf("the process waits %v: b got %v", waits, got)
		}
	}

	wokenA := 0
	gate := restart.NewSharedGate(restart.Limits{Processes: 1, UnansweredFactor: 1})
	a, b := gate.Join(func() { wokenA++ }), gate.Join(func() {})
	ask(a, "x")
	_, _ = a.Next(now)
	now = now.Add(time.Hour)
	ask(b, "y")
	if got, _ := b.Next(now); len(got) != 0 {
		t.Fatalf("b got %v beside one that is silent", got)
	}
	if got := b.Displace(now); len(got) != 0 || wokenA != 1 {
		t.Errorf("b is to end %v, and a was woken %d times", got, wokenA)
	}
	if got := a.Displace(now); !slices.Equal(got, []string{"x"}) {
		t.Errorf("a is to end %v", got)
	}
	if got := a.Displace(now); len(got) != 0 {
		t.Errorf("a is to end %v once more", got)
	}
	a.Closed(now, "x")
	if got, _ := b.Next(now); !slices.Equal(got, []string{"y"}) {
		t.Errorf("b got %v in the place of what has ended", got)
	}
}
