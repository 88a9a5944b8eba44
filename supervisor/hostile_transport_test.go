package supervisor_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports"
)

// misdeedTransport is a transport of the program that does something wrong at one place, once.
type misdeedTransport struct {
	transports.Transport
	place string
	do    func()
	err   error
}

type misdeedConn struct {
	transports.Conn
	owner *misdeedTransport
	sink  transports.Sink
}

func (x *misdeedTransport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	x.misbehave("dial")
	conn, err := x.Transport.Dial(ctx, sink)
	return misdeedConn{conn, x, sink}, err
}

func (x *misdeedTransport) misbehave(place string) {
	if x.place == place {
		x.place = ""
		x.do()
	}
}

func (c misdeedConn) Negotiated(version string) {
	c.owner.misbehave("negotiated")
	c.Conn.Negotiated(version)
}

func (c misdeedConn) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if m.Method == "tools/call" {
		switch c.owner.place {
		case "send":
			c.owner.misbehave("send")
		case "error":
			return transports.MaybeWritten, c.owner.err
		case "down":
			c.owner.place = ""
			c.sink.Down(c.owner.err)
		}
	}
	return c.Conn.Send(ctx, m)
}

// TestATransportThatMisbehavesHarmsNobody: a Send that panicked, or returned a nil *transports.Error, took its caller with it, and a dial that
// ended its goroutine left its server dialling for ever.
func TestATransportThatMisbehavesHarmsNobody(t *testing.T) {
	var none *transports.Error
	for name, test := range map[string]struct {
		misdeed misdeedTransport
		// early says that it is done before the server is connected; text is in the error of the call, or in the reason of the failure.
		early bool
		text  string
	}{
		"Dial ends its goroutine":        {misdeedTransport{place: "dial", do: runtime.Goexit}, true, "ended during dial (runtime.Goexit)"},
		"Negotiated ends its goroutine":  {misdeedTransport{place: "negotiated", do: runtime.Goexit}, true, "ended during handshake (runtime.Goexit)"},
		"Negotiated panics":              {misdeedTransport{place: "negotiated", do: func() { panic("ouch") }}, true, "panic during handshake: ouch"},
		"Send panics":                    {misdeedTransport{place: "send", do: func() { panic("ouch") }}, false, "the transport's Send panicked: ouch"},
		"Send returns a nil error":       {misdeedTransport{place: "error", err: none}, false, "a nil *transports.Error"},
		"Send returns an unreadable one": {misdeedTransport{place: "error", err: unreadableError{}}, false, "an error that cannot be read"},
		"Down gets a nil error":          {misdeedTransport{place: "down", err: none}, false, "a nil *transports.Error"},
		"Down gets an unreadable one":    {misdeedTransport{place: "down", err: unreadableError{}}, false, "an error that cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := test.misdeed
				bad, good := supervisortest.NewServer("bad", supervisortest.Echo("x")), supervisortest.NewServer("good", supervisortest.Echo("x"))
				m := supervisortest.StartConfig(t, supervisor.Config{
					Wrap: func(server string, _ supervisor.Spec, inner transports.Transport) transports.Transport {
						if server != "bad" {
							return nil
						}
						x.Transport = inner
						return &x
					},
				}, bad, good)
				if test.early {
					synctest.Wait()
					if st, err := m.ServerStatus("bad"); err != nil || !strings.Contains(st.Error, test.text) {
						t.Errorf("it is %s, %q, %v", st.Status, st.Error, err)
					}
				} else {
					_, err := m.CallServerTool(t.Context(), "bad", "x", nil)
					var e *supervisor.Error
					// A connection that is down before its Send has begun has sent nothing.
					mayBeUnsent := test.misdeed.place == "down" && errors.Is(err, supervisor.ErrNotSent)
					if !errors.As(err, &e) || e.Outcome != messages.OutcomeUnknown && !mayBeUnsent || e.Server != "bad" || !strings.Contains(err.Error(), test.text) {
						t.Errorf("the call: %v", err)
					}
				}
				if _, err := m.CallServerTool(t.Context(), "good", "x", nil); err != nil {
					t.Errorf("the other server: %v", err)
				}
				x.place = ""
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				if err := m.Ready(ctx, "bad"); err != nil {
					t.Error(err)
				}
				if _, err := m.CallServerTool(t.Context(), "bad", "x", nil); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		})
	}
}

// unreadableError is an error whose text panics.
type unreadableError struct{}

func (unreadableError) Error() string { panic("no text") }

// TestASendThatEndsItsGoroutine: the caller's goroutine cannot be kept, but its server connects again, and the manager closes.
func TestASendThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &misdeedTransport{place: "send", do: runtime.Goexit}
		bad := supervisortest.NewServer("bad", supervisortest.Echo("x"))
		m := supervisortest.StartConfig(t, supervisor.Config{
			Wrap: func(_ string, _ supervisor.Spec, inner transports.Transport) transports.Transport {
				x.Transport = inner
				return x
			},
		}, bad)
		go func() { _, _ = m.CallServerTool(context.WithoutCancel(t.Context()), "bad", "x", nil) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := m.Ready(ctx, "bad"); err != nil {
			t.Error(err)
		}
		if _, err := m.CallServerTool(t.Context(), "bad", "x", nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		if n := bad.Connections(); n != 2 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestActorOptionsThatDoNotCome: Start waited for ever for a Config.ActorOptions that ended its goroutine.
func TestActorOptionsThatDoNotCome(t *testing.T) {
	for name, do := range misdeeds(t) {
		t.Run(name, func(t *testing.T) {
			m := supervisortest.StartConfig(t, supervisor.Config{
				ActorOptions: func(string) []actor.PropsOption { do(); return nil },
			}, supervisortest.NewServer("files", supervisortest.Echo("x")))
			if _, err := m.CallServerTool(t.Context(), "files", "x", nil); err != nil {
				t.Error(err)
			}
		})
	}
}
