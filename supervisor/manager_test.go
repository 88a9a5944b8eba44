package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// Concurrency is tested in virtual time: a bubble's clock moves only when every goroutine of it waits, so that what is
// asserted about an order or an absence cannot depend on the machine.

func TestConnectRegistersToolsAndDisconnectRemovesThem(t *testing.T) {
	seeds.Shows(t, "000.0.options-servers", "000.2.type-sdk", "000.2.sdk-name", "000.4.disconnect",
		"004.fr6.connected-servers", "004.e.integration")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo", "add")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"git.hub": {Type: messages.SDK, Name: "hub"}}},
			map[string]*fake{"hub": f})
		settled(t, m)
		if got := m.ConnectedServers(); !slices.Equal(got, []string{"git.hub", "hub"}) {
			t.Fatalf("connected: %v", got)
		}
		if e, ok := m.Tools().Lookup("mcp__hub__echo"); !ok || e.Tool.Name != "echo" {
			t.Fatalf("mcp__hub__echo is not registered: %v", names(m))
		}
		if err := m.Disconnect(t.Context(), "hub"); err != nil {
			t.Fatal(err)
		}
		if got := len(m.Tools().Server("hub")); got != 0 {
			t.Errorf("%d tools are left after Disconnect returned", got)
		}
		st, _ := m.ServerStatus("hub")
		if st.Status != messages.Disabled || st.Warm {
			t.Errorf("after Disconnect: %+v", st)
		}
		_, err := m.CallTool(t.Context(), "mcp__hub__echo", nil)
		if !errors.Is(err, supervisor.ErrNotSent) || !errors.Is(err, supervisor.ErrDisabled) {
			t.Errorf("a call of a withdrawn tool: %v", err)
		}
		_, err = m.CallServerTool(t.Context(), "hub", "echo", nil)
		if !errors.Is(err, supervisor.ErrNotSent) || !errors.Is(err, supervisor.ErrDisabled) {
			t.Errorf("a call of a disabled server: %v", err)
		}
		if err := m.Toggle(t.Context(), "hub", true); err != nil {
			t.Fatal(err)
		}
		if res, err := m.CallTool(t.Context(), "mcp__hub__echo", nil); err != nil || res.Text() != "ok echo" {
			t.Errorf("after Toggle(true): %v %v", res, err)
		}
	})
}

// A disabled server keeps its connection (seed 000: "Disabled servers don't expose tools but maintain connection").
func TestToggleKeepsTheConnectionWarm(t *testing.T) {
	seeds.Shows(t, "000.4.toggle", "000.11.toggle")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		if err := m.Toggle(t.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
		if st, _ := m.ServerStatus("a"); !st.Warm || st.Status != messages.Disabled {
			t.Fatalf("%+v", st)
		}
		if got := names(m); len(got) != 0 {
			t.Errorf("tools of a disabled server: %v", got)
		}
		f.setTools("echo", "new") // only marks it dirty
		time.Sleep(5 * time.Second)
		if n := f.lists.Load(); n != 1 {
			t.Errorf("a disabled server was listed %d times", n)
		}
		if err := m.Toggle(t.Context(), "a", true); err != nil {
			t.Fatal(err)
		}
		if n := f.dials.Load(); n != 1 {
			t.Errorf("dialled %d times: the connection was not kept", n)
		}
		if got := names(m); !slices.Equal(got, []string{"mcp__a__echo", "mcp__a__new"}) {
			t.Errorf("tools after enabling: %v", got)
		}
		// A death while warm schedules nothing.
		if err := m.Toggle(t.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
		f.kill()
		time.Sleep(time.Hour)
		if n := f.dials.Load(); n != 1 {
			t.Errorf("a disabled server was dialled after its death: %d dials", n)
		}
	})
}

func TestReconnectTearsDownAndDialsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		before, _ := m.ServerStatus("a")
		if err := m.Reconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		after, _ := m.ServerStatus("a")
		if f.dials.Load() != 2 || after.Epoch <= before.Epoch || f.mostly.Load() != 1 {
			t.Errorf("dials %d, epochs %d → %d, at most %d at once", f.dials.Load(), before.Epoch, after.Epoch, f.mostly.Load())
		}
		if err := m.Reconnect(t.Context(), "nobody"); !errors.Is(err, supervisor.ErrUnknownServer) {
			t.Errorf("reconnect of an unknown server: %v", err)
		}
		_ = m.Disconnect(t.Context(), "a")
		if err := m.Reconnect(t.Context(), "a"); !errors.Is(err, supervisor.ErrDisabled) {
			t.Errorf("reconnect of a disabled server: %v", err)
		}
	})
}

func TestConnectReturnsTheReason(t *testing.T) {
	seeds.Shows(t, "000.4.connect")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		f.refuse = errors.New("no such luck")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"other": {Type: messages.SDK}}},
			map[string]*fake{"other": newFake(), "bad": f})
		err := m.Connect(t.Context(), "late", supervisor.Spec{Type: messages.SDK, Name: "bad"})
		var e *supervisor.Error
		if !errors.As(err, &e) || e.Server != "late" || e.Class != messages.ClassExited {
			t.Fatalf("Connect: %v", err)
		}
		st, _ := m.ServerStatus("late")
		if st.Status != messages.Failed || st.NextAttempt == nil && st.Retry != "" {
			t.Errorf("%+v", st)
		}
		f.set(func(f *fake) { f.refuse = nil })
		eventually(t, "it connects by itself", func() bool { return phase(t, m, "late") == messages.Connected })

		for _, spec := range []supervisor.Spec{{}, {Type: "carrier pigeon"}, {Type: messages.SDK, Name: "nobody"}, {URL: "ftp://x"}, {Type: messages.Stdio}} {
			if err := m.Connect(t.Context(), "wrong", spec); !errors.Is(err, supervisor.ErrInvalid) {
				t.Errorf("Connect(%+v) = %v", spec, err)
			}
			if m.Server("wrong") != nil {
				t.Errorf("a refused spec left a server behind: %+v", spec)
			}
		}
	})
}

// A silent server must not delay any other one (P4), and its failure says which step had no answer.
func TestSilentServerFailsAtItsBoundAlone(t *testing.T) {
	seeds.Shows(t, "001.7.down-at-startup", "004.nfr2.timeouts", "004.nfr2.degradation")
	synctest.Test(t, func(t *testing.T) {
		silent := newFake()
		silent.mute = true
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"silent": {Type: messages.SDK, ConnectTimeout: supervisor.Duration(7 * time.Second)}}},
			map[string]*fake{"silent": silent, "fine": newFake("echo")})
		begin := time.Now()
		eventually(t, "the healthy one connects", func() bool { return phase(t, m, "fine") == messages.Connected })
		if took := time.Since(begin); took > time.Second {
			t.Errorf("the healthy server waited %v", took)
		}
		eventually(t, "the silent one fails", func() bool { return phase(t, m, "silent") == messages.Failed })
		if took := time.Since(begin); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("failed after %v, its bound is 7 s", took)
		}
		st, _ := m.ServerStatus("silent")
		if st.Class != messages.ClassTimeout || !strings.Contains(st.Error, "initialize") {
			t.Errorf("%q %q", st.Class, st.Error)
		}
	})
}

