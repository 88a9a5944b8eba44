package supervisor_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// A status counts how often its server was restarted, and its time Since is when the server's phase began.
func TestTheStatusCountsRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("work")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		for n := range 3 {
			since := time.Now()
			if n > 0 {
				if err := m.Reconnect(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour)
			if st := status(t, m, "a"); st.Restarts != n || st.Since.Sub(since).Abs() > time.Second {
				t.Errorf("connected at %v for the time %d: %d restarts, since %v", since, n+1, st.Restarts, st.Since)
			}
		}
	})
}

// An attempt goes on for longer after those that took too long, until the server is connected: then it has been slow once.
func TestPatienceBeginsAnewWithAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("work")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		attempt := func(mute bool) time.Duration {
			f.set(func(f *fake) { f.mute = mute })
			began := time.Now()
			if err := m.Reconnect(t.Context(), "a"); (err != nil) != mute {
				t.Errorf("mute: %v, and the attempt ended with %v", mute, err)
			}
			return time.Since(began)
		}
		first, second := attempt(true), attempt(true)
		if attempt(false); second <= first {
			t.Errorf("the first attempt took %v, the second %v", first, second)
		}
		if second := attempt(true); second > first+time.Second {
			t.Errorf("an attempt took %v at first, and %v after a connection", first, second)
		}
		// A list of a connected server that takes too long says nothing about attempts.
		attempt(false)
		f.set(func(f *fake) { f.mute = true })
		f.setTools("work", "more")
		time.Sleep(5 * time.Minute)
		if second := attempt(true); second > first+time.Second {
			t.Errorf("an attempt took %v at first, and %v after lists that took too long", first, second)
		}
	})
}

// Close lets calls go on for half of the time that it has.
func TestCloseDrainsForHalfOfItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("work")
		f.onCall = hang
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		ended := callBy(t.Context(), m, "")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		if err := m.Close(ctx); err != nil || time.Since(began).Round(time.Millisecond) != time.Second {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
		<-ended
	})
}

// A server of another spec has none of the tools of the one before, also when its own cannot be listed.
func TestANewSpecHasNoOldTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, now := newFake("old"), newFake("now")
		now.unlist = true
		m := start(t, supervisor.Config{}, map[string]*fake{"f": old, "g": now})
		if err := m.Connect(t.Context(), "a", supervisor.Spec{Type: messages.SDK, Name: "f"}); err != nil {
			t.Fatal(err)
		}
		if err := m.Connect(t.Context(), "a", supervisor.Spec{Type: messages.SDK, Name: "g"}); err != nil {
			t.Fatal(err)
		}
		if _, there := m.Tools().LookupTool("a", "old"); there {
			t.Error("the tool of the spec before is offered")
		}
	})
}

// A server that notifies without a pause is listed all the same.
func TestAStormWithoutAPauseIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("work")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		before := f.lists.Load()
		for range 500 {
			f.say("notifications/tools/list_changed", "{}")
			time.Sleep(20 * time.Millisecond)
		}
		if n := f.lists.Load() - before; n < 5 || n > 12 {
			t.Errorf("listed %d times in ten seconds without a pause", n)
		}
	})
}

// A call that takes longer than the idle timeout is no idleness.
func TestALongCallIsNoIdleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("work")
		f.onCall = func(ctx context.Context, _ string, _ json.RawMessage) (string, error) {
			select {
			case <-time.After(5 * time.Minute):
				return "done", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, Connect: messages.Lazy,
			IdleTimeout: messages.Duration(time.Minute), CallTimeout: messages.Duration(10 * time.Minute)}}}, map[string]*fake{"a": f})
		settled(t, m)
		if _, err := m.CallServerTool(t.Context(), "a", "work", nil); err != nil {
			t.Error(err)
		}
	})
}

// A call that a program holds up until its server rests finds the gate closed, and wakes it: it does not wait for a server that nothing else wakes.
func TestACallHeldUpUntilItsServerRestsWakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := 5 * time.Second
		m := start(t, supervisor.Config{
			CallWait: time.Minute,
			Servers:  map[string]supervisor.Spec{"a": {Type: messages.SDK, Connect: messages.Lazy, IdleTimeout: messages.Duration(time.Second)}},
			Allow:    func(context.Context, *supervisor.Tool, json.RawMessage) error { time.Sleep(held); return nil },
		}, map[string]*fake{"a": newFake("work")})
		settled(t, m)
		began := time.Now()
		_, err := m.CallServerTool(t.Context(), "a", "work", nil) // it connects the server
		for i := 0; i < 3 && err == nil; i++ {
			began = time.Now()
			_, err = m.CallServerTool(t.Context(), "a", "work", nil)
		}
		if took := time.Since(began); err != nil || took > held+time.Second {
			t.Errorf("the call took %s: %v", took, err)
		}
	})
}

// Questions without an answer count in a row: an answer in between makes the next one the first.
func TestStrikesCountInARow(t *testing.T) {
	remotely(t, func(t *testing.T, m *supervisor.Manager, f *fake) {
		asked := func(more int64) {
			for until := f.pings.Load() + more; f.pings.Load() < until; {
				time.Sleep(100 * time.Millisecond)
			}
		}
		for range 3 {
			f.set(func(f *fake) { f.deaf = true })
			asked(2)
			f.set(func(f *fake) { f.deaf = false })
			asked(1)
		}
		time.Sleep(time.Minute)
		if n := f.dials.Load(); n != 1 || !isConnected(t, m) {
			t.Errorf("given up %d times although it answers now and then", n-1)
		}
	})
}

// A message that comes while the third question has no answer is a sign of life: the two before it count no more.
func TestALateMessageClearsTheStrikes(t *testing.T) {
	remotely(t, func(t *testing.T, m *supervisor.Manager, f *fake) {
		f.set(func(f *fake) { f.deaf = true })
		for range 3 {
			for until := f.pings.Load() + 3; f.pings.Load() < until; {
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(time.Second)
			f.say("notifications/message", `{"level":"info","data":"busy"}`)
		}
		if n := f.dials.Load(); n != 1 || !isConnected(t, m) {
			t.Errorf("given up %d times although it notifies now and then", n-1)
		}
	})
}

// A question that was under way when a connection was ended is not one of the next connection, which is asked as well.
func TestTheNextConnectionIsAskedAsWell(t *testing.T) {
	remotely(t, func(t *testing.T, m *supervisor.Manager, f *fake) {
		f.set(func(f *fake) { f.deaf = true })
		time.Sleep(16 * time.Second) // the first question is under way
		f.set(func(f *fake) { f.deaf = false })
		asked := f.pings.Load()
		if err := m.Reconnect(t.Context(), "f"); err != nil || asked != 1 {
			t.Fatalf("asked %d times: %v", asked, err)
		}
		time.Sleep(time.Minute)
		if f.pings.Load() < asked+2 {
			t.Errorf("asked %d times in a minute of silence", f.pings.Load()-asked)
		}
	})
}
