package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestSinkBeforeDialReturns: a transport may read, and even end, before its Dial has returned.
func TestSinkBeforeDialReturns(t *testing.T) {
	t.Run("messages", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			changed := 0
			w := &wire{onDial: func(sink transports.Sink) error {
				sink.Message([]byte(`{"jsonrpc":"2.0","id":"early","method":"ping"}`))
				sink.Message([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
				return nil
			}}
			s, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraLegacy, OnToolsChanged: func() { changed++ }})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if sent := w.takeSent(); len(sent) != 1 || string(sent[0].Body) != `{"jsonrpc":"2.0","id":"early","result":{}}` {
				t.Errorf("sent %v", sent)
			}
			if changed != 1 {
				t.Errorf("%d callbacks", changed)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			<-s.Released()
		})
	})
	t.Run("noise beyond the limit", func(t *testing.T) {
		w := &wire{onDial: func(sink transports.Sink) error {
			sink.Noise([]byte("a"))
			sink.Noise([]byte("b"))
			return nil
		}}
		s, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraLegacy, NoiseLimit: 1})
		if err != nil {
			t.Fatal(err)
		}
		<-s.Released()
		if class := messages.ClassOf(s.Err()); class != messages.ClassProtocol {
			t.Errorf("the session ended as %s", class)
		}
	})
	t.Run("down", func(t *testing.T) {
		w := &wire{}
		w.onDial = func(sink transports.Sink) error {
			sink.Down(&transports.Error{Class: messages.ClassExited, Text: "exit status 1"})
			close(w.released)
			return nil
		}
		s, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraLegacy})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Handshake(t.Context()); messages.ClassOf(err) != messages.ClassExited {
			t.Errorf("handshake: %v", err)
		}
		<-s.Released()
	})
	t.Run("down before the question about the era", func(t *testing.T) {
		w := &wire{}
		w.onDial = func(sink transports.Sink) error {
			sink.Down(&transports.Error{Class: messages.ClassExited, Text: "exit status 1"})
			close(w.released)
			return nil
		}
		s, err := session.Dial(t.Context(), w, session.Config{})
		if err != nil {
			t.Fatal(err)
		}
		// The server got no question, so its end was not caused by one: another connection at once would end in the
		// same way.
		_, err = s.Handshake(t.Context())
		if messages.ClassOf(err) != messages.ClassExited || errors.Is(err, session.ErrOnProbe) {
			t.Errorf("handshake: %v", err)
		}
		<-s.Released()
	})
	t.Run("a failed dial", func(t *testing.T) {
		cause := &transports.Error{Class: messages.ClassMissing, Text: "no such command", Fix: "install it"}
		w := &wire{onDial: func(transports.Sink) error { return cause }}
		_, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraLegacy})
		var e *messages.Error
		if !errors.As(err, &e) || e.Class != messages.ClassMissing || e.Fix != "install it" || !errors.Is(err, cause) {
			t.Errorf("%+v", err)
		}
	})
	t.Run("a failed dial with a foreign error", func(t *testing.T) {
		w := &wire{onDial: func(transports.Sink) error { return errors.New("odd\x1b[2J\nthing") }}
		_, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraLegacy})
		var e *messages.Error
		if !errors.As(err, &e) || e.Class != messages.ClassNetwork || e.Text != "odd\ufffd[2J thing" {
			t.Errorf("%+v", err)
		}
	})
}

// TestVersionIsNegotiatedFirst: the session calls Negotiated before it sends any message after the handshake's
// answer, because the HTTP transport puts the version into a header.
func TestVersionIsNegotiatedFirst(t *testing.T) {
	seeds.Shows(t, "001.2.handshake")
	w := &wire{}
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		w.mu.Lock()
		negotiated := len(w.negotiated)
		w.mu.Unlock()
		switch m.Method {
		case "initialize":
			if negotiated != 0 {
				t.Error("negotiated before the handshake")
			}
			w.receive(helloAnswer)
		default:
			if negotiated != 1 {
				t.Errorf("%s was sent with %d negotiations before it", m.Method, negotiated)
			}
		}
		return transports.Written, nil
	}
	connected(t, w, session.Config{})
	if sent := w.takeSent(); len(sent) != 2 || sent[0].ID != 1 || sent[1].ID != 0 ||
		sent[1].Method != "notifications/initialized" {
		t.Errorf("sent %+v", sent)
	}
}

// TestFailedHandshakeLetsGo: a failed attempt leaves no goroutine and no connection behind, although Close is not
// called (R16).
func TestFailedHandshakeLetsGo(t *testing.T) {
	tests := map[string]func(*wire, transports.Message) error{
		"unsupported": func(w *wire, m transports.Message) error {
			w.receive(strings.Replace(helloAnswer, "2025-11-25", "1.0", 1))
			return nil
		},
		"initialized cannot be sent": func(w *wire, m transports.Message) error {
			if m.Method == "initialize" {
				w.receive(helloAnswer)
				return nil
			}
			return &transports.Error{Class: messages.ClassNetwork, Text: "reset"}
		},
		"deadline": func(*wire, transports.Message) error { return nil },
	}
	for name, serve := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{}
				w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
					return transports.Written, serve(w, m)
				}
				s, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraLegacy})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
				defer stop()
				_, err = s.Handshake(ctx)
				if err == nil {
					t.Fatal("the handshake succeeded")
				}
				<-s.Released()
				if messages.ClassOf(s.Err()) != messages.ClassOf(err) {
					t.Errorf("the session ended because of %v, the handshake of %v", s.Err(), err)
				}
			})
		})
	}
}

// TestModernRefusalOfInitializeIsNotForGood: a server of the modern era whose answer to server/discover was lost or
// broken refuses initialize, and lists a version that we speak. That is no disagreement about versions, so a later
// attempt may succeed (R16).
func TestModernRefusalOfInitializeIsNotForGood(t *testing.T) {
	w := &wire{}
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		switch m.Method {
		case "server/discover":
			return transports.Written, &transports.Error{Class: messages.ClassProtocol, Text: "it answered with text/html"}
		case "initialize":
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32022,"message":"Unsupported protocol version",`+
				`"data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}`, m.ID))
		}
		return transports.Written, nil
	}
	s, err := session.Dial(t.Context(), w, session.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Handshake(t.Context())
	if class := messages.ClassOf(err); class != messages.ClassProtocol {
		t.Errorf("class %q, want %q, which is tried again: %v", class, messages.ClassProtocol, err)
	}
	<-s.Released()
}
