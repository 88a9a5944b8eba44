package sim

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// The transport in memory keeps the promises of package transports, in real time and with the scripted peer that every
// transport is tried with, so that the simulation does not lie about what a transport is.

func TestStdioContract(t *testing.T) {
	contract(t, messages.Stdio, transporttest.Features{
		OneStream: true, DeathIsDown: true, Push: true, Noise: true, PID: true,
	})
}

func TestWebSocketContract(t *testing.T) {
	contract(t, messages.WebSocket, transporttest.Features{OneStream: true, DeathIsDown: true, Push: true, Noise: true})
}

func TestSDKContract(t *testing.T) {
	contract(t, messages.SDK, transporttest.Features{OneStream: true, DeathIsDown: true, Push: true})
}

func TestHTTPContract(t *testing.T) {
	contract(t, messages.HTTP, transporttest.Features{SendWaits: true, CancelClosesStream: true})
}

// The program's own HTTP client keeps them, too, with the server's end that days have for it: with numbered events and without.
func TestOwnWebContract(t *testing.T) {
	for _, word := range []string{scenario.WebPlain, scenario.WebNumbered} {
		t.Run(word, func(t *testing.T) {
			contract(t, messages.HTTP, transporttest.Features{SendWaits: true, CancelClosesStream: true}, word)
		})
	}
}

func TestSSEContract(t *testing.T) {
	contract(t, messages.SSE, transporttest.Features{DeathIsDown: true, Push: true})
}

func contract(t *testing.T, kind messages.TransportKind, features transporttest.Features, web ...string) {
	transporttest.Run(t, transporttest.Harness{Features: features, New: func(t *testing.T, o transporttest.Options) transports.Transport {
		spec := messages.Spec{Type: kind, MaxMessage: o.MaxMessage, Env: map[string]string{"TOKEN": o.Secret},
			Headers: map[string]string{"X-Key": o.Secret}}
		s := &scripted{script: &transporttest.Script{}, calls: make(chan func(), 1<<12), quit: make(chan struct{})}
		var running sync.WaitGroup
		running.Go(func() {
			for {
				select {
				case f := <-s.calls:
					f()
				case <-s.quit:
					return
				}
			}
		})
		t.Cleanup(func() {
			handled := make(chan struct{})
			s.post(func() { close(handled) })
			<-handled
			s.playing.Wait()
			close(s.quit)
			running.Wait()
		})
		tr := newTransport(kind, "scripted.sim:443", spec, s)
		if len(web) > 0 {
			tr.web, tr.url = web[0], "https://scripted.sim/mcp"
		}
		return tr
	}})
}

// scripted is the far end of connections behind which the script is played. What happens on it happens one after the
// other, as in the world.
type scripted struct {
	script  *transporttest.Script
	calls   chan func()
	quit    chan struct{}
	playing sync.WaitGroup
	died    bool // only what is posted uses it
}

func (s *scripted) post(f func()) {
	select {
	case s.calls <- f:
	case <-s.quit:
	}
}

func (s *scripted) onDialed(c conn) {
	s.post(func() {
		if c.acceptOpening("session") && c.base().kind == messages.HTTP {
			c.base().mu.Lock()
			c.base().session = "" // the script knows no farewell
			c.base().mu.Unlock()
		}
	})
}

func (s *scripted) onSent(c conn, x *exchange) {
	s.post(func() {
		if s.died {
			c.denyExchange(x.id, transports.MaybeWritten, &transports.Error{Class: messages.ClassNetwork, Text: "nobody is there"})
			return
		}
		c.markTaken(x)
		var answered chan struct{} // the end of the exchange is the end of the command, where there are exchanges
		if c.base().kind == messages.HTTP {
			answered = x.done
		}
		ctx, cancel := context.WithCancel(context.Background())
		s.playing.Go(func() { // a silent command waits for the end of its exchange
			select {
			case <-c.base().connEnded:
			case <-answered:
			case <-ctx.Done():
			}
			cancel()
		})
		s.playing.Go(func() {
			defer cancel()
			s.script.Play(ctx, &port{s: s, c: c, x: x}, x.body)
		})
	})
}

func (s *scripted) onAbandoned(_ conn, x *exchange) {
	if x == nil {
		return
	}
	s.post(func() {
		select {
		case <-x.done:
		default:
			close(x.done)
		}
	})
}

func (s *scripted) onClosing(c conn, _ bool) {
	s.post(func() {
		c.endRemote(ending{err: &transports.Error{Class: messages.ClassExited, Text: "it ended"}, text: "exit status 0"})
	})
}

func (s *scripted) onStreamWanted(c conn, x *exchange) {
	s.post(func() { c.(*ownWebConn).openStream(x) })
}

func (s *scripted) onReleased(conn) {}

func (s *scripted) onMeasured(conn, procinfo.Usage) {}

// port is transporttest.Port.
type port struct {
	s *scripted
	c conn
	x *exchange
}

// Write gives a message to the client: in the exchange of the request, if it has one.
func (p *port) Write(msg []byte) error {
	msg = slices.Clone(msg)
	return p.do(func() {
		p.c.deliverMessage(msg, p.x.id, !isAnswer(msg))
	})
}

func isAnswer(msg []byte) bool { return textAfter(msg, `"method":"`, '"') == "" }

func (p *port) Push(msg []byte) error {
	msg = slices.Clone(msg)
	return p.do(func() { p.c.deliverMessage(msg, "", true) })
}

func (p *port) Noise(line []byte) error {
	line = slices.Clone(line)
	return p.do(func() {
		p.c.deliverBytes(line)
		if p.c.base().kind == messages.Stdio {
			p.c.deliverBytes([]byte("\n"))
		}
	})
}

func (p *port) Die() {
	_ = p.do(func() {
		e := ending{err: &transports.Error{Class: messages.ClassNetwork, Text: "it broke the connection"}}
		if p.c.base().kind == messages.Stdio {
			e = ending{err: &transports.Error{Class: messages.ClassExited, Text: "the process ended with exit status 3"}, text: "exit status 3"}
		}
		p.s.died = p.c.base().kind == messages.HTTP
		p.c.endRemote(e)
	})
}

// do does something at the far end, in its turn.
func (p *port) do(f func()) error {
	done := make(chan struct{})
	p.s.post(func() { f(); close(done) })
	select {
	case <-done:
		return nil
	case <-p.c.base().allReleased:
		return io.ErrClosedPipe
	}
}
