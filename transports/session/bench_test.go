package session_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// echo answers every tool call with the same result. Its cost per call is one allocation, the message that the session
// gets to own.
type echo struct {
	wire
	result []byte
	// hand, if not nil, receives the answers, so that they arrive from another goroutine, as over a pipe.
	hand chan []byte
}

func (e *echo) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	_, err := e.wire.Dial(ctx, sink)
	return e, err
}

func (e *echo) Send(_ context.Context, m transports.Message) (transports.Delivery, error) {
	if m.Method == "initialize" {
		e.receive(helloAnswer)
	}
	if m.Method != "tools/call" {
		return transports.Written, nil
	}
	body := make([]byte, 0, len(e.result)+64)
	body = append(body, `{"jsonrpc":"2.0","id":`...)
	body = strconv.AppendInt(body, m.ID, 10)
	body = append(body, `,"result":`...)
	body = append(append(body, e.result...), '}')
	if e.hand != nil {
		e.hand <- body
	} else {
		e.sink.Message(body)
	}
	return transports.Written, nil
}

func BenchmarkCall(b *testing.B) {
	args := json.RawMessage(`{"path":"/etc/hosts","lines":[1,20]}`)
	small := []byte(`{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}],"isError":false}`)
	large := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("Lorem ipsum ", 5461) + `"}]}`)
	run := func(name string, result []byte, pipe bool, callers int) {
		b.Run(name, func(b *testing.B) {
			e := &echo{result: result}
			if pipe {
				e.hand = make(chan []byte, 128)
				go func() {
					for body := range e.hand {
						e.sink.Message(body)
					}
				}()
				b.Cleanup(func() { close(e.hand) })
			}
			s, err := session.Dial(b.Context(), e, session.Config{Era: messages.EraLegacy})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				_ = s.Close(context.Background())
				<-s.Released()
			})
			if _, err := s.Handshake(b.Context()); err != nil {
				b.Fatal(err)
			}
			gate := s.OpenGate()
			ctx, stop := context.WithCancel(b.Context()) // as every real call has: something to wait for
			defer stop()
			b.ReportAllocs()
			if callers == 1 {
				for b.Loop() {
					if _, err := gate.Call(ctx, "read_file", args); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.SetParallelism(callers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := gate.Call(ctx, "read_file", args); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	run("direct/100B", small, false, 1)
	run("direct/64KB", large, false, 1)
	run("direct/100B/64callers", small, false, 32)
	run("pipe/100B", small, true, 1)
	run("pipe/100B/64callers", small, true, 32)
}

// BenchmarkRefused is a call on a closed gate.
func BenchmarkRefused(b *testing.B) {
	w := &wire{}
	s := connected(b, w, session.Config{})
	gate := s.OpenGate()
	gate.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := gate.Call(b.Context(), "t", nil); messages.OutcomeOf(err) != messages.OutcomeNotSent {
			b.Fatal(err)
		}
	}
}

// BenchmarkListTools parses 5,000 tools of 400 bytes.
func BenchmarkListTools(b *testing.B) {
	var list strings.Builder
	for i := range 5000 {
		if i > 0 {
			list.WriteByte(',')
		}
		list.WriteString(`{"name":"tool_` + strconv.Itoa(i) + `","description":"` + strings.Repeat("It reads. ", 15) +
			`","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"where"},` +
			`"limit":{"type":["integer","null"],"minimum":0}},"required":["path"]},"annotations":{"readOnlyHint":true}}`)
	}
	w := &wire{}
	hello(w, func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		w.receive(`{"jsonrpc":"2.0","id":` + strconv.FormatInt(m.ID, 10) + `,"result":{"tools":[` + list.String() + `]}}`)
		return transports.Written, nil
	})
	s := connected(b, w, session.Config{})
	b.SetBytes(int64(list.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.ListTools(b.Context()); err != nil {
			b.Fatal(err)
		}
		w.takeSent()
	}
}
