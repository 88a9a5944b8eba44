package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

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
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{}},`+
				`"serverInfo":{"name":"s","version":"1"}}}`, m.ID))
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
