package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestWhatAServerDemandsInTheHandshakeIsHeard has a server of a known era refuse both questions, with HTTP statuses:
// the refusal with Retry-After, or the one that asks for credentials, becomes the error, whichever of the two
// questions it answers.
func TestWhatAServerDemandsInTheHandshakeIsHeard(t *testing.T) {
	down := &transports.Error{Class: messages.ClassNetwork, Status: 500, Text: "it cannot answer now"}
	wait := &transports.Error{Class: messages.ClassThrottled, Status: 429, RetryAfter: 4 * time.Second, Text: "it asks to wait"}
	closed := &transports.Error{Class: messages.ClassUnauthorized, Status: 401, Text: "it wants credentials"}
	for _, c := range []struct {
		name                 string
		initialize, discover error
		want                 messages.Class
		after                time.Duration
		asked                int
	}{
		{"neither demands anything", down, down, messages.ClassNetwork, 0, 2},
		{"the first asks to wait", wait, down, messages.ClassThrottled, 4 * time.Second, 1},
		{"the second asks to wait", down, wait, messages.ClassThrottled, 4 * time.Second, 2},
		{"the first wants credentials", closed, down, messages.ClassUnauthorized, 0, 1},
		{"the second wants credentials", down, closed, messages.ClassUnauthorized, 0, 2},
	} {
		w := &wire{kind: messages.HTTP}
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			if m.Method == "initialize" {
				return transports.Written, c.initialize
			}
			return transports.Written, c.discover
		}
		s, err := session.Dial(t.Context(), w, session.Config{Known: messages.EraLegacy})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Handshake(t.Context())
		if class := messages.ClassOf(err); class != c.want {
			t.Errorf("%s: %v, want class %s", c.name, err, c.want)
		}
		e, ok := err.(*messages.Error)
		if !ok || e.RetryAfter != c.after {
			t.Errorf("%s: %+v, want to come back after %s", c.name, err, c.after)
		}
		if sent := w.takeSent(); len(sent) != c.asked {
			t.Errorf("%s: %d messages were sent, want %d", c.name, len(sent), c.asked)
		}
		_ = s.Close(t.Context())
		<-s.Released()
	}
}

// TestADemandBesideASilentQuestionIsHeard: a server that leaves server/discover unanswered and asks for credentials, or for patience, when
// it is asked initialize, ends the handshake with that. It ended with the time of the connection, as a server that is only silent.
func TestADemandBesideASilentQuestionIsHeard(t *testing.T) {
	for class, demand := range map[messages.Class]*transports.Error{
		messages.ClassUnauthorized: {Class: messages.ClassUnauthorized, Status: 401, Text: "it wants credentials"},
		messages.ClassThrottled:    {Class: messages.ClassThrottled, Status: 429, RetryAfter: 4 * time.Second, Text: "it asks to wait"},
	} {
		for _, first := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{kind: messages.HTTP}
				w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
					if m.Method == "initialize" {
						return transports.Written, demand
					}
					return transports.Written, nil
				}
				s, err := session.Dial(t.Context(), w, session.Config{InitializeFirst: first})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
				defer stop()
				began := time.Now()
				_, err = s.Handshake(ctx)
				if took := time.Since(began); messages.ClassOf(err) != class || took > 2*time.Second {
					t.Errorf("%s, initialize first %v: %v after %v", class, first, err, took)
				}
				_ = s.Close(context.Background())
				<-s.Released()
			})
		}
	}
}

// TestRootsThatCannotBeToldAreRefused: a server that asks for the roots gets an error if the handler fails, and not
// an empty list.
func TestRootsThatCannotBeToldAreRefused(t *testing.T) {
	for want, roots := range map[string]func(context.Context) ([]messages.Root, error){
		`"error":`:        func(context.Context) ([]messages.Root, error) { return nil, errors.New("the disk is gone") },
		`{"roots":[]}`:    func(context.Context) ([]messages.Root, error) { return nil, nil },
		`"uri":"file:/a"`: func(context.Context) ([]messages.Root, error) { return []messages.Root{{URI: "file:/a"}}, nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{}
			connected(t, w, session.Config{Handlers: session.Handlers{Roots: roots}})
			w.takeSent()
			w.receive(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
			synctest.Wait()
			sent := w.takeSent()
			if len(sent) != 1 || !strings.Contains(string(sent[0].Body), want) {
				t.Errorf("%v was sent, want %s", sent, want)
			}
		})
	}
}
