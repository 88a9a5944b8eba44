package supervisor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// A defect in what reads a list costs that list: it is an error that says so, about the server, and the next list is read.
func TestADefectWhileAListIsReadIsAnError(t *testing.T) {
	m := supervisortest.Start(t, supervisortest.NewServer("s", supervisortest.Echo("x")))
	err := m.ReadLists(t.Context(), "prompts/list", "s", func(context.Context, *session.Session) error { panic("ouch") })
	var e *supervisor.Error
	if !errors.As(err, &e) || e.Class != messages.ClassPanic || e.Outcome != messages.OutcomeUnknown || e.Server != "s" {
		t.Errorf("a defect: %v", err)
	}
	read := false
	if err := m.ReadLists(t.Context(), "prompts/list", "s", func(context.Context, *session.Session) error { read = true; return nil }); err != nil || !read {
		t.Errorf("after it: read %v, %v", read, err)
	}
}
