package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// TestReadyWaitsForServersThatCome: a server that fails and is tried again is waited for, and its tools are in the catalog when the
// wait ends. A lazy server that rests is ready, and a disabled one counts only where it is named.
func TestReadyWaitsForServersThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, off := newFake("x"), newFake("x")
		slow.set(func(f *fake) { f.refuse = errors.New("not yet") })
		m := start(t, supervisor.Config{}, map[string]*fake{"slow": slow, "off": off})
		if err := m.Toggle(t.Context(), "off", false); err != nil {
			t.Fatal(err)
		}
		const after = 7 * time.Second
		time.AfterFunc(after, func() { slow.set(func(f *fake) { f.refuse = nil }) })
		began := time.Now()
		if err := m.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < after || len(m.Tools().Server("slow")) == 0 {
			t.Errorf("ready after %v with %d tools", took, len(m.Tools().Server("slow")))
		}
		if err := m.Ready(t.Context(), "slow", "off"); !errors.Is(err, supervisor.ErrDisabled) {
			t.Errorf("a disabled server that is named: %v", err)
		}
		if err := m.Ready(t.Context(), "typo"); !errors.Is(err, supervisor.ErrUnknownServer) {
			t.Errorf("a name that no server has: %v", err)
		}
	})
}

// TestReadyEndsWithTheFirstThatCannotCome: a server that waits for a person ends the wait at once, also beside one that is silent, and
// the end of the context names the server that was waited for.
func TestReadyEndsWithTheFirstThatCannotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := newFake("x")
		broken.set(func(f *fake) { f.refuse = errors.New("down") })
		m := start(t, withClosedDoor("closed"), map[string]*fake{"broken": broken})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := m.Ready(ctx)
		var e *supervisor.Error
		if !errors.As(err, &e) || !errors.Is(err, supervisor.ErrNeedsAuth) || !errors.Is(err, supervisor.ErrNotConnected) ||
			e.Server != "closed" || e.Outcome != "" || time.Since(began) > time.Second {
			t.Errorf("after %v: %#v", time.Since(began), err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = m.Ready(ctx, "broken")
		if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, supervisor.ErrNotConnected) ||
			e.Server != "broken" || e.RetryAfter <= 0 {
			t.Errorf("%#v", err)
		}
	})
}

// TestMayRetryFollowsTheServer: a call of a server that is down may be made again at the time of its next attempt, and succeeds
// then; one of a server that waits for a person may not.
func TestMayRetryFollowsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		f.set(func(f *fake) { f.refuse = errors.New("down") })
		m := start(t, withClosedDoor("closed"), map[string]*fake{"a": f})
		settled(t, m)
		time.AfterFunc(10*time.Second, func() { f.set(func(f *fake) { f.refuse = nil }) })
		call := func(server string) (tries int, err error) {
			for {
				tries++
				_, err := m.CallServerTool(t.Context(), server, "x", nil)
				var e *supervisor.Error
				if !errors.As(err, &e) {
					return tries, err
				}
				at, ok := e.MayRetry()
				if !ok {
					return tries, err
				}
				time.Sleep(time.Until(at))
			}
		}
		// Between an attempt and its failure the time of the next one is not known, so that a few calls meet it too early.
		if tries, err := call("a"); err != nil || tries < 2 || tries > 20 || f.calls.Load() != 1 {
			t.Errorf("%d tries, %d calls: %v", tries, f.calls.Load(), err)
		}
		for server, want := range map[string]error{"closed": supervisor.ErrNotConnected, "typo": supervisor.ErrUnknownServer} {
			if tries, err := call(server); tries != 1 || !errors.Is(err, want) {
				t.Errorf("%s: %d tries: %v", server, tries, err)
			}
		}
		if err := m.Toggle(t.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
		if tries, err := call("a"); tries != 1 || !errors.Is(err, supervisor.ErrDisabled) || errors.Is(err, supervisor.ErrNotConnected) {
			t.Errorf("disabled: %d tries: %v", tries, err)
		}
		_ = m.Close(t.Context())
		if tries, err := call("a"); tries != 1 || !errors.Is(err, supervisor.ErrClosed) {
			t.Errorf("closed: %d tries: %v", tries, err)
		}
	})
}

// withClosedDoor is a Config with one server that refuses credentials.
func withClosedDoor(name string) supervisor.Config {
	return supervisor.Config{
		Servers: map[string]supervisor.Spec{name: {Type: messages.HTTP, URL: "http://example.com/mcp"}},
		Transport: func(server string, _ supervisor.Spec) (transports.Transport, error) {
			if server != name {
				return nil, nil
			}
			return refusing{&transports.Error{Class: messages.ClassUnauthorized, Text: "401"}}, nil
		},
	}
}

// refusing is a transport that opens no connection.
type refusing struct{ err error }

func (refusing) Kind() messages.TransportKind { return messages.HTTP }

func (r refusing) Dial(context.Context, transports.Sink) (transports.Conn, error) { return nil, r.err }

// TestSettledTellsOfSpecsThatCannotWork: each of them, with its reason; the others run. A spec that only Config.Transport knows may
// work, until that one says otherwise.
func TestSettledTellsOfSpecsThatCannotWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"empty": {}, "strange": {Type: "carrier-pigeon"}}}
		m := start(t, cfg, map[string]*fake{"works": f})
		var e *supervisor.Error
		err := m.Settled(t.Context(), "empty", "works")
		if !errors.As(err, &e) || !errors.Is(err, supervisor.ErrNotConnected) || e.Server != "empty" || e.Class != messages.ClassConfig {
			t.Errorf("%#v", err)
		}
		if _, ok := e.MayRetry(); ok {
			t.Error("it may be tried again")
		}
		joined, _ := m.Settled(t.Context()).(interface{ Unwrap() []error })
		if joined == nil || len(joined.Unwrap()) != 2 {
			t.Errorf("%v", joined)
		}
		if err := m.Settled(t.Context(), "works"); err != nil || f.calls.Load() != 0 {
			t.Errorf("the one that works: %v", err)
		}
		res, err := m.SetServers(t.Context(), map[string]supervisor.Spec{"late": {}})
		if err != nil || res.Errors["late"] == "" {
			t.Errorf("%v, %v", res, err)
		}
	})
}

// TestASpecThatOnlyTheHookKnows: Config.Transport is asked for a spec that says nothing at all.
func TestASpecThatOnlyTheHookKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"bare": {}, "unknown": {}},
			Transport: func(name string, _ supervisor.Spec) (transports.Transport, error) {
				if name == "bare" {
					return inprocess.New(f.serve), nil
				}
				return nil, nil
			}}, nil)
		err := m.Settled(t.Context())
		var e *supervisor.Error
		if !errors.As(err, &e) || e.Server != "unknown" || e.Class != messages.ClassConfig {
			t.Errorf("%v", err)
		}
		if _, err := m.CallServerTool(t.Context(), "bare", "x", nil); err != nil {
			t.Error(err)
		}
		if err := m.Connect(t.Context(), "bare", supervisor.Spec{}); err != nil {
			t.Error(err)
		}
	})
}
