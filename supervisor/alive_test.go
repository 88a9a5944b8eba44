package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// far is a transport of this process that says it is a remote one: nothing but silence tells that its peer is gone.
type far struct{ transports.Transport }

func (far) Kind() messages.TransportKind { return messages.HTTP }

// remotely runs a test with one remote server "f", in virtual time, with the default timing: asked after 15 s of silence,
// three times, for 10 s each.
func remotely(t *testing.T, test func(t *testing.T, m *supervisor.Manager, f *fake)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m, err := supervisor.Start(t.Context(), supervisor.Config{
			Servers: map[string]supervisor.Spec{
				"f": {Type: messages.HTTP, URL: "http://example.com/mcp", Era: messages.EraLegacy, CallTimeout: messages.Duration(4 * time.Second)},
			},
			Transport: func(string, supervisor.Spec) (transports.Transport, error) {
				return far{inprocess.New(f.serve)}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(t, m)
		settled(t, m)
		test(t, m, f)
	})
}

func isConnected(t *testing.T, m *supervisor.Manager) bool {
	t.Helper()
	return phase(t, m, "f") == messages.Connected
}

// TestSilenceIsNoticedWithinTheBound: a peer that vanished is given up 45 s after its last message, and not before.
func TestSilenceIsNoticedWithinTheBound(t *testing.T) {
	seeds.Shows(t, "001.1.health-half-open")
	remotely(t, func(t *testing.T, m *supervisor.Manager, f *fake) {
		time.Sleep(7 * time.Second)
		f.say("notifications/unheard-of", `{}`)
		f.set(func(f *fake) { f.mute = true })
		time.Sleep(44 * time.Second)
		if !isConnected(t, m) {
			t.Fatal("given up too early")
		}
		time.Sleep(2 * time.Second)
		if isConnected(t, m) {
			t.Fatal("not noticed within the bound")
		}
		if st, _ := m.ServerStatus("f"); st.Class != messages.ClassTimeout {
			t.Errorf("%+v", st)
		}
		if n := f.pings.Load(); n != 3 {
			t.Errorf("asked %d times", n)
		}
		f.set(func(f *fake) { f.mute = false })
		time.Sleep(2 * time.Minute)
		if !isConnected(t, m) {
			t.Error("not connected again")
		}
	})
}

// TestWhoTalksIsNotAsked: any message is life, so that a server that says something now and then is never asked, whatever
// it leaves unanswered.
func TestWhoTalksIsNotAsked(t *testing.T) {
	remotely(t, func(t *testing.T, m *supervisor.Manager, f *fake) {
		f.set(func(f *fake) { f.deaf = true })
		for range 100 {
			time.Sleep(14 * time.Second)
			f.say("notifications/message", `{"level":"info","data":"busy"}`)
		}
		synctest.Wait()
		if n := f.pings.Load(); n != 0 || !isConnected(t, m) {
			t.Errorf("asked %d times; %v", n, phase(t, m, "f"))
		}
		// One that is silent longer is asked; it does not answer, and says something else: it lives.
		for range 100 {
			time.Sleep(19 * time.Second)
			f.say("notifications/message", `{"level":"info","data":"busy"}`)
		}
		synctest.Wait()
		if n := f.pings.Load(); n == 0 || !isConnected(t, m) {
			t.Errorf("asked %d times; %v", n, phase(t, m, "f"))
		}
	})
}

// TestTimedOutCallsDoNotMarkAServerDown: calls that time out ask for a sign of life, and the sign is what counts.
func TestTimedOutCallsDoNotMarkAServerDown(t *testing.T) {
	remotely(t, func(t *testing.T, m *supervisor.Manager, f *fake) {
		f.set(func(f *fake) {
			f.onCall = func(context.Context, string, json.RawMessage) (string, error) { return "", errors.New("no answer") }
		})
		call := func() {
			t.Helper()
			if _, err := m.CallServerTool(t.Context(), "f", "echo", nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			synctest.Wait()
		}
		call()
		if n := f.pings.Load(); n != 0 {
			t.Errorf("asked %d times after one call", n)
		}
		call()
		if n := f.pings.Load(); n != 1 {
			t.Errorf("asked %d times after two calls", n)
		}
		for range 20 {
			call()
		}
		if st, _ := m.ServerStatus("f"); st.Status != messages.Connected || st.Restarts != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestSilentCallsAskAtOnce: when the peer has vanished, two calls find out before the silence does.
func TestSilentCallsAskAtOnce(t *testing.T) {
	remotely(t, func(t *testing.T, m *supervisor.Manager, f *fake) {
		f.set(func(f *fake) { f.mute = true })
		for range 2 {
			if _, err := m.CallServerTool(t.Context(), "f", "echo", nil); !errors.Is(err, supervisor.ErrOutcomeUnknown) {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := f.pings.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		time.Sleep(31 * time.Second) // 8 s of calls and 30 s of questions: sooner than 45 s
		if isConnected(t, m) {
			t.Error("not noticed")
		}
	})
}

// gruff is a remote transport whose server, once told to, answers every ping with a page that is no message, or with word if
// that is not nil.
type gruff struct {
	far
	refuses *atomic.Bool
	word    error
	pings   *atomic.Int64
}

func (g gruff) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	conn, err := g.far.Dial(ctx, sink)
	return gruffConn{conn, g}, err
}

type gruffConn struct {
	transports.Conn
	gruff
}

func (c gruffConn) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if m.Method == "ping" && c.refuses.Load() {
		c.pings.Add(1)
		time.Sleep(time.Millisecond)
		if c.word != nil {
			return transports.Written, c.word
		}
		return transports.Written, &transports.Error{Class: messages.ClassProtocol, Text: "it answered with text/html"}
	}
	return c.Conn.Send(ctx, m)
}

// TestARefusedQuestionIsNotRepeatedAtOnce: what is no message answers the question too. A server that answers so was asked again
// in the same moment, hundreds of times in a second; the next question comes when it has been silent for as long again.
func TestARefusedQuestionIsNotRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		refuses, pings := new(atomic.Bool), new(atomic.Int64)
		m, err := supervisor.Start(t.Context(), supervisor.Config{
			Servers: map[string]supervisor.Spec{"f": {Type: messages.HTTP, URL: "http://example.com/mcp", Era: messages.EraLegacy}},
			Transport: func(string, supervisor.Spec) (transports.Transport, error) {
				return gruff{far{inprocess.New(f.serve)}, refuses, nil, pings}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(t, m)
		settled(t, m)
		refuses.Store(true)
		time.Sleep(10 * time.Minute)
		if n := pings.Load(); n < 30 || n > 41 {
			t.Errorf("asked %d times in ten minutes, which have 40 times 15 s", n)
		}
		if !isConnected(t, m) {
			t.Error("it answers, so it lives")
		}
	})
}

// TestADisabledServerThatRefusesCredentialsIsAskedAgain: a server that is disabled keeps its connection, whatever its answer to a
// question is. It was never asked again after a refusal, so that the end of its peer was not noticed when it was enabled.
func TestADisabledServerThatRefusesCredentialsIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		refuses, pings := new(atomic.Bool), new(atomic.Int64)
		m, err := supervisor.Start(t.Context(), supervisor.Config{
			Servers: map[string]supervisor.Spec{"f": {Type: messages.HTTP, URL: "http://example.com/mcp", Era: messages.EraLegacy}},
			Transport: func(string, supervisor.Spec) (transports.Transport, error) {
				return gruff{far{inprocess.New(f.serve)}, refuses,
					&transports.Error{Class: messages.ClassUnauthorized, Text: "401"}, pings}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(t, m)
		settled(t, m)
		if err := m.Toggle(t.Context(), "f", false); err != nil {
			t.Fatal(err)
		}
		refuses.Store(true)
		time.Sleep(10 * time.Minute)
		if n := pings.Load(); n < 30 || n > 41 {
			t.Errorf("asked %d times in ten minutes, which have 40 times 15 s", n)
		}
		refuses.Store(false)
		if err := m.Toggle(t.Context(), "f", true); err != nil || !isConnected(t, m) {
			t.Fatal(err, phase(t, m, "f"))
		}
		f.set(func(f *fake) { f.mute = true })
		time.Sleep(time.Minute)
		if isConnected(t, m) {
			t.Error("a minute of silence was not noticed")
		}
	})
}
