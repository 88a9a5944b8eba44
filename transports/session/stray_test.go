package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestAnErrorWithoutAnIDEndsNoCall: it may belong to any of the requests once the handshake is done, so that none is ended by it, also if there
// is only one.
func TestAnErrorWithoutAnIDEndsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		gate := connected(t, w, session.Config{}).OpenGate()
		w.takeSent()
		ended := make(chan error, 1)
		go func() {
			_, err := gate.Call(t.Context(), "t", nil)
			ended <- err
		}()
		synctest.Wait()
		w.receive(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what was that?"}}`)
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatalf("the call ended: %v", <-ended)
		}
		sent := w.takeSent()
		w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, sent[0].ID))
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAHandshakeIsNotCancelled: 2025-11-25, Cancellation: "The initialize request MUST NOT be cancelled by clients". The question for the era is
// asked in its place, and a server of the older era knows no cancellation of it either.
func TestAHandshakeIsNotCancelled(t *testing.T) {
	for _, era := range []messages.Era{messages.EraAuto, messages.EraLegacy, messages.EraModern} {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{}
			s, err := session.Dial(t.Context(), w, session.Config{Era: era})
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithTimeout(t.Context(), time.Second)
			defer leave()
			if _, err := s.Handshake(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", era, err)
			}
			synctest.Wait()
			var methods []string
			for _, m := range w.takeSent() {
				methods = append(methods, m.Method)
			}
			if len(methods) == 0 || slices.Contains(methods, "notifications/cancelled") {
				t.Errorf("%q: the server got %v", era, methods)
			}
			_ = s.Close(context.Background())
			<-s.Released()
		})
	}
}

// TestATaskThatIsNotWaitedForAnyMore: a caller who leaves while the session asks for the state of its task is told that it left, and which task
// goes on, also if the question fails.
func TestATaskThatIsNotWaitedForAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, silent := &wire{}, false
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			switch m.Method {
			case "initialize":
				w.declareTasks(m.ID)
			case "tasks/get":
				if !silent {
					w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"taskId":"one","status":"working","pollInterval":1000}}`, m.ID))
				}
				silent = true
			}
			return transports.Written, nil
		}
		s := connected(t, w, session.Config{Rand: func() float64 { return 0 }})
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
		defer leave()
		began := time.Now()
		_, err := s.TaskResult(ctx, "one", nil)
		var e *messages.Error
		if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || e.Task != "one" || e.Outcome != messages.OutcomeUnknown ||
			!strings.Contains(e.Text, "before the task had ended") || time.Since(began) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestAnUpdateIsNotLostBehindManyLogs: the session drops log messages that come faster than the program takes them, beyond a bound. It passes on the
// update of a resource all the same, and the messages that follow.
func TestAnUpdateIsNotLostBehindManyLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, release := &wire{}, make(chan struct{})
		var updated []string
		connected(t, w, session.Config{
			OnLog:             func(string, string, json.RawMessage) { <-release },
			OnResourceUpdated: func(uri string) { updated = append(updated, uri) },
		})
		for range 1000 {
			w.receive(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		}
		w.receive(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:///1"}}`)
		close(release)
		synctest.Wait()
		w.receive(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:///2"}}`)
		synctest.Wait()
		if !slices.Equal(updated, []string{"x:///1", "x:///2"}) {
			t.Errorf("told of %v", updated)
		}
	})
}

// TestAPromptThatCannotBeWrittenIsNotSent: arguments that are no UTF-8, and a _meta that is no object, are the caller's mistake, and reach no
// server.
func TestAPromptThatCannotBeWrittenIsNotSent(t *testing.T) {
	w := &wire{}
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		switch m.Method {
		case "initialize":
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"prompts":{},"resources":{}}}}`, m.ID))
		case "prompts/get", "resources/read":
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, m.ID))
		}
		return transports.Written, nil
	}
	s := connected(t, w, session.Config{})
	w.takeSent()
	odd, fine := &session.Options{Meta: json.RawMessage(`[1]`)}, &session.Options{Meta: json.RawMessage(`{"k":1}`)}
	for what, c := range map[string]struct {
		args map[string]string
		o    *session.Options
		sent bool
	}{
		"nothing odd": {map[string]string{"a": "ä"}, fine, true}, "no arguments": {nil, nil, true},
		"an argument": {map[string]string{"a": "\xff"}, nil, false}, "its name": {map[string]string{"\xff": "a"}, fine, false}, "_meta": {nil, odd, false},
	} {
		_, err := s.GetPrompt(t.Context(), "p", c.args, c.o)
		if sent := len(w.takeSent()) == 1; sent != c.sent || (err == nil) != c.sent || err != nil && (messages.ClassOf(err) != messages.ClassInvalid || messages.OutcomeOf(err) != messages.OutcomeNotSent) {
			t.Errorf("%s: sent %v, %v", what, sent, err)
		}
	}
	for _, o := range []*session.Options{odd, fine, nil} {
		_, err := s.ReadResource(t.Context(), "x:///1", o)
		_, passed := s.Forward(t.Context(), "resources/read", "x:///1", json.RawMessage(`"uri":"x:///1"`), o)
		if n := len(w.takeSent()); (n == 2) != (o != odd) || (err == nil) != (o != odd) || (passed == nil) != (o != odd) {
			t.Errorf("%+v: %d sent, %v, %v", o, n, err, passed)
		}
	}
}

// TestAVersionThatIsRefusedWithoutAnother: a server of the modern era that refuses our version and names none, or the same again, ends the
// handshake with its own error; one that names others is told of as one that has nothing in common.
func TestAVersionThatIsRefusedWithoutAnother(t *testing.T) {
	for supported, asked := range map[string]int{``: 1, `[]`: 1, `["2026-07-28"]`: 2, `["2099-01-01"]`: 1} {
		synctest.Test(t, func(t *testing.T) {
			w, n := &wire{}, 0
			w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
				if m.Method == "server/discover" {
					n++
					data := ""
					if supported != "" {
						data = `,"data":{"supported":` + supported + `}`
					}
					w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32022,"message":"another version"%s}}`, m.ID, data))
				}
				return transports.Written, nil
			}
			s, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraModern})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Handshake(t.Context())
			named := strings.Contains(fmt.Sprint(err), "2099-01-01")
			if err == nil || n != asked || named != (supported == `["2099-01-01"]`) || !named && !strings.Contains(err.Error(), "another version") {
				t.Errorf("supported %s: asked %d times: %v", supported, n, err)
			}
			_ = s.Close(context.Background())
			<-s.Released()
		})
	}
}
