package sim_test

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
	"github.com/mcpvisor/mcpvisor/transports"
)

// A run never hangs: what would hang it is a verdict, within seconds, which names it.

// onlyVerdict is the only verdict of a run that hangs.
func onlyVerdict(t *testing.T, h *history.History) invariant.Verdict {
	t.Helper()
	verdicts := invariant.Judge(h)
	if len(verdicts) != 1 || verdicts[0].ID != invariant.Hung || verdicts[0].Answer != invariant.Violated {
		t.Fatalf("%+v", verdicts)
	}
	t.Log(verdicts[0].Why)
	return verdicts[0]
}

// ledger has a lock that one of its methods forgets to unlock.
type ledger struct {
	mu   sync.Mutex
	full chan int
}

func (l *ledger) forget() { l.mu.Lock() }
func (l *ledger) note()   { l.mu.Lock(); l.mu.Unlock() } //nolint:staticcheck // only the waiting matters
func (l *ledger) hold()   { l.mu.Lock(); l.full <- 1 }

func requireTexts(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, s := range all {
		if !strings.Contains(text, s) {
			t.Errorf("%q does not stand in %q", s, text)
		}
	}
}

func TestAMutexOfAnActorIsNamed(t *testing.T) {
	var l ledger
	count := 0
	v := onlyVerdict(t, run(t, minutePlan(t), withMiddleware("server/b", func(actor.ReceiverContext, any) {
		switch count++; count {
		case 3:
			l.forget()
		case 4:
			l.note()
		}
	})))
	requireTexts(t, v.Why, "A mutex is never unlocked", "(*ledger).note", "hung_test.go:", "whoever locked it has returned without unlocking it",
		"The actor server/b has not come back from handling")
	defer l.mu.Unlock()
}

func TestAMutexOfASessionIsNamed(t *testing.T) {
	var l ledger
	v := onlyVerdict(t, run(t, minutePlan(t), sim.Options{Config: func(cfg *supervisor.Config) {
		own := cfg.Transport
		cfg.Transport = func(name string, spec supervisor.Spec) (transports.Transport, error) {
			if name == "a" {
				l.forget()
				l.note()
			}
			return own(name, spec)
		}
	}}))
	requireTexts(t, v.Why, "A mutex is never unlocked", "(*ledger).note")
	l.mu.Unlock()
}

func TestWhoHoldsAMutexAndWaitsIsNamed(t *testing.T) {
	var l ledger
	count := 0
	v := onlyVerdict(t, run(t, minutePlan(t), withMiddleware("server/b", func(actor.ReceiverContext, any) {
		switch count++; count {
		case 3:
			l.full = make(chan int) // of the bubble
			go l.hold()
		case 4:
			l.note()
		}
	})))
	requireTexts(t, v.Why, "(*ledger).note", "It may be held by a goroutine that waits for somebody who receives what it sends in", "(*ledger).hold")
}

// A command whose lock is held for ever hangs with its owner, and the verdict names the command.
func TestACommandThatHangsIsNamed(t *testing.T) {
	var l ledger
	p := planScenario(t, 1, scenario.Scenario{
		Name: "owner", Duration: messages.Duration(30e9), Settle: messages.Duration(30e9), Servers: []scenario.Group{{Name: "a"}, {Name: "b"}},
		Commands: []scenario.Command{{Do: "disable", On: scenario.Selector{"b"}, At: messages.Duration(12e9)}},
	})
	var began time.Time
	v := onlyVerdict(t, run(t, p, withMiddleware("server/b", func(actor.ReceiverContext, any) {
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) > 11*time.Second { // since then there is only the command
			l.forget()
			l.note()
		}
	})))
	requireTexts(t, v.Why, "Not answered: the owner's command disable b of 12s")
	if v.At != 12*time.Second || v.Server != "b" {
		t.Errorf("at %s on %q", v.At, v.Server)
	}
}

// spins uses the processor until it is let go.
func spins(free *atomic.Bool) {
	for !free.Load() { //nolint:revive // that is what is tested
	}
}

func TestAnEndlessLoopIsNamed(t *testing.T) {
	var free atomic.Bool
	defer free.Store(true)
	o := withMiddleware("server/b", func(_ actor.ReceiverContext, message any) {
		if _, started := message.(*actor.Started); !started {
			spins(&free)
		}
	})
	o.StallTicks = 60
	v := onlyVerdict(t, run(t, minutePlan(t), o))
	requireTexts(t, v.Why, "runs without an end", "spins", "The actor server/b has not come back from handling")
}

// heap is held by an actor that takes memory.
var heap []byte

// An actor that takes memory without an end is named before the machine has none left.
func TestMemoryWithoutAnEndIsNamed(t *testing.T) {
	var free atomic.Bool
	defer func() { free.Store(true) }()
	once := true // the run goes on when it is let go
	o := withMiddleware("server/b", func(_ actor.ReceiverContext, message any) {
		if _, started := message.(*actor.Started); !started && once {
			once = false
			heap = make([]byte, 512<<20)
			spins(&free)
		}
	})
	o.MaxMemory = 256 << 20
	runtime.GC() // what tests before have left is not live
	v := onlyVerdict(t, run(t, minutePlan(t), o))
	heap = nil
	requireTexts(t, v.Why, "It takes memory without an end", "may have 256 MiB", "One goroutine is running in test/chaos/sim_test.", "hung_test.go:",
		"The actor server/b has not come back from handling")
}

// A channel without a reader lets time go on: the run comes to its end, and I9 says which actor blocks, and where.
func TestASendWithoutAReaderIsNamed(t *testing.T) {
	once := true
	h := run(t, minutePlan(t), withMiddleware("server/b", func(_ actor.ReceiverContext, message any) {
		if _, started := message.(*actor.Started); !started && once {
			once = false
			sends(make(chan int))
		}
	}))
	requireTexts(t, violationText(h, "I9"), "The actor server/b blocks while it handles", "waits for somebody who receives what it sends in", "sends (hung_test.go:")
}

func sends(to chan int) { to <- 1 }
