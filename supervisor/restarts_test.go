package supervisor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// A day of a server that crashes as soon as it is up: the gaps lie inside the policy's envelope (I7), it is parked, and
// it is probed for ever (L6).
func TestADayOfACrashLoop(t *testing.T) {
	seeds.Shows(t, "004.nfr2.backoff")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		policy := restart.DefaultPolicy()
		m := start(t, supervisor.Config{Rand: rand.New(rand.NewPCG(1, 2)).Float64}, map[string]*fake{"loop": f})
		settled(t, m)
		w := m.Watch(1 << 16)
		defer w.Close()
		begin := time.Now()
		go func() {
			for e := range w.Events(t.Context()) {
				if e.Status != nil && e.Status.Status == messages.Connected {
					f.kill()
				}
			}
		}()
		f.kill()
		var gaps []time.Duration
		last := begin
		for seen := f.dials.Load(); time.Since(begin) < 24*time.Hour; {
			time.Sleep(50 * time.Millisecond)
			if n := f.dials.Load(); n != seen {
				if n > seen+1 {
					t.Fatalf("%d dials within 50 ms", n-seen)
				}
				gaps = append(gaps, time.Since(last))
				last, seen = time.Now(), n
			}
		}
		if len(gaps) < 24*60/5/2 || len(gaps) > 2*24*60/5 {
			t.Errorf("%d dials in a day", len(gaps))
		}
		for i, gap := range gaps {
			if gap > time.Duration(float64(policy.Probe)*1.5) {
				t.Errorf("gap %d is %v: longer than the probe interval", i, gap)
			}
		}
		st, _ := m.ServerStatus("loop")
		if st.Attempts < policy.NetworkPark {
			t.Errorf("connecting for a moment reset the count of failures: %d", st.Attempts)
		}
		// It heals: the next probe brings it back, and a stable minute makes it as good as new.
		w.Close()
		eventuallyWithin(t, 10*time.Minute, func() bool { return phase(t, m, "loop") == messages.Connected })
		time.Sleep(2 * time.Minute)
		if st, _ := m.ServerStatus("loop"); st.Attempts != 0 || st.Status != messages.Connected {
			t.Errorf("after two healthy minutes: %+v", st)
		}
		f.kill()
		time.Sleep(time.Second)
		if phase(t, m, "loop") != messages.Connected {
			t.Error("the first restart after health is not nearly immediate")
		}
	})
}

func eventuallyWithin(t *testing.T, d time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within %v", d)
}

// A thousand servers that die together come back in an orderly queue: never more slots than the gate has, no server starves,
// and ten that never answer do not hold up the others (P13, I11, I15).
func TestStampede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, silent = 1000, 10
		fakes := map[string]*fake{}
		for i := range n {
			f := newFake("x")
			f.delay = 300 * time.Millisecond
			fakes[fmt.Sprintf("s%03d", i)] = f
		}
		limits := restart.DefaultLimits(2)
		m := start(t, supervisor.Config{Rand: rand.New(rand.NewPCG(3, 4)).Float64, Gate: limits}, fakes)
		settled(t, m)
		if got := len(m.ConnectedServers()); got != n {
			t.Fatalf("%d of %d connected", got, n)
		}
		for i := range silent {
			fakes[fmt.Sprintf("s%03d", i)].set(func(f *fake) { f.mute = true })
		}
		begin := time.Now()
		for _, f := range fakes {
			f.kill()
		}
		var opening int
		for len(m.ConnectedServers()) < n-silent {
			time.Sleep(100 * time.Millisecond) // each is seen: a server takes 300 ms to answer initialize
			now := 0
			for _, st := range m.Status() {
				if st.Step == messages.Dialing || st.Step == messages.Handshaking {
					now++
				}
			}
			opening = max(opening, now)
			if time.Since(begin) > 2*time.Minute {
				t.Fatalf("%d of %d are back after two minutes", len(m.ConnectedServers()), n-silent)
			}
		}
		if most := limits.InProcess + silent; opening > most {
			t.Errorf("%d were dialling at once, the gate has %d slots and %d silent ones gave theirs back", opening, limits.InProcess, silent)
		}
		t.Logf("%d servers were back after %v of virtual time, at most %d dialling at once", n-silent, time.Since(begin), opening)
	})
}

// The new spec is used and the old timer is dead (L2); a disabled server stays disabled whatever was on its way (L1).
func TestWishesOverruleWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := newFake("x"), newFake("y")
		bad.refuse = errors.New("down")
		slow := newFake("z")
		slow.delay = 10 * time.Second
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"good": {Type: messages.SDK, Disabled: true},
			"bad": {Type: messages.SDK, Disabled: true}}}, map[string]*fake{"bad": bad, "good": good, "slow": slow})
		if err := m.Toggle(t.Context(), "slow", false); err != nil { // it is handshaking
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if st, _ := m.ServerStatus("slow"); st.Status != messages.Disabled || st.Warm || slow.alive.Load() != 0 {
			t.Errorf("disabled while connecting: %+v, %d alive", st, slow.alive.Load())
		}

		_ = m.Connect(t.Context(), "s", supervisor.Spec{Type: messages.SDK, Name: "bad"})
		if err := m.Connect(t.Context(), "s", supervisor.Spec{Type: messages.SDK, Name: "good"}); err != nil {
			t.Fatal(err)
		}
		dials := bad.dials.Load()
		time.Sleep(time.Hour)
		if bad.dials.Load() != dials {
			t.Error("the old spec was dialled after it was replaced")
		}
	})
}

// A server that is another one by its new spec begins without what is known of the one before: a program that is not there is tried again only if
// it was there once.
func TestANewSpecBeginsAnew(t *testing.T) {
	m := start(t, supervisor.Config{}, map[string]*fake{"before": newFake("x")})
	if err := m.Connect(t.Context(), "a", sdk("before")); err != nil {
		t.Fatal(err)
	}
	if err := m.Connect(t.Context(), "a", supervisor.Spec{Command: "/no/such/program"}); err == nil {
		t.Fatal("a program that is not there is connected")
	}
	settled(t, m)
	if st, err := m.ServerStatus("a"); err != nil || st.Retry != messages.RetryNever {
		t.Errorf("%v, %+v", err, st)
	}
}

// The owner changes settings of a connected server that need no other connection: the policy goes on with the failures that it has counted, since
// the server would never be parked otherwise while a person tries settings.
func TestAnAdjustedSpecKeepsTheCountOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		m := start(t, supervisor.Config{}, map[string]*fake{"f": f})
		settled(t, m) // the last connection, which kill ends, is that of a
		spec := sdk("f")
		connect := func() {
			t.Helper()
			if err := m.Connect(t.Context(), "a", spec); err != nil {
				t.Fatal(err)
			}
		}
		connect()
		for n := 1; n <= 3; n++ {
			f.kill()
			time.Sleep(15 * time.Second) // it is back, and not stable
			if st, _ := m.ServerStatus("a"); st.Attempts != n || st.Status != messages.Connected {
				t.Errorf("after %d failures in a row %d are counted, and it is %s", n, st.Attempts, st.Status)
			}
			spec.CallTimeout = messages.Duration(time.Duration(n) * time.Second)
			connect()
		}
	})
}
