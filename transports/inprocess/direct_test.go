package inprocess_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// TestDirectContract is the contract for a server that answers by a function call. It has no feature Stall: a request does
// not wait to be read.
func TestDirectContract(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		New: func(_ *testing.T, o transporttest.Options) transports.Transport {
			tr := inprocess.New(serveScriptDirectly)
			tr.MaxMessage = o.MaxMessage
			return tr
		},
		Features: transporttest.Features{OneStream: true, DeathIsDown: true, Push: true},
	})
}

// serveScriptDirectly is serveScript for requests that are answered by a function call.
func serveScriptDirectly(ctx context.Context, peer inprocess.Peer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	port := &peerPort{peer: peer, die: cancel}
	script := new(transporttest.Script)
	peer.(inprocess.DirectPeer).Answer(func(m transports.Message) []byte {
		held := &answerPort{peerPort: port}
		script.Play(ctx, held, m.Body)
		return held.take()
	})
	_ = script.Serve(ctx, port, func() ([]byte, error) { return peer.Read(ctx) })
	if cause := context.Cause(ctx); errors.Is(cause, errDied) {
		return cause
	}
	return nil
}

// TestReceiveContract is the same for a server that is given everything else by a function call, too.
func TestReceiveContract(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		New: func(_ *testing.T, o transporttest.Options) transports.Transport {
			tr := inprocess.New(func(ctx context.Context, peer inprocess.Peer) error {
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				port := &peerPort{peer: peer, die: cancel}
				script, own := new(transporttest.Script), peer.(inprocess.DirectPeer)
				own.Answer(func(m transports.Message) []byte {
					held := &answerPort{peerPort: port}
					script.Play(ctx, held, m.Body)
					return held.take()
				})
				own.Receive(func(m transports.Message) {
					msg := m.Body
					if bytes.Contains(msg, []byte(`"method":`)) && bytes.Contains(msg, []byte(`"id":`)) {
						go script.Play(ctx, port, msg) // it may be a long one
						return
					}
					script.Play(ctx, port, msg)
				})
				_, _ = peer.Read(ctx) // it ends with the connection, or with ctx
				if cause := context.Cause(ctx); errors.Is(cause, errDied) {
					return cause
				}
				return nil
			})
			tr.MaxMessage = o.MaxMessage
			return tr
		},
		Features: transporttest.Features{OneStream: true, DeathIsDown: true, Push: true},
	})
}

// answerPort keeps an answer for its request; everything else it writes at once, and what it kept before that.
type answerPort struct {
	*peerPort
	mu   sync.Mutex
	kept []byte
}

func (p *answerPort) take() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.kept
	p.kept = nil
	return kept
}

func (p *answerPort) Write(msg []byte) error {
	if !bytes.Contains(msg[:min(60, len(msg))], []byte(`"method":`)) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.kept = msg
		return nil
	}
	return p.peerPort.Write(msg)
}

func (p *answerPort) Push(msg []byte) error {
	if kept := p.take(); kept != nil {
		_ = p.peerPort.Write(kept)
	}
	return p.peerPort.Push(msg)
}

func (p *answerPort) Die() {
	if kept := p.take(); kept != nil {
		_ = p.peerPort.Write(kept)
	}
	p.peerPort.Die()
}

// direct is a serve function whose requests are answered by answer; read gets what comes to Read.
func direct(answer func(transports.Message) []byte, read func([]byte)) func(context.Context, inprocess.Peer) error {
	return func(ctx context.Context, p inprocess.Peer) error {
		p.(inprocess.DirectPeer).Answer(answer)
		for {
			msg, err := p.Read(ctx)
			if err != nil {
				return nil //nolint:nilerr // the connection has ended
			}
			read(msg)
		}
	}
}

// received is direct for a server that has everything given to it.
func received(answer func(transports.Message) []byte, receive func([]byte)) func(context.Context, inprocess.Peer) error {
	return func(ctx context.Context, p inprocess.Peer) error {
		p.(inprocess.DirectPeer).Answer(answer)
		p.(inprocess.DirectPeer).Receive(func(m transports.Message) { receive(m.Body) })
		if msg, err := p.Read(ctx); !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %q, %w", msg, err)
		}
		return nil
	}
}

func empty(m transports.Message) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, m.ID)
}

// TestDirectKeepsTheOrder: what is asked after a notification is not looked at before the notification was dealt with, and
// a request that is being answered holds up nothing.
func TestDirectKeepsTheOrder(t *testing.T) {
	t.Run("read", func(t *testing.T) { keepsTheOrder(t, direct) })
	t.Run("received", func(t *testing.T) { keepsTheOrder(t, received) })
}

