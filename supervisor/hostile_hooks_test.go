package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/stream"
)

// badTransport is a transport of which every method does what the test says.
type badTransport struct {
	dial func(ctx context.Context) (transports.Conn, error)
	kind func() messages.TransportKind
}

func (b *badTransport) Kind() messages.TransportKind {
	if b.kind != nil {
		return b.kind()
	}
	return "bad"
}

func (b *badTransport) Dial(ctx context.Context, _ transports.Sink) (transports.Conn, error) {
	return b.dial(ctx)
}

// badConn is a connection that takes everything and answers nothing, unless send says otherwise.
type badConn struct {
	released chan struct{}
	send     func(ctx context.Context) (transports.Delivery, error)
	close    func() error
	info     func() transports.Info
}

func (c *badConn) Send(ctx context.Context, _ transports.Message) (transports.Delivery, error) {
	return c.send(ctx)
}
func (c *badConn) Negotiated(string)           {}
func (c *badConn) Close(context.Context) error { return c.close() }
func (c *badConn) Released() <-chan struct{}   { return c.released }

func (c *badConn) Info() transports.Info {
	if c.info != nil {
		return c.info()
	}
	return transports.Info{}
}

// silentStream takes what is written and never says anything: half of a stream.
type silentStream struct{ closed chan struct{} }

func (s silentStream) Read([]byte) (int, error)    { <-s.closed; return 0, io.EOF }
func (s silentStream) Write(p []byte) (int, error) { return len(p), nil }
func (s silentStream) Close() error                { close(s.closed); return nil }

// panickingError is an error that cannot be read.
type panickingError struct{}

func (panickingError) Error() string { panic("ouch") }

// panickingCore is the core of a logger that panics whatever it is asked.
type panickingCore struct{ zapcore.LevelEnabler }

func (panickingCore) With([]zapcore.Field) zapcore.Core                                { panic("ouch") }
func (panickingCore) Check(zapcore.Entry, *zapcore.CheckedEntry) *zapcore.CheckedEntry { panic("ouch") }
func (panickingCore) Write(zapcore.Entry, []zapcore.Field) error                       { panic("ouch") }
func (panickingCore) Sync() error                                                      { panic("ouch") }

// stuckWriter is the file of a log that takes nothing before the channel is closed.
type stuckWriter struct{ stuck <-chan struct{} }

func (w stuckWriter) Write(p []byte) (int, error) { <-w.stuck; return len(p), nil }
func (w stuckWriter) Sync() error                 { return nil }

