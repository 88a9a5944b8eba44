package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestToolsChanged shows that a change is never lost and that a burst becomes one call: all changes during the first
// call become one more. The callback lists the tools, which must not deadlock.
func TestToolsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		hello(w, func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			time.Sleep(time.Second) // a slow list
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[]}}`, m.ID))
			return transports.Written, nil
		})
		var s *session.Session
		calls := 0
		s = connected(t, w, session.Config{OnToolsChanged: func() {
			calls++
			if _, err := s.ListTools(t.Context()); err != nil {
				t.Error(err)
			}
		}})
		for range 100 {
			w.receive(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if calls != 2 {
			t.Errorf("%d calls for a burst that arrived during the first, want 2", calls)
		}
		w.receive(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if calls != 3 {
			t.Error("a later change was lost")
		}
	})
}

// TestCallbackThatPanics: a panic of a callback ends its own session with ClassPanic, and nothing else.
func TestCallbackThatPanics(t *testing.T) {
	w := &wire{}
	s := connected(t, w, session.Config{OnLog: func(string, string, json.RawMessage) { panic("index out of range") }})
	w.receive(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
	<-s.Released()
	var e *messages.Error
	if !errors.As(s.Err(), &e) || e.Class != messages.ClassPanic || !strings.Contains(e.Text, "index out of range") {
		t.Errorf("the session ended because of %v", s.Err())
	}
}

// TestCloseFromCallback: a callback that closes the session does not wait for itself.
func TestCloseFromCallback(t *testing.T) {
	w := &wire{}
	var s *session.Session
	closed := make(chan error, 1)
	s = connected(t, w, session.Config{OnToolsChanged: func() { closed <- s.Close(t.Context()) }})
	w.receive(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	<-s.Released()
}

// TestFloods: a server that asks or logs faster than the handlers and callbacks return fills a bounded queue and
// never blocks the reader.
func TestFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		logs := 0
		s := connected(t, w, session.Config{OnLog: func(string, string, json.RawMessage) {
			logs++
			time.Sleep(time.Second)
		}})
		var inSend atomic.Int64
		w.onSend = func(ctx context.Context, m transports.Message) (transports.Delivery, error) {
			if inSend.Add(1) > 1 {
				t.Error("two answers are sent at once")
			}
			defer inSend.Add(-1)
			<-ctx.Done()
			return transports.MaybeWritten, &transports.Error{Class: messages.ClassTimeout, Text: "stuck"}
		}
		for range 5000 {
			w.receive(`{"jsonrpc":"2.0","id":"x","method":"ping"}`)
			w.receive(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		}
		synctest.Wait()
		// One of each kind is being worked on, or still in its queue, beside those that fit.
		if stats := s.Stats(); stats.Unsent < 5000-1025 || stats.DroppedLogs < 5000-257 {
			t.Errorf("dropped too little: %+v", stats)
		}
		// A few large logs fill the queue by their size.
		before := s.Stats().DroppedLogs
		time.Sleep(time.Hour)
		synctest.Wait()
		if logs < 256 || logs > 257 {
			t.Errorf("%d logs were handed on, want those that fit", logs)
		}
		large := `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"` + strings.Repeat("x", 600<<10) + `"}}`
		for range 10 {
			w.receive(large)
		}
		if dropped := s.Stats().DroppedLogs - before; dropped < 8 {
			t.Errorf("of 10 logs of 600 KiB %d were dropped", dropped)
		}
	})
}

// TestAnIdIsFreeOnceItsAnswerIsSent: a server that used the id of its question again, as soon as it had the answer, was refused
// with "too many requests", because the session forgot the question after it had sent the answer.
func TestAnIdIsFreeOnceItsAnswerIsSent(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":"q","method":"roots/list"}`
	w := &wire{}
	answers := make(chan string, 1)
	left := 500 // the answers are sent one at a time
	hello(w, func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		if body := string(m.Body); left == 0 || !strings.Contains(body, `"result"`) {
			answers <- body
		} else {
			left--
			w.receive(question)
		}
		return transports.Written, nil
	})
	connected(t, w, session.Config{Handlers: session.Handlers{Roots: func(context.Context) ([]messages.Root, error) { return nil, nil }}})
	w.receive(question)
	if last := <-answers; !strings.Contains(last, `"result"`) {
		t.Errorf("with %d questions left the answer was %s", left, last)
	}
}

// TestAnIdThatIsInUseIsRefused: the text says what the server did, so that its author need not look for a flood.
func TestAnIdThatIsInUseIsRefused(t *testing.T) {
	w, answers, finish := &wire{}, make(chan string, 2), make(chan struct{})
	hello(w, func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		answers <- string(m.Body)
		return transports.Written, nil
	})
	connected(t, w, session.Config{Handlers: session.Handlers{Roots: func(context.Context) ([]messages.Root, error) {
		<-finish
		return nil, nil
	}}})
	w.receive(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
	w.receive(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
	if refusal := <-answers; !strings.Contains(refusal, "a request with this id is being answered already") {
		t.Error(refusal)
	}
	close(finish)
	if answer := <-answers; !strings.Contains(answer, `"result"`) {
		t.Error(answer)
	}
}
