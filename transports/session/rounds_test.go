package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

const asksForRoots = `"result":{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}`

// TestRoundsAreNotBegunAnew guards against a bug: a call that a server refused for its headers in a later round was
// sent again from its beginning, although the first round had reached the tool and a person had answered its
// question.
func TestRoundsAreNotBegunAnew(t *testing.T) {
	var calls, rootsCalls, lists atomic.Int32
	tools := func() string { // another header each time, so that a list always brings new ones
		name := "Region" + strings.Repeat("X", int(lists.Add(1)))
		return strings.Replace(good, `"Region"`, `"`+name+`"`, 1)
	}
	s := dialHeaderServer(t, overHTTP, session.Config{Handlers: session.Handlers{
		Roots: func(context.Context) ([]messages.Root, error) { rootsCalls.Add(1); return nil, nil },
	}}, tools, func(transports.Message) string {
		if calls.Add(1) == 1 {
			return asksForRoots
		}
		return `"error":{"code":-32020,"message":"header mismatch"}`
	})
	if _, err := s.ListTools(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := s.OpenGate().Call(t.Context(), "good", json.RawMessage(`{"region":"eu"}`))
	if messages.OutcomeOf(err) != messages.OutcomeRejected {
		t.Errorf("got %v, want a refusal", err)
	}
	if calls.Load() != 2 || rootsCalls.Load() != 1 {
		t.Errorf("%d requests and %d questions, want 2 and 1", calls.Load(), rootsCalls.Load())
	}
}

// TestTheReasonOfARefusedInputIsTold guards against a bug: of a call whose input another client refused in its own words the error said that it
// could not be given, and not why.
func TestTheReasonOfARefusedInputIsTold(t *testing.T) {
	s := dialHeaderServer(t, elsewhere, session.Config{Handlers: session.Handlers{
		Roots: func(context.Context) ([]messages.Root, error) {
			return nil, &messages.Error{Op: "answer", Class: messages.ClassRejected, Reply: []byte(`{"code":-1,"message":"not from me"}`)}
		},
	}}, func() string { return good }, func(transports.Message) string { return asksForRoots })
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	_, err := s.Forward(ctx, "prompts/get", "greet", json.RawMessage(`"name":"greet"`), &session.Options{})
	if err == nil || !strings.Contains(err.Error(), "asks for roots/list, which could not be given: not from me") {
		t.Errorf("got %v", err)
	}
}

// TestFurtherMembersComeBackWithEachRound guards against a bug: the members of params that a caller passes on from another client were
// sent with the first round of a request and not with the next ones, so that a prompt lost its arguments when the server had asked
// for input.
func TestFurtherMembersComeBackWithEachRound(t *testing.T) {
	var bodies []string
	s := dialHeaderServer(t, elsewhere, session.Config{Handlers: session.Handlers{
		Roots: func(context.Context) ([]messages.Root, error) { return nil, nil },
	}}, func() string { return good }, func(m transports.Message) string {
		if bodies = append(bodies, string(m.Body)); len(bodies) == 1 {
			return asksForRoots
		}
		return `"result":{"resultType":"complete","messages":[]}`
	})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	_, err := s.Forward(ctx, "prompts/get", "greet", json.RawMessage(`"name":"greet"`), &session.Options{Input: json.RawMessage(`"arguments":{"who":"all"}`)})
	if err != nil || len(bodies) != 2 {
		t.Fatalf("%v: %q", err, bodies)
	}
	for i, body := range bodies {
		if !strings.Contains(body, `"arguments":{"who":"all"}`) || strings.Contains(body, "inputResponses") != (i == 1) {
			t.Errorf("request %d: %s", i+1, body)
		}
	}
}

// TestCallEndsWhileHandlerWorks guards against a bug: in the modern era a handler ran on the goroutine of the caller,
// and one that ignored its context kept the call beyond its deadline and beyond the end of the connection.
func TestCallEndsWhileHandlerWorks(t *testing.T) {
	for _, end := range []string{"deadline", "close"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				s := dialHeaderServer(t, elsewhere, session.Config{Handlers: session.Handlers{
					Roots: func(context.Context) ([]messages.Root, error) { <-release; return nil, nil },
				}}, func() string { return good }, func(transports.Message) string { return asksForRoots })
				defer close(release)
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				if end == "close" {
					time.AfterFunc(time.Second, func() { _ = s.Close(context.Background()) })
				}
				began := time.Now()
				_, err := s.OpenGate().Call(ctx, "good", nil)
				want := map[string]messages.Class{"deadline": messages.ClassTimeout, "close": messages.ClassCanceled}[end]
				if messages.OutcomeOf(err) != messages.OutcomeUnknown || messages.ClassOf(err) != want {
					t.Errorf("got %v, want unknown of class %s", err, want)
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("the call took %v", took)
				}
			})
		})
	}
}