func TestSetServersDiffs(t *testing.T) {
	seeds.Shows(t, "000.4.set-servers", "000.5.added", "000.5.removed", "000.5.errors", "000.11.set-servers",
		"004.f.hot-add-remove")
	synctest.Test(t, func(t *testing.T) {
		a, b, c := newFake("x"), newFake("x"), newFake("x")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"configured": {Type: messages.SDK, Name: "c"}}},
			map[string]*fake{"c": c})
		_ = m
		cfg := map[string]*fake{"a": a, "b": b, "c": c}
		m2 := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"a": {Type: messages.SDK, Disabled: true}, "b": {Type: messages.SDK, Disabled: true}, "c": {Type: messages.SDK}}}, cfg)
		settled(t, m2)
		set := func(specs map[string]supervisor.Spec) supervisor.SetServersResult {
			res, err := m2.SetServers(t.Context(), specs)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		res := set(map[string]supervisor.Spec{"one": {Type: messages.SDK, Name: "a"}, "two": {Type: messages.SDK, Name: "b"}, "bad": {}})
		if !slices.Equal(res.Added, []string{"one", "two"}) || len(res.Removed) != 0 || res.Errors["bad"] == "" {
			t.Fatalf("first: %+v", res)
		}
		settled(t, m2)
		before, _ := m2.ServerStatus("one")
		res = set(map[string]supervisor.Spec{"one": {Type: messages.SDK, Name: "a"}, "three": {Type: messages.SDK, Name: "b"}})
		if !slices.Equal(res.Added, []string{"three"}) || !slices.Equal(res.Removed, []string{"two"}) || len(res.Errors) != 0 {
			t.Fatalf("second: %+v", res)
		}
		settled(t, m2)
		if after, _ := m2.ServerStatus("one"); after.Epoch != before.Epoch {
			t.Error("an unchanged server lost its connection")
		}
		if phase(t, m2, "c") != messages.Connected {
			t.Error("SetServers touched a configured server")
		}
		res = set(map[string]supervisor.Spec{"one": {Type: messages.SDK, Name: "b"}})
		if !slices.Equal(res.Added, []string{"one"}) || !slices.Equal(res.Removed, []string{"one", "three"}) {
			t.Fatalf("a changed spec stands in both lists: %+v", res)
		}
		raw, _ := json.Marshal(set(map[string]supervisor.Spec{}))
		if string(raw) != `{"added":[],"removed":["one"],"errors":{}}` {
			t.Errorf("JSON: %s", raw)
		}
		eventually(t, "it is gone", func() bool { return m2.Server("one") == nil })
	})
}

// "Re-adding a name waits for the old connection's close": never two connections of one server (I6).
func TestReAddingWaitsForTheOldConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		f.onCall = func(ctx context.Context, _ string, _ json.RawMessage) (string, error) {
			time.Sleep(2 * time.Second)
			return "slow", nil
		}
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"f": {Type: messages.SDK, Disabled: true}}}, map[string]*fake{"f": f})
		spec := supervisor.Spec{Type: messages.SDK, Name: "f"}
		if err := m.Connect(t.Context(), "r", spec); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := m.CallServerTool(t.Context(), "r", "x", nil)
			done <- err
		}()
		synctest.Wait()
		if err := m.Remove(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		if len(m.Tools().Server("r")) != 0 {
			t.Error("tools after Remove")
		}
		if err := m.Connect(t.Context(), "r", spec); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("the admitted call did not finish: %v", err)
		}
		if f.mostly.Load() != 1 {
			t.Errorf("%d connections at once", f.mostly.Load())
		}
		if err := m.Remove(t.Context(), "f"); !errors.Is(err, supervisor.ErrInvalid) {
			t.Errorf("removing a configured server: %v", err)
		}
	})
}