func keepsTheOrder(
	t *testing.T, serve func(func(transports.Message) []byte, func([]byte)) func(context.Context, inprocess.Peer) error,
) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		see := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, what)
		}
		c := conntest.Dial(t, inprocess.New(func(ctx context.Context, p inprocess.Peer) error {
			return serve(func(m transports.Message) []byte {
				see(m.Method)
				if m.Method == "slow" {
					time.Sleep(4 * time.Second)
				}
				return empty(m)
			}, func(msg []byte) {
				if bytes.Contains(msg, []byte(`"id"`)) {
					see("read a request")
					return
				}
				time.Sleep(time.Second)
				see("a notification")
			})(ctx, p)
		}))
		synctest.Wait() // it reads
		begin := time.Now()
		for _, method := range []string{"slow", "quick"} {
			if _, d, err := c.TrySend(t.Context(), method, `{}`); d != transports.Written || err != nil {
				t.Errorf("%s: %v, %v", method, d, err)
			}
			synctest.Wait()
		}
		c.Notify("note")
		if _, d, err := c.TrySend(t.Context(), "behind it", `{}`); d != transports.Written || err != nil {
			t.Errorf("behind a notification: %v, %v", d, err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("Send waited %v for a handler", took)
		}
		time.Sleep(2 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"slow", "quick", "a notification", "read a request"}; !slices.Equal(seen, want) {
			t.Errorf("the server saw %q, want %q", seen, want)
		}
	})
}

// TestDirectEnds: what a function that answers may do costs its own call or its own connection, and nothing else.
func TestDirectEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(transports.Message) []byte
		class  messages.Class // with which the connection ends; none: it goes on
	}{
		"panics":               {func(transports.Message) []byte { panic("kaboom") }, messages.ClassPanic},
		"ends its goroutine":   {func(transports.Message) []byte { runtime.Goexit(); return nil }, ""},
		"answers with nothing": {func(transports.Message) []byte { return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cn := conntest.Dial(t, inprocess.New(direct(func(m transports.Message) []byte {
					if m.Method == "bad" {
						return c.answer(m)
					}
					return empty(m)
				}, func([]byte) {})))
				synctest.Wait()
				if _, _, err := cn.TrySend(t.Context(), "bad", `{}`); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if c.class == "" {
					cn.Call("good", `{}`)
					return
				}
				if downs := cn.Downs(); len(downs) != 1 || conntest.BoundaryError(t, downs[0]).Class != c.class {
					t.Errorf("Down: %v", downs)
				}
			})
		})
	}
}

// TestReceiveEnds: a receive function that cannot go on ends the connection, because no other goroutine would receive.
func TestReceiveEnds(t *testing.T) {
	for name, c := range map[string]struct {
		receive func([]byte)
		class   messages.Class
	}{
		"panics":             {func([]byte) { panic("kaboom") }, messages.ClassPanic},
		"ends its goroutine": {func([]byte) { runtime.Goexit() }, messages.ClassExited},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cn := conntest.Dial(t, inprocess.New(received(empty, c.receive)))
				synctest.Wait()
				cn.Notify("note")
				synctest.Wait()
				if downs := cn.Downs(); len(downs) != 1 || conntest.BoundaryError(t, downs[0]).Class != c.class {
					t.Errorf("Down: %v", downs)
				}
			})
		})
	}
}

// TestReceiveIsWaitedFor: also for what was sent before the server said who receives it; and what waits at the end of the
// connection is given to no server.
func TestReceiveIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given atomic.Int32
		c := conntest.Dial(t, inprocess.New(func(ctx context.Context, p inprocess.Peer) error {
			time.Sleep(time.Second)
			return received(empty, func([]byte) {
				given.Add(1)
				time.Sleep(3 * time.Second)
			})(ctx, p)
		}))
		c.Notify("one")
		c.Notify("two")
		c.Notify("three")
		time.Sleep(5 * time.Second) // the second is being dealt with
		begin := time.Now()
		if err := c.Close(context.Background()); err != nil || time.Since(begin) != 2*time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(begin))
		}
		if n := given.Load(); n != 2 {
			t.Errorf("%d messages were given", n)
		}
	})
}

// TestDirectStubborn: the connection waits for what answers, as for serve, and not for ever.
func TestDirectStubborn(t *testing.T) {
	for _, takes := range []time.Duration{3 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c := conntest.Dial(t, inprocess.New(direct(func(m transports.Message) []byte {
				time.Sleep(takes)
				return empty(m)
			}, func([]byte) {})))
			synctest.Wait()
			if _, d, err := c.TrySend(t.Context(), "x", `{}`); d != transports.Written || err != nil {
				t.Errorf("%v, %v", d, err)
			}
			begin := time.Now()
			if err := c.Close(context.Background()); err != nil || time.Since(begin) != min(takes, 5*time.Second) {
				t.Errorf("Close with a handler of %v: %v after %v", takes, err, time.Since(begin))
			}
			if n := len(c.Messages()); n != 0 {
				t.Errorf("%d messages after Down", n)
			}
			time.Sleep(takes)
		})
	}
}

func BenchmarkDirect(b *testing.B) {
	sink := &notifyingSink{ch: make(chan struct{}, 1)}
	conn, err := inprocess.New(direct(empty, func([]byte) {})).Dial(b.Context(), sink)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	m := transports.Message{ID: 1, Method: "tools/call",
		Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Send(context.Background(), m); err != nil {
			b.Fatal(err)
		}
		<-sink.ch
	}
}