// TestAPersonTakesNoneOfTheCallsTime: while a question of a round is open, the idle timeout of its call is paused; it
// goes on when the question has been answered.
func TestAPersonTakesNoneOfTheCallsTime(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			var w *wire
			s := dialHeaderServer(t, func(peer *wire) transports.Transport { w = peer; return peer }, session.Config{Handlers: session.Handlers{
				Roots: func(context.Context) ([]messages.Root, error) { time.Sleep(10 * time.Second); return nil, nil },
			}}, func() string { return good }, func(transports.Message) string {
				if asked++; asked == 1 {
					return asksForRoots
				}
				return `"result":{"content":[]}`
			})
			if !answers {
				sends := w.onSend
				w.onSend = func(ctx context.Context, m transports.Message) (transports.Delivery, error) {
					if asked == 1 && m.Method == "tools/call" {
						return transports.Written, nil // and never an answer
					}
					return sends(ctx, m)
				}
			}
			began := time.Now()
			p := session.NewCallTimeout(t.Context(), time.Second, time.Minute)
			defer p.Stop()
			_, err := s.OpenGate().Call(p, "good", nil)
			took := time.Since(began)
			if answers && (err != nil || took != 10*time.Second) {
				t.Errorf("a call whose person took ten seconds ended after %v with %v", took, err)
			}
			if !answers && (messages.ClassOf(err) != messages.ClassTimeout || took != 11*time.Second) {
				t.Errorf("a call that had no answer within a second of its person's ended after %v with %v", took, err)
			}
		})
	}
}

// TestARoundThatIsNotSentLeavesTheCallUnknown: the server worked on the call in its first round, so the outcome is
// unknown and not not-sent, although the second round was not written.
func TestARoundThatIsNotSentLeavesTheCallUnknown(t *testing.T) {
	var w *wire
	s := dialHeaderServer(t, func(peer *wire) transports.Transport { w = peer; return peer }, session.Config{Handlers: session.Handlers{
		Roots: func(context.Context) ([]messages.Root, error) { return nil, nil },
	}}, func() string { return good }, func(transports.Message) string { return asksForRoots })
	sends, calls := w.onSend, 0
	w.onSend = func(ctx context.Context, m transports.Message) (transports.Delivery, error) {
		if m.Method == "tools/call" {
			if calls++; calls == 2 {
				return transports.NotWritten, &transports.Error{Class: messages.ClassNetwork, Text: "no way"}
			}
		}
		return sends(ctx, m)
	}
	_, err := s.OpenGate().Call(t.Context(), "good", nil)
	if messages.OutcomeOf(err) != messages.OutcomeUnknown || calls != 2 {
		t.Errorf("got %v after %d requests, want unknown after 2", err, calls)
	}
}

// TestAServerThatWantsTimeIsGivenMoreEachTime: a request for which a server wants only time is sent again after
// pauses that double up to a bound, and has not been given up after a minute.
func TestAServerThatWantsTimeIsGivenMoreEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last time.Time
		var pauses []time.Duration
		s := dialHeaderServer(t, elsewhere, session.Config{}, func() string { return good }, func(transports.Message) string {
			if !last.IsZero() {
				pauses = append(pauses, time.Since(last))
			}
			if last = time.Now(); len(pauses) == 15 {
				return `"result":{"content":[]}`
			}
			return `"result":{"resultType":"input_required","requestState":"later"}`
		})
		if _, err := s.OpenGate().Call(t.Context(), "good", nil); err != nil {
			t.Fatal(err)
		}
		want := 50 * time.Millisecond
		for i, pause := range pauses {
			if pause != want {
				t.Errorf("pause %d was %v, want %v", i, pause, want)
			}
			want = min(2*want, 5*time.Second)
		}
	})
}

// TestHandlerPanics: a handler of the modern era that panics ends the session, and the call of its question ends with
// it.
func TestHandlerPanics(t *testing.T) {
	s := dialHeaderServer(t, elsewhere, session.Config{Handlers: session.Handlers{
		Roots: func(context.Context) ([]messages.Root, error) { panic("oh") },
	}}, func() string { return good }, func(transports.Message) string { return asksForRoots })
	_, err := s.OpenGate().Call(t.Context(), "good", nil)
	if messages.OutcomeOf(err) != messages.OutcomeUnknown || messages.ClassOf(err) != messages.ClassPanic {
		t.Errorf("got %v, want unknown of class panic", err)
	}
	<-s.Dead()
	var e *messages.Error
	if !errors.As(s.Err(), &e) || e.Class != messages.ClassPanic {
		t.Errorf("the session ended with %v", s.Err())
	}
}

// TestNothingIsAnsweredInTheModernEra guards against a bug: a server that was pinned to the modern era got responses
// before it had identified itself. 2026-07-28: "The client MUST NOT send JSON-RPC responses".
func TestNothingIsAnsweredInTheModernEra(t *testing.T) {
	w := &wire{}
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		if m.Method == "server/discover" {
			w.receive(`{"jsonrpc":"2.0","id":"a","method":"ping"}`)
			w.receive(`{"jsonrpc":"2.0","id":"b","method":"nothing/known"}`)
			w.receive(`{"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`)
		}
		return transports.Written, nil
	}
	s, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraModern})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Handshake(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-s.Released()
	if s.Stats().Refused != 2 || s.Stats().Unsent != 0 {
		t.Errorf("%+v", s.Stats())
	}
	for _, m := range w.takeSent() {
		if m.Method == "" {
			t.Errorf("sent %s", m.Body)
		}
	}
}
