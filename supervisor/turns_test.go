package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// bounded is a server of which only so many calls may be in flight at once.
func bounded(inFlight, queued int) supervisor.Config {
	return supervisor.Config{Servers: map[string]supervisor.Spec{
		"a": {Type: messages.SDK, MaxInFlight: inFlight, MaxQueued: queued},
	}}
}

// slow answers after a second, and notes which calls ran in which order, and how many at once.
type slow struct {
	mu        sync.Mutex
	order     []string
	now, most int
}

func (s *slow) call(ctx context.Context, _ string, args json.RawMessage) (string, error) {
	var a struct{ By string }
	_ = json.Unmarshal(args, &a)
	s.mu.Lock()
	s.order = append(s.order, a.By)
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	select {
	case <-time.After(time.Second):
		return "done", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (s *slow) ran() (order []string, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.order...), s.most
}

// callBy makes a call on behalf of a caller and gives its error when it has ended.
func callBy(ctx context.Context, m *supervisor.Manager, caller string) <-chan error {
	ended := make(chan error, 1)
	if caller != "" {
		ctx = supervisor.WithCaller(ctx, caller)
	}
	go func() {
		_, err := m.CallTool(ctx, "mcp__a__work", map[string]any{"by": caller})
		ended <- err
	}()
	return ended
}

// One sub-agent asks for a thousand things, another for one: the one is next after at most one of the thousand, and never
// more than the bound are in flight.
func TestACallerWithAThousandCallsStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake("work"), &slow{}
		f.onCall = s.call
		cfg := bounded(4, 2000)
		cfg.Servers["a"] = supervisor.Spec{Type: messages.SDK, MaxInFlight: 4, MaxQueued: 2000, CallTimeout: -1, MaxCallTimeout: -1}
		m := start(t, cfg, map[string]*fake{"a": f})
		settled(t, m)
		var greedy []<-chan error
		for range 1000 {
			greedy = append(greedy, callBy(t.Context(), m, "greedy"))
		}
		synctest.Wait()
		begin := time.Now()
		modest := callBy(t.Context(), m, "modest")
		synctest.Wait()
		if st, _ := m.ServerStatus("a"); st.InFlight != 4 || st.Queued != 997 {
			t.Errorf("%d in flight, %d queued", st.InFlight, st.Queued)
		}
		if err := <-modest; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 2*time.Second { // the rest of a call before it, and its own second
			t.Errorf("the one call took %v", took)
		}
		for _, ended := range greedy {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		if took, want := time.Since(begin), 1001*time.Second/4; took < want || took > want+2*time.Second {
			t.Errorf("all of them took %v: the bound was not used, or not kept", took)
		}
		if order, most := s.ran(); most != 4 || len(order) != 1001 {
			t.Errorf("%d calls, %d at once", len(order), most)
		}
		if st, _ := m.ServerStatus("a"); st.InFlight != 0 || st.Queued != 0 {
			t.Errorf("%d in flight, %d queued after the end", st.InFlight, st.Queued)
		}
	})
}

func TestAFullQueueSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake("work"), &slow{}
		f.onCall = s.call
		cfg := bounded(1, 2)
		cfg.CallWait = time.Minute // waits for a server that is just restarting, not for one that is busy
		m := start(t, cfg, map[string]*fake{"a": f})
		settled(t, m)
		var all []<-chan error
		for range 3 {
			all = append(all, callBy(t.Context(), m, ""))
			synctest.Wait()
		}
		begin := time.Now()
		err := <-callBy(t.Context(), m, "")
		if !errors.Is(err, supervisor.ErrNotSent) || !errors.Is(err, supervisor.ErrQueueFull) || time.Since(begin) != 0 ||
			messages.ClassOf(err) != messages.ClassThrottled {
			t.Errorf("%v, class %s, after %v", err, messages.ClassOf(err), time.Since(begin))
		}
		const want = `server "a", tool "work": as many calls are in flight as may be (1), and as many wait for ` +
			`their turn as may (2) (not sent); call again when some of them have ended, or raise maxInFlight or maxQueued of the server`
		if err.Error() != want {
			t.Errorf("%s", err)
		}
		// A caller who has none waiting takes the place of the newest of one who has two.
		other := callBy(t.Context(), m, "other")
		if err := <-all[2]; !errors.Is(err, supervisor.ErrQueueFull) || !strings.Contains(err.Error(), "fewer") {
			t.Errorf("%v", err)
		}
		for _, ended := range []<-chan error{all[0], all[1], other} {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if order, _ := s.ran(); fmt.Sprint(order) != "[  other]" {
			t.Errorf("%q ran", order)
		}

		none := bounded(1, -1)
		m = start(t, none, map[string]*fake{"a": f})
		settled(t, m)
		first := callBy(t.Context(), m, "")
		synctest.Wait()
		if err := <-callBy(t.Context(), m, ""); !errors.Is(err, supervisor.ErrQueueFull) || !strings.Contains(err.Error(), "none may wait") {
			t.Errorf("%v", err)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// A call that waits for its turn ends with its own deadline, its server's call timeout, or its caller's patience, as not
// sent, and gives its place back. It says nothing about the connection: the server is not asked whether it lives.
func TestAWaitHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("work")
		f.onCall = hang
		cfg := bounded(1, 0)
		cfg.Servers["a"] = supervisor.Spec{Type: messages.SDK, MaxInFlight: 1, CallTimeout: messages.Duration(10 * time.Second)}
		m := start(t, cfg, map[string]*fake{"a": f})
		settled(t, m)
		first := callBy(t.Context(), m, "")
		synctest.Wait()
		begin := time.Now()
		deadline, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		leaving, leave := context.WithCancel(t.Context())
		early, left, late := callBy(deadline, m, ""), callBy(leaving, m, ""), callBy(t.Context(), m, "")
		synctest.Wait()
		if st, _ := m.ServerStatus("a"); st.Queued != 3 {
			t.Errorf("%d wait", st.Queued)
		}
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) || !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("%v", err)
		}
		if err := <-early; !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, supervisor.ErrNotSent) ||
			time.Since(begin) != time.Second || !strings.Contains(err.Error(), "while it waited for its turn") {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if st, _ := m.ServerStatus("a"); st.Queued != 1 {
			t.Errorf("%d wait", st.Queued)
		}
		if err := <-first; !errors.Is(err, supervisor.ErrOutcomeUnknown) {
			t.Errorf("%v", err)
		}
		// The server's call timeout counts from when the call found its server: both end at the same moment, and the one that
		// waited has not been sent, unless it was its turn at that very moment.
		if err := <-late; !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		synctest.Wait()
		if f.pings.Load() != 0 || phase(t, m, "a") != messages.Connected {
			t.Errorf("%d pings, %s", f.pings.Load(), phase(t, m, "a"))
		}
	})
}

// A server dies while calls wait for their turn: they have not been sent, and say so at once; with CallWait they are sent to
// its next connection.
func TestDeathEndsTheWait(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f, s := newFake("work"), &slow{}
			f.onCall = s.call
			cfg := bounded(1, 0)
			cfg.CallWait = wait
			m := start(t, cfg, map[string]*fake{"a": f})
			settled(t, m)
			first := callBy(t.Context(), m, "")
			synctest.Wait()
			var waiting []<-chan error
			for range 5 {
				waiting = append(waiting, callBy(t.Context(), m, "x"))
			}
			synctest.Wait()
			begin := time.Now()
			f.kill()
			if err := <-first; !errors.Is(err, supervisor.ErrOutcomeUnknown) {
				t.Errorf("the call in flight: %v", err)
			}
			for _, ended := range waiting {
				err := <-ended
				if wait == 0 && (!errors.Is(err, supervisor.ErrNotSent) || time.Since(begin) != 0) {
					t.Errorf("a call that waited: %v after %v", err, time.Since(begin))
				}
				if wait > 0 && err != nil {
					t.Errorf("a call that could wait for the next connection: %v", err)
				}
			}
			order, most := s.ran()
			if n := map[time.Duration]int{0: 1, time.Minute: 6}[wait]; len(order) != n || most != 1 {
				t.Errorf("%d ran, %d at once", len(order), most)
			}
			synctest.Wait() // every caller knows of its end
			for range 100 { // it is down, or connected again already
				if phase(t, m, "a") == messages.Connected {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if err := <-callBy(t.Context(), m, ""); err != nil { // every place was given back
				t.Error(err)
			}
		})
	}
}

