package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestAnAnswerAboutAnotherTaskIsNone: the session does not believe an answer about another task than the one that it
// asked about.
func TestAnAnswerAboutAnotherTaskIsNone(t *testing.T) {
	w := &wire{}
	taskID := "one"
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		switch m.Method {
		case "initialize":
			w.declareTasks(m.ID)
		case "tasks/get":
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"taskId":%q,"status":"working"}}`, m.ID, taskID))
		}
		return transports.Written, nil
	}
	s := connected(t, w, session.Config{})
	if task, err := s.Task(t.Context(), "one"); err != nil || task.ID != "one" || task.State != messages.TaskWorking {
		t.Errorf("%+v, %v", task, err)
	}
	taskID = "two"
	_, err := s.Task(t.Context(), "one")
	var e *messages.Error
	if !errors.As(err, &e) || e.Class != messages.ClassProtocol || !strings.Contains(e.Text, "another task") {
		t.Errorf("%v", err)
	}
	w.takeSent()
	for _, id := range []string{"", strings.Repeat("x", 4097)} {
		if _, err := s.Task(t.Context(), id); messages.OutcomeOf(err) != messages.OutcomeNotSent || messages.ClassOf(err) != messages.ClassInvalid {
			t.Errorf("an id of %d bytes: %v", len(id), err)
		}
	}
	if sent := w.takeSent(); len(sent) != 0 {
		t.Errorf("%d requests were sent about a task that cannot be", len(sent))
	}
}

// TestAHintFromBeforeAPollHastensNoOther: of two notifications about a task that come before a poll, the second does not bring the next
// poll forward: the answer was newer than both. Random days found it, with tasks that ask for input.
func TestAHintFromBeforeAPollHastensNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var polls []time.Duration
		w := &wire{}
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			switch m.Method {
			case "initialize":
				w.declareTasks(m.ID)
			case "tasks/get":
				polls = append(polls, time.Since(begin))
				state := "working"
				if len(polls) == 4 {
					state = "completed"
				}
				w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"taskId":"one","status":%q,"pollInterval":400}}`, m.ID, state))
			case "tasks/result":
				w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, m.ID))
			}
			return transports.Written, nil
		}
		s := connected(t, w, session.Config{Rand: func() float64 { return 0 }})
		hint := func() {
			w.receive(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"one","status":"working","pollInterval":400}}`)
		}
		time.AfterFunc(50*time.Millisecond, hint)
		time.AfterFunc(80*time.Millisecond, hint)
		if _, err := s.TaskResult(t.Context(), "one", nil); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond, 900 * time.Millisecond}
		for i := range polls {
			polls[i] = polls[i].Round(time.Millisecond)
		}
		if !slices.Equal(polls, want) {
			t.Errorf("the task was asked for at %v, and should have been at %v", polls, want)
		}
	})
}

// TestATaskThatAsksAgainIsFetchedAgain: a task of the legacy era asks on the stream of tasks/result. One whose server has refused that request,
// goes on, and asks anew gets another one: it would wait for its answer for ever.
func TestATaskThatAsksAgainIsFetchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		states := []string{"input_required", "working", "working", "input_required", "completed"}
		var mu sync.Mutex // guards what follows: the session sends both requests from goroutines of their own
		polls := 0
		var fetched []int // after how many polls tasks/result came
		w := &wire{}
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			mu.Lock()
			defer mu.Unlock()
			switch m.Method {
			case "initialize":
				w.declareTasks(m.ID)
			case "tasks/get":
				w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"taskId":"one","status":%q,"pollInterval":400}}`, m.ID, states[min(polls, len(states)-1)]))
				polls++
			case "tasks/result":
				if fetched = append(fetched, polls); len(fetched) == 1 {
					w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"not now"}}`, m.ID))
					break
				}
				time.AfterFunc(time.Second, func() { w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, m.ID)) })
			}
			return transports.Written, nil
		}
		s := connected(t, w, session.Config{Rand: func() float64 { return 0 }})
		_, err := s.TaskResult(t.Context(), "one", nil)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || !slices.Equal(fetched, []int{1, 4}) {
			t.Errorf("the result was asked for after %v polls, and should have been after the first and the fourth, at each of which the task asks: %v", fetched, err)
		}
	})
}