// TestHooksThatBehaveBadly: a function of the program that panics, returns nothing, does not return or lies costs the calls of its own
// server a typed error that names the server. The other server goes on, and the manager closes.
func TestHooksThatBehaveBadly(t *testing.T) {
	onlyBad := func(f func() (transports.Transport, error)) func(string, supervisor.Spec) (transports.Transport, error) {
		return func(name string, _ supervisor.Spec) (transports.Transport, error) {
			if name != "bad" {
				return nil, nil
			}
			return f()
		}
	}
	dials := func(f func(ctx context.Context) (transports.Conn, error)) func(*supervisor.Config, <-chan struct{}) {
		return func(c *supervisor.Config, _ <-chan struct{}) {
			c.Transport = onlyBad(func() (transports.Transport, error) { return &badTransport{dial: f}, nil })
		}
	}
	conns := func(change func(c *badConn, stuck <-chan struct{})) func(*supervisor.Config, <-chan struct{}) {
		return func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Transport = onlyBad(func() (transports.Transport, error) {
				return &badTransport{dial: func(context.Context) (transports.Conn, error) {
					conn := &badConn{released: make(chan struct{}),
						send: func(context.Context) (transports.Delivery, error) { return transports.Written, nil }}
					release := sync.OnceFunc(func() { close(conn.released) })
					conn.close = func() error { release(); return nil }
					change(conn, stuck)
					go func() { <-stuck; release() }() // what is left behind ends with the test
					return conn, nil
				}}, nil
			})
		}
	}
	streams := func(open func() (io.ReadWriteCloser, error)) func(*supervisor.Config, <-chan struct{}) {
		return func(c *supervisor.Config, _ <-chan struct{}) {
			c.Transport = onlyBad(func() (transports.Transport, error) {
				return stream.New(func(context.Context) (io.ReadWriteCloser, error) { return open() }), nil
			})
		}
	}
	interceptsBad := func(i supervisor.Interceptor) func(*supervisor.Config, <-chan struct{}) {
		return func(c *supervisor.Config, _ <-chan struct{}) {
			c.Interceptors = []supervisor.Interceptor{func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
				if r.Server != "bad" {
					return next(ctx, r)
				}
				return i(ctx, r, next)
			}}
		}
	}
	allows := func(f func(ctx context.Context, stuck <-chan struct{}) error) func(*supervisor.Config, <-chan struct{}) {
		return func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Allow = func(ctx context.Context, tool *supervisor.Tool, _ json.RawMessage) error {
				if tool.Server != "bad" {
					return nil
				}
				return f(ctx, stuck)
			}
		}
	}
	// The options are those of the one server's actor, which is down for another reason, so that its calls have an error.
	actorOptions := func(f func() []actor.PropsOption) func(*supervisor.Config, <-chan struct{}) {
		return func(c *supervisor.Config, _ <-chan struct{}) {
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { return errors.New("down") }
			c.ActorOptions = func(name string) []actor.PropsOption {
				if name != "server/bad" {
					return nil
				}
				return f()
			}
		}
	}
	never := func(ctx context.Context, _ *supervisor.Request, _ supervisor.Invoker) (*supervisor.Response, error) {
		return nil, nil
	}
	lie := &supervisor.Error{Op: "call", Outcome: messages.OutcomeUnknown, Class: messages.ClassNetwork, Server: "good", Text: "it may have run"}

	for name, c := range map[string]struct {
		hook func(c *supervisor.Config, stuck <-chan struct{})
		// want is what the call of the server ends as; calls is how often its tool ran.
		want  error
		calls int
	}{
		"a transport that panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Transport = onlyBad(func() (transports.Transport, error) { panic("ouch") })
		}, supervisor.ErrNotConnected, 0},
		"a transport that does not come": {func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Transport = onlyBad(func() (transports.Transport, error) { <-stuck; return nil, nil })
		}, supervisor.ErrNotConnected, 0},
		"a transport that is a nil pointer": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Transport = onlyBad(func() (transports.Transport, error) { return (*badTransport)(nil), nil })
		}, supervisor.ErrNotConnected, 0},
		"a transport that lies about its error": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Transport = onlyBad(func() (transports.Transport, error) { return nil, lie })
		}, supervisor.ErrNotConnected, 0},
		"a transport whose error panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Transport = onlyBad(func() (transports.Transport, error) { return nil, panickingError{} })
		}, supervisor.ErrNotConnected, 0},
		"a dial whose error panics":   {dials(func(context.Context) (transports.Conn, error) { return nil, panickingError{} }), supervisor.ErrNotConnected, 0},
		"a stream whose error panics": {streams(func() (io.ReadWriteCloser, error) { return nil, panickingError{} }), supervisor.ErrNotConnected, 0},
		"a server function whose error panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { return panickingError{} }
		}, supervisor.ErrNotConnected, 0},
		"a connection whose error panics": {conns(func(c *badConn, _ <-chan struct{}) {
			c.send = func(context.Context) (transports.Delivery, error) { return transports.NotWritten, panickingError{} }
		}), supervisor.ErrNotConnected, 0},
		"a logger that panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Logger = zap.New(panickingCore{zapcore.DebugLevel})
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { panic("ouch") }
		}, supervisor.ErrNotConnected, 0},
		"a logger that does not return": {func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Logger = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), stuckWriter{stuck}, zapcore.DebugLevel))
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { panic("ouch") }
		}, supervisor.ErrNotConnected, 0},
		"a logger that ends its goroutine": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Logger = zap.New(zapcore.RegisterHooks(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(io.Discard), zapcore.DebugLevel),
				func(zapcore.Entry) error { runtime.Goexit(); return nil }))
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { panic("ouch") }
		}, supervisor.ErrNotConnected, 0},
		"options of an actor that panic":    {actorOptions(func() []actor.PropsOption { panic("ouch") }), supervisor.ErrNotConnected, 0},
		"an option of an actor that is nil": {actorOptions(func() []actor.PropsOption { return []actor.PropsOption{nil} }), supervisor.ErrNotConnected, 0},
		"an option of an actor that panics": {actorOptions(func() []actor.PropsOption {
			return []actor.PropsOption{func(*actor.Props) { panic("ouch") }}
		}), supervisor.ErrNotConnected, 0},
		"a kind that panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Transport = onlyBad(func() (transports.Transport, error) {
				return &badTransport{kind: func() messages.TransportKind { panic("ouch") }}, nil
			})
		}, supervisor.ErrNotConnected, 0},
		"a decorator that panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Wrap = func(name string, _ supervisor.Spec, t transports.Transport) transports.Transport {
				if name == "bad" {
					panic("ouch")
				}
				return nil
			}
		}, supervisor.ErrNotConnected, 0},
		"a decorator that does not return": {func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Wrap = func(name string, _ supervisor.Spec, t transports.Transport) transports.Transport {
				if name == "bad" {
					<-stuck
				}
				return nil
			}
		}, supervisor.ErrNotConnected, 0},
		"a dial that panics":          {dials(func(context.Context) (transports.Conn, error) { panic("ouch") }), supervisor.ErrNotConnected, 0},
		"a dial that returns nothing": {dials(func(context.Context) (transports.Conn, error) { return nil, nil }), supervisor.ErrNotConnected, 0},
		"a dial that does not return": {func(c *supervisor.Config, stuck <-chan struct{}) {
			dials(func(context.Context) (transports.Conn, error) { <-stuck; return nil, errors.New("too late") })(c, nil)
		}, supervisor.ErrNotConnected, 0},
		"a dial that returns a nil pointer": {dials(func(context.Context) (transports.Conn, error) { return (*badConn)(nil), nil }), supervisor.ErrNotConnected, 0},
		"a connection whose Info panics": {conns(func(c *badConn, _ <-chan struct{}) {
			c.info = func() transports.Info { panic("ouch") }
		}), supervisor.ErrNotConnected, 0},
		"a connection that answers nothing": {conns(func(*badConn, <-chan struct{}) {}), supervisor.ErrNotConnected, 0},
		"a connection whose Send panics": {conns(func(c *badConn, _ <-chan struct{}) {
			c.send = func(context.Context) (transports.Delivery, error) { panic("ouch") }
		}), supervisor.ErrNotConnected, 0},
		"a connection whose Send does not return": {conns(func(c *badConn, stuck <-chan struct{}) {
			c.send = func(context.Context) (transports.Delivery, error) { <-stuck; return transports.Written, nil }
		}), supervisor.ErrNotConnected, 0},
		"a connection whose Close panics": {conns(func(c *badConn, _ <-chan struct{}) {
			c.close = func() error { panic("ouch") }
		}), supervisor.ErrNotConnected, 0},
		"a connection that is never released": {conns(func(c *badConn, stuck <-chan struct{}) {
			c.close = func() error { return nil }
		}), supervisor.ErrNotConnected, 0},
		"a connection whose Close does not return": {conns(func(c *badConn, stuck <-chan struct{}) {
			c.close = func() error { <-stuck; return nil }
		}), supervisor.ErrNotConnected, 0},
		"a stream that is open to one side": {streams(func() (io.ReadWriteCloser, error) {
			return silentStream{make(chan struct{})}, nil
		}), supervisor.ErrNotConnected, 0},
		"a stream that is none": {streams(func() (io.ReadWriteCloser, error) { return nil, nil }), supervisor.ErrNotConnected, 0},
		"a server function that panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { panic("ouch") }
		}, supervisor.ErrNotConnected, 0},
		"a server function that returns": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { return nil }
		}, supervisor.ErrNotConnected, 0},
		"a server function that does not return": {func(c *supervisor.Config, stuck <-chan struct{}) {
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { <-stuck; return nil }
		}, supervisor.ErrNotConnected, 0},
		"randomness that panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Rand = func() float64 { panic("ouch") }
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { return errors.New("down") }
		}, supervisor.ErrNotConnected, 0},
		"a search path that does not return": {func(c *supervisor.Config, stuck <-chan struct{}) {
			c.CacheDir, c.Servers["bad"] = t.TempDir(), supervisor.Spec{Command: "bad", Connect: messages.Lazy}
			c.SearchPath = func() string { <-stuck; return "" }
		}, supervisor.ErrNotSent, 0},
		"a search path that panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.CacheDir, c.Servers["bad"] = t.TempDir(), supervisor.Spec{Command: "bad", Connect: messages.Lazy}
			c.SearchPath = func() string { panic("ouch") }
		}, supervisor.ErrNotSent, 0},
		"variables that do not return": {func(c *supervisor.Config, stuck <-chan struct{}) {
			c.CacheDir, c.Servers["bad"] = t.TempDir(), supervisor.Spec{URL: "http://127.0.0.1:1/mcp", Connect: messages.Lazy,
				Auth: &supervisor.Auth{Type: "bearer", FromEnv: "TOKEN"}}
			c.LookupEnv = func(string) (string, bool) { <-stuck; return "", false }
		}, supervisor.ErrNotSent, 0},
		"variables that panic": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.CacheDir, c.Servers["bad"] = t.TempDir(), supervisor.Spec{URL: "http://127.0.0.1:1/mcp", Connect: messages.Lazy,
				Auth: &supervisor.Auth{Type: "bearer", FromEnv: "TOKEN"}}
			c.LookupEnv = func(string) (string, bool) { panic("ouch") }
		}, supervisor.ErrNotSent, 0},
		"randomness that does not return": {func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Rand = func() float64 { <-stuck; return 0.5 }
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { return errors.New("down") }
		}, supervisor.ErrNotConnected, 0},
		"randomness that ends its goroutine": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Rand = func() float64 { runtime.Goexit(); return 0.5 }
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { return errors.New("down") }
		}, supervisor.ErrNotConnected, 0},
		"randomness that is none": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Rand = func() float64 { return math.NaN() }
			c.InProcess["bad"] = func(context.Context, inprocess.Peer) error { return errors.New("down") }
		}, supervisor.ErrNotConnected, 0},
		"an Allow that panics": {allows(func(context.Context, <-chan struct{}) error { panic("ouch") }), supervisor.ErrDenied, 0},
		"an Allow that lies":   {allows(func(context.Context, <-chan struct{}) error { return lie }), supervisor.ErrDenied, 0},
		"an Allow that comes too late": {allows(func(ctx context.Context, _ <-chan struct{}) error {
			<-ctx.Done()
			return nil
		}), context.DeadlineExceeded, 0},
		"an Allow that does not return": {allows(func(_ context.Context, stuck <-chan struct{}) error {
			<-stuck
			return nil
		}), context.DeadlineExceeded, 0},
		"an Allow whose error panics": {allows(func(context.Context, <-chan struct{}) error { return panickingError{} }), supervisor.ErrDenied, 0},
		"a question whose error panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Access = access.Rules{Own: access.Set{Rules: []access.Rule{access.MustParse(access.Ask, "bad:*")}}}
			c.Ask = func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
				return supervisor.AskOnce, panickingError{}
			}
		}, supervisor.ErrDenied, 0},
		"a question that panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Access = access.Rules{Own: access.Set{Rules: []access.Rule{access.MustParse(access.Ask, "bad:*")}}}
			c.Ask = func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) { panic("ouch") }
		}, supervisor.ErrDenied, 0},
		"a question without an answer": {func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Access = access.Rules{Own: access.Set{Rules: []access.Rule{access.MustParse(access.Ask, "bad:*")}}}
			c.Ask = func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
				<-stuck
				return supervisor.AskOnce, nil
			}
		}, supervisor.ErrNotSent, 0},
		"a question with an empty answer": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Access = access.Rules{Own: access.Set{Rules: []access.Rule{access.MustParse(access.Ask, "bad:*")}}}
			c.Ask = func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) { return "", nil }
		}, supervisor.ErrDenied, 0},
		"an interceptor that returns nothing": {interceptsBad(never), supervisor.ErrDenied, 0},
		"an interceptor that lies": {interceptsBad(func(context.Context, *supervisor.Request, supervisor.Invoker) (*supervisor.Response, error) {
			return nil, lie
		}), supervisor.ErrDenied, 0},
		"an interceptor whose error panics": {interceptsBad(func(context.Context, *supervisor.Request, supervisor.Invoker) (*supervisor.Response, error) {
			return nil, panickingError{}
		}), supervisor.ErrDenied, 0},
		"an interceptor that returns more than an object": {interceptsBad(func(context.Context, *supervisor.Request, supervisor.Invoker) (*supervisor.Response, error) {
			return &supervisor.Response{Result: json.RawMessage(`{"content":[]} and more`)}, nil
		}), supervisor.ErrDenied, 0},
		"an interceptor that spoils the answer": {interceptsBad(func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			res, err := next(ctx, r)
			if err == nil {
				res.Result = json.RawMessage(`{"content":`)
			}
			return res, err
		}), supervisor.ErrOutcomeUnknown, 1},
		"an interceptor that sends twice and fails": {interceptsBad(func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			_, _ = next(ctx, r)
			_, _ = next(ctx, r)
			return nil, errors.New("no")
		}), supervisor.ErrOutcomeUnknown, 2},
		"an interceptor that ends its goroutine": {interceptsBad(func(context.Context, *supervisor.Request, supervisor.Invoker) (*supervisor.Response, error) {
			runtime.Goexit()
			return nil, nil
		}), supervisor.ErrDenied, 0},
		"an interceptor that does not return before it sends": {func(c *supervisor.Config, stuck <-chan struct{}) {
			interceptsBad(func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
				<-stuck
				return next(context.WithoutCancel(ctx), r) // the call has ended: nothing may be sent any more
			})(c, nil)
		}, supervisor.ErrNotSent, 0},
		"an interceptor that does not return after the answer": {func(c *supervisor.Config, stuck <-chan struct{}) {
			interceptsBad(func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
				res, err := next(ctx, r)
				<-stuck
				return res, err
			})(c, nil)
		}, supervisor.ErrOutcomeUnknown, 1},
		"an interceptor that does not return after a refusal": {func(c *supervisor.Config, stuck <-chan struct{}) {
			interceptsBad(func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
				r.Name = "unknown"
				res, err := next(ctx, r)
				<-stuck
				return res, err
			})(c, nil)
		}, supervisor.ErrUnknownTool, 0},
		"an interceptor that waits longer than its caller": {interceptsBad(func(_ context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			r.Name = "slow"
			return next(context.Background(), r)
		}), supervisor.ErrOutcomeUnknown, 1},
		"an interceptor that sends without a context": {interceptsBad(func(_ context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			return next(nil, r)
		}), supervisor.ErrNotSent, 0},
		"an interceptor that sends no request": {interceptsBad(func(ctx context.Context, _ *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			return next(ctx, nil)
		}), supervisor.ErrNotSent, 0},
		"an interceptor that sends a request without a name": {interceptsBad(func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			r.Server, r.Name = "", ""
			return next(ctx, r)
		}), supervisor.ErrNotSent, 0},
		"an interceptor that returns before next": {interceptsBad(func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			r.Name = "slow"
			go func() { _, _ = next(ctx, r) }()
			time.Sleep(time.Second)
			return nil, errors.New("enough")
		}), supervisor.ErrOutcomeUnknown, 1},
		"an interceptor that sends after it has returned": {interceptsBad(func(_ context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			time.AfterFunc(time.Second, func() { _, _ = next(context.Background(), r) })
			return nil, errors.New("later")
		}), supervisor.ErrNotSent, 0},
		"an interceptor that sends again what was answered": {interceptsBad(func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			_, _ = next(ctx, r)
			r.Name = "unknown"
			return next(ctx, r)
		}), supervisor.ErrOutcomeUnknown, 1},
		"an Allow that ends its goroutine": {allows(func(context.Context, <-chan struct{}) error {
			runtime.Goexit()
			return nil
		}), supervisor.ErrDenied, 0},
		"a Sanitize that does not return": {func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Sanitize = func(tool *supervisor.Tool, result json.RawMessage) json.RawMessage {
				if tool.Server == "bad" {
					<-stuck
				}
				return result
			}
		}, supervisor.ErrOutcomeUnknown, 1},
		"a Sanitize that ends its goroutine": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Sanitize = func(tool *supervisor.Tool, result json.RawMessage) json.RawMessage {
				if tool.Server == "bad" {
					runtime.Goexit()
				}
				return result
			}
		}, supervisor.ErrOutcomeUnknown, 1},
		"a Sanitize that panics": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Sanitize = func(tool *supervisor.Tool, result json.RawMessage) json.RawMessage {
				if tool.Server == "bad" {
					panic("ouch")
				}
				return result
			}
		}, supervisor.ErrOutcomeUnknown, 1},
		"a Sanitize that returns more than an object": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Sanitize = func(tool *supervisor.Tool, result json.RawMessage) json.RawMessage {
				if tool.Server == "bad" {
					return json.RawMessage(`{"content":[]} and more`)
				}
				return result
			}
		}, supervisor.ErrOutcomeUnknown, 1},
		"a Sanitize that returns nothing": {func(c *supervisor.Config, _ <-chan struct{}) {
			c.Sanitize = func(tool *supervisor.Tool, result json.RawMessage) json.RawMessage {
				if tool.Server == "bad" {
					return nil
				}
				return result
			}
		}, supervisor.ErrOutcomeUnknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := supervisortest.Func("slow", func(context.Context, supervisortest.Call) (string, error) {
					time.Sleep(30 * time.Second)
					return "done", nil
				})
				bad, good := supervisortest.NewServer("bad", supervisortest.Echo("x"), slow), supervisortest.NewServer("good", supervisortest.Echo("x"))
				stuck := make(chan struct{})
				cfg := supervisortest.AddTo(supervisor.Config{}, bad, good)
				c.hook(&cfg, stuck)
				began := time.Now()
				m, err := supervisor.Start(t.Context(), cfg)
				if err != nil || time.Since(began) > 2*time.Second {
					t.Fatalf("started after %v: %v", time.Since(began), err)
				}
				call := func(server string) error {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					_, err := m.CallServerTool(ctx, server, "x", nil)
					return err
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				_ = m.Ready(ctx, "bad")
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if err := m.Ready(ctx, "good"); err != nil {
					t.Fatal(err)
				}
				began = time.Now()
				err = call("bad")
				var e *supervisor.Error
				if !errors.As(err, &e) || !errors.Is(err, c.want) || e.Server != "bad" || len(bad.Calls()) != c.calls || time.Since(began) > 11*time.Second {
					t.Errorf("after %v, %d calls: %#v", time.Since(began), len(bad.Calls()), err)
				}
				if e != nil && strings.Contains(e.Text, "defect of mcpvisor") {
					t.Errorf("the actor of the server ended: %v", err)
				}
				began = time.Now()
				if err := call("good"); err != nil || time.Since(began) > time.Second {
					t.Errorf("the other server, after %v: %v", time.Since(began), err)
				}
				ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if err := errors.Join(m.Toggle(ctx, "good", false), m.Toggle(ctx, "good", true), m.Ready(ctx, "good")); err != nil {
					t.Errorf("commands to the other server: %v", err)
				}
				time.Sleep(5 * time.Second) // for what comes after the call
				time.AfterFunc(time.Minute, func() { close(stuck) })
				ctx, cancel = context.WithTimeout(context.Background(), 10*time.Minute)
				defer cancel()
				if err := m.Close(ctx); err != nil {
					t.Errorf("close: %v", err)
				}
				time.Sleep(10 * time.Minute)
				if len(bad.Calls()) != c.calls {
					t.Errorf("%d calls in the end", len(bad.Calls()))
				}
			})
		})
	}
}