// A command that takes the tools away ends the waits as not sent, and waits for none of them: disabling, removal, the end of the
// manager. What is in flight is drained as ever.
func TestWithdrawalEndsTheWait(t *testing.T) {
	for what, act := range map[string]func(*supervisor.Manager) error{
		"disable":   func(m *supervisor.Manager) error { return m.Toggle(context.Background(), "a", false) },
		"reconnect": func(m *supervisor.Manager) error { return m.Reconnect(context.Background(), "a") },
		"close":     func(m *supervisor.Manager) error { return m.Close(context.Background()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			f, s := newFake("work"), &slow{}
			f.onCall = s.call
			m := start(t, bounded(1, 0), map[string]*fake{"a": f})
			settled(t, m)
			first := callBy(context.Background(), m, "")
			synctest.Wait()
			waiting := callBy(context.Background(), m, "")
			synctest.Wait()
			begin := time.Now()
			acted := make(chan error, 1)
			go func() { acted <- act(m) }()
			if err := <-waiting; !errors.Is(err, supervisor.ErrNotSent) || time.Since(begin) != 0 {
				t.Errorf("%s: the call that waited: %v after %v", what, err, time.Since(begin))
			}
			if err := <-first; what != "reconnect" && err != nil {
				t.Errorf("%s: the call in flight: %v", what, err)
			}
			if err := <-acted; err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if order, _ := s.ran(); len(order) != 1 {
				t.Errorf("%s: %d ran", what, len(order))
			}
		})
	}
}

// A server that is disabled keeps the calls in flight, and its connection. Enabled again it has no more room than before.
func TestTheBoundOutlivesTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake("work"), &slow{}
		f.onCall = s.call
		m := start(t, bounded(2, 0), map[string]*fake{"a": f})
		settled(t, m)
		var all []<-chan error
		for range 2 {
			all = append(all, callBy(t.Context(), m, ""))
		}
		synctest.Wait()
		for _, enabled := range []bool{false, true} {
			if err := m.Toggle(t.Context(), "a", enabled); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			all = append(all, callBy(t.Context(), m, ""))
		}
		for _, ended := range all {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if order, most := s.ran(); len(order) != 4 || most != 2 {
			t.Errorf("%d ran, %d at once", len(order), most)
		}
	})
}

// A new spec brings other bounds, and the manager's own count for a spec that says nothing. A negative one is no bound.
func TestBoundsChangeWithTheSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake("work"), &slow{}
		f.onCall = s.call
		cfg := bounded(1, 0)
		cfg.MaxInFlight, cfg.MaxQueued = 3, 7
		m := start(t, cfg, map[string]*fake{"a": f})
		settled(t, m)
		atOnce := func(n int) int {
			s.mu.Lock()
			s.most = 0
			s.mu.Unlock()
			var all []<-chan error
			for range n {
				all = append(all, callBy(t.Context(), m, ""))
			}
			for _, ended := range all {
				if err := <-ended; err != nil && !errors.Is(err, supervisor.ErrQueueFull) {
					t.Error(err)
				}
			}
			_, most := s.ran()
			return most
		}
		for _, c := range []struct {
			spec supervisor.Spec
			want int
		}{
			{supervisor.Spec{MaxInFlight: 1}, 1},
			{supervisor.Spec{MaxInFlight: 2}, 2},
			{supervisor.Spec{}, 3},
			{supervisor.Spec{MaxInFlight: -1}, 20},
			{supervisor.Spec{MaxInFlight: 4}, 4},
		} {
			c.spec.Type = messages.SDK
			if _, err := m.Configure(t.Context(), map[string]supervisor.Spec{"a": c.spec}); err != nil {
				t.Fatal(err)
			}
			settled(t, m)
			if got := atOnce(20); got != c.want {
				t.Errorf("%d at once with maxInFlight %d", got, c.spec.MaxInFlight)
			}
		}
	})
}

