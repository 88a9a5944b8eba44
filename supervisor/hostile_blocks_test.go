package supervisor_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stream"
)

// TestCommandsWhileAHookBlocks: a hook of the program that does not return blocks one attempt and no actor. Every command to its server
// takes effect at once, the status shows it, and the tools of the other server can be called.
func TestCommandsWhileAHookBlocks(t *testing.T) {
	type blocked struct{ reached, stuck chan struct{} }
	block := func(b blocked) { close(b.reached); <-b.stuck }
	ofBad := func(f func() (transports.Transport, error)) func(string, supervisor.Spec) (transports.Transport, error) {
		return func(name string, _ supervisor.Spec) (transports.Transport, error) {
			if name != "bad" {
				return nil, nil
			}
			return f()
		}
	}
	hooks := map[string]func(c *supervisor.Config, b blocked){
		"transport": func(c *supervisor.Config, b blocked) {
			c.Transport = ofBad(func() (transports.Transport, error) { block(b); return nil, io.EOF })
		},
		"decorator": func(c *supervisor.Config, b blocked) {
			c.Wrap = func(name string, _ supervisor.Spec, t transports.Transport) transports.Transport {
				if name == "bad" {
					block(b)
				}
				return t
			}
		},
		"kind": func(c *supervisor.Config, b blocked) {
			once := sync.OnceFunc(func() { block(b) })
			c.Transport = ofBad(func() (transports.Transport, error) {
				return &badTransport{kind: func() messages.TransportKind { once(); return "bad" },
					dial: func(context.Context) (transports.Conn, error) { return nil, io.EOF }}, nil
			})
		},
		"dial": func(c *supervisor.Config, b blocked) {
			c.Transport = ofBad(func() (transports.Transport, error) {
				return &badTransport{dial: func(context.Context) (transports.Conn, error) { block(b); return nil, io.EOF }}, nil
			})
		},
		"stream": func(c *supervisor.Config, b blocked) {
			c.Transport = ofBad(func() (transports.Transport, error) {
				return stream.New(func(context.Context) (io.ReadWriteCloser, error) { block(b); return nil, io.EOF }), nil
			})
		},
	}
	commands := map[string]func(ctx context.Context, m *supervisor.Manager) error{
		"disable":    func(ctx context.Context, m *supervisor.Manager) error { return m.Toggle(ctx, "bad", false) },
		"disconnect": func(ctx context.Context, m *supervisor.Manager) error { return m.Disconnect(ctx, "bad") },
		"remove":     func(ctx context.Context, m *supervisor.Manager) error { return m.Remove(ctx, "bad") },
	}
	for hookName, hook := range hooks {
		for commandName, command := range commands {
			t.Run(hookName+"/"+commandName, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := blocked{make(chan struct{}), make(chan struct{})}
					cfg := supervisortest.AddTo(supervisor.Config{}, supervisortest.NewServer("bad"), supervisortest.NewServer("good", supervisortest.Echo("x")))
					hook(&cfg, b)
					spec := cfg.Servers["bad"]
					delete(cfg.Servers, "bad")
					m, err := supervisor.Start(t.Context(), cfg)
					if err != nil {
						t.Fatal(err)
					}
					if err := m.Ready(t.Context(), "good"); err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					connected := make(chan struct{})
					go func() { defer close(connected); _ = m.Connect(ctx, "bad", spec) }()
					<-b.reached
					began := time.Now()
					if err := command(ctx, m); err != nil {
						t.Errorf("after %v: %v", time.Since(began), err)
					}
					// A server that was removed may have left already.
					if st, err := m.ServerStatus("bad"); (st.Status != messages.Disabled || err != nil) && (commandName != "remove" || !errors.Is(err, messages.ErrUnknownServer)) {
						t.Errorf("the status: %q, %v", st.Status, err)
					}
					<-connected // the command has answered it
					if _, err := m.CallServerTool(ctx, "good", "x", nil); err != nil || time.Since(began) > time.Second {
						t.Errorf("the other server, after %v: %v", time.Since(began), err)
					}
					close(b.stuck)
					if err := m.Close(t.Context()); err != nil {
						t.Error(err)
					}
					time.Sleep(10 * time.Minute) // what the manager left behind ends by its own bounds
				})
			})
		}
	}
}
