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
// goes on, whatever became of the question.
func TestATaskThatIsNotWaitedForAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, silent := &wire{}, false
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			switch m.Method {
			case "initialize":
				w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{}},`+
					`"serverInfo":{"name":"s","version":"1"}}}`, m.ID))
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

// TestAnUpdateIsNotLostBehindManyLogs: what a server logs faster than the program takes it is dropped beyond a bound; that a resource was updated
// is told all the same, and so is what follows.
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