// Other bounds of a server that keeps its connection count at once, also for what waits already.
func TestAWaitOverAChangedSpec(t *testing.T) {
	for _, c := range []struct{ inFlight, want int }{{3, 3}, {0, 7}} {
		synctest.Test(t, func(t *testing.T) {
			f, s := newFake("work"), &slow{}
			f.onCall = s.call
			m := start(t, bounded(1, 0), map[string]*fake{"a": f})
			settled(t, m)
			var all []<-chan error
			for range 7 {
				all = append(all, callBy(t.Context(), m, ""))
			}
			synctest.Wait()
			spec := supervisor.Spec{Type: messages.SDK, MaxInFlight: c.inFlight}
			if _, err := m.Configure(t.Context(), map[string]supervisor.Spec{"a": spec}); err != nil {
				t.Fatal(err)
			}
			for _, ended := range all {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			if order, most := s.ran(); len(order) != 7 || most != c.want || f.dials.Load() != 1 {
				t.Errorf("%d ran, %d at once, over %d connections", len(order), most, f.dials.Load())
			}
		})
	}
}

// Reads count and wait as calls do. A ping does neither: it asks about the connection, not about the server's work.
func TestReadsTakeTurnsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake("work"), &slow{}
		f.onCall = s.call
		m := start(t, bounded(1, 0), map[string]*fake{"a": f})
		settled(t, m)
		begin := time.Now()
		first := callBy(t.Context(), m, "")
		synctest.Wait()
		if took, err := m.Ping(t.Context(), "a"); err != nil || took != 0 || time.Since(begin) != 0 {
			t.Errorf("ping: %v, %v, after %v", took, err, time.Since(begin))
		}
		if _, err := m.ReadServerResource(t.Context(), "a", "x:///1"); err != nil || time.Since(begin) != time.Second {
			t.Errorf("the read: %v after %v", err, time.Since(begin))
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		second := callBy(t.Context(), m, "")
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := m.ReadServerResource(short, "a", "x:///1")
		var e *supervisor.Error
		if !errors.As(err, &e) || e.Op != "read" || e.Outcome != messages.OutcomeNotSent || e.Class != messages.ClassTimeout {
			t.Errorf("%+v", err)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

// The caller's key travels with a call by message.
func TestCallersByMessageTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake("work"), &slow{}
		f.onCall = s.call
		m := start(t, bounded(1, 0), map[string]*fake{"a": f})
		settled(t, m)
		root := m.System().Root
		send := func(caller string) actor.Future {
			return root.RequestFuture(m.PID(), &messages.CallTool{Server: "a", Tool: "work", Caller: caller,
				Arguments: fmt.Appendf(nil, `{"by":%q}`, caller)}, time.Hour)
		}
		var all []actor.Future
		for _, caller := range []string{"x", "x", "x", "y"} {
			all = append(all, send(caller))
			synctest.Wait()
		}
		for _, f := range all {
			got, err := f.Result()
			if reply, ok := got.(*messages.CallToolReply); err != nil || !ok || reply.GetFailure() != nil {
				t.Fatalf("%v %v", got, err)
			}
		}
		if order, _ := s.ran(); fmt.Sprint(order) != "[x x y x]" {
			t.Errorf("%v", order)
		}
	})
}