// A set says which servers there are, and not which of them are enabled: what it finds with the same spec stays as it is, also
// where the removal of the one before has not ended, so that the commands before it wait.
func TestASetLeavesADisabledServerDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := tardy(newFake("x"), 2*time.Second)
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"f": {Type: messages.SDK, Disabled: true}}}, map[string]*fake{"f": f})
		set := map[string]supervisor.Spec{"r": {Type: messages.SDK, Name: "f"}}
		if err := m.Connect(t.Context(), "r", set["r"]); err != nil {
			t.Fatal(err)
		}
		for _, waits := range []bool{false, true} {
			answers := make(chan error, 2)
			if waits {
				admitted := call(t, m, "r", "x") // the removal waits for it
				if err := m.Remove(t.Context(), "r"); err != nil {
					t.Fatal(err)
				}
				go func() { answers <- m.Connect(t.Context(), "r", set["r"]) }()
				synctest.Wait()
				defer func() { <-admitted }()
			} else {
				answers <- nil
			}
			go func() { answers <- m.Toggle(t.Context(), "r", false) }()
			synctest.Wait()
			if _, err := m.SetServers(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(<-answers, <-answers); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if got := phase(t, m, "r"); got != messages.Disabled {
				t.Errorf("the commands wait %v: disabled, and then part of a set with the same spec, it is %s", waits, got)
			}
			if err := m.Toggle(t.Context(), "r", true); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestListChangedStormIsCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("t0")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		for range 1000 {
			f.setTools("t0", "t1")
		}
		f.setTools("t0", "t1", "last")
		eventually(t, "the last change shows", func() bool { _, ok := m.Tools().Lookup("mcp__a__last"); return ok })
		time.Sleep(5 * time.Second)
		if n := f.lists.Load(); n > 3 {
			t.Errorf("%d lists for one burst, want the first and at most two", n)
		}
		if err := m.Refresh(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	})
}

// A server that announces a change whenever it is listed is not listed for ever without a pause, and its true changes show
// as soon as ever once it has held its peace.
func TestAChangeForEveryListIsNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("t0")
		f.echoes = true
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		time.Sleep(time.Minute)
		if n := f.lists.Load(); n > 75 || n < 10 {
			t.Errorf("%d lists in a minute of false news, want about one a second", n)
		}
		f.setTools("t0", "while-it-talks")
		time.Sleep(1100 * time.Millisecond)
		if _, ok := m.Tools().Lookup("mcp__a__while-it-talks"); !ok {
			t.Error("a true change among false ones does not show within MaxWait")
		}
		f.set(func(f *fake) { f.echoes = false })
		time.Sleep(10 * time.Second)
		f.setTools("t0", "afterwards")
		time.Sleep(60 * time.Millisecond)
		if _, ok := m.Tools().Lookup("mcp__a__afterwards"); !ok {
			t.Error("the change of a server that held its peace does not show after Quiet")
		}
	})
}

func TestWatchSeesPhasesToolsAndCallsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, Disabled: true}}}, map[string]*fake{"a": f})
		settled(t, m)
		w := m.Watch(0)
		if err := m.Toggle(t.Context(), "a", true); err != nil {
			t.Fatal(err)
		}
		if _, err := m.CallTool(t.Context(), "mcp__a__echo", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.Close()
		var got []string
		var last uint64
		for e := range w.Events(t.Context()) {
			if e.Seq <= last {
				t.Errorf("sequence %d after %d", e.Seq, last)
			}
			last = e.Seq
			text := string(e.Kind)
			if e.Status != nil {
				text += " " + string(e.Status.Status) + " " + string(e.Status.Step)
			}
			got = append(got, strings.TrimSpace(text))
		}
		want := []string{"phase pending queued", "phase pending dialing", "phase pending handshaking", "phase pending listing",
			"tools", "phase connected", "call-started", "call-ended"}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		small := m.Watch(2)
		for range 5 {
			_, _ = m.CallTool(t.Context(), "mcp__a__echo", nil)
		}
		e, err := small.Next(t.Context())
		if err != nil || e.Kind != messages.EventGap || e.Missed != 8 {
			t.Errorf("a slow watcher saw %+v, %v", e, err)
		}
		small.Close()
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		m, err := supervisor.Start(t.Context(), supervisor.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_ = f
		before := m.IsClosed()
		closeAll(t, m)
		closeAll(t, m) // idempotent
		if before || !m.IsClosed() {
			t.Errorf("IsClosed: %t before Close, %t behind it", before, m.IsClosed())
		}
		if err := m.Connect(t.Context(), "a", supervisor.Spec{Type: messages.SDK}); !errors.Is(err, supervisor.ErrClosed) {
			t.Errorf("Connect after Close: %v", err)
		}
		if _, err := m.CallTool(t.Context(), "mcp__a__x", nil); !errors.Is(err, supervisor.ErrClosed) || !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("CallTool after Close: %v", err)
		}
	})
}