// TestAStrategyThatEndsTheManagerInACall: the call is answered, the parent's decision is carried out, and nothing hangs.
func TestAStrategyThatEndsTheManagerInACall(t *testing.T) {
	for name, directive := range map[string]actor.Directive{"stop": actor.StopDirective, "restart": actor.RestartDirective, "escalate": actor.EscalateDirective} {
		t.Run(name, func(t *testing.T) {
			s := supervisortest.NewServer("s", supervisortest.Func("slow", func(ctx context.Context, _ supervisortest.Call) (string, error) {
				select {
				case <-time.After(time.Second):
					return "done", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}))
			cfg := supervisortest.AddTo(supervisor.Config{CallWait: time.Minute}, s)
			strategy := actor.NewOneForOneStrategy(3, time.Hour, func(any) actor.Directive { return directive })
			inFamily(t, cfg, strategy, func(t *testing.T, root *actor.RootContext, p *parent, _, child *actor.PID, managers <-chan *supervisor.Manager) {
				m := <-managers
				if err := m.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				call := root.RequestFuture(child, &messages.CallTool{Server: "s", Tool: "slow", CallId: "1"}, time.Minute)
				synctest.Wait()
				root.Send(child, failNow{})
				answer, err := call.Result()
				if reply, ok := answer.(*messages.CallToolReply); !ok || err != nil || reply.GetOutcome() != "result" || len(s.Calls()) != 1 {
					t.Errorf("%v, %v, %d calls", answer, err, len(s.Calls()))
				}
				time.Sleep(time.Minute)
				if err := m.Ready(t.Context()); !errors.Is(err, supervisor.ErrClosed) {
					t.Errorf("the manager: %v", err)
				}
			})
		})
	}
}
