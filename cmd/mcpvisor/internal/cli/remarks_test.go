package cli

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// TestExitCodes checks the exit code for each kind of error; scripts depend on them.
func TestExitCodes(t *testing.T) {
	e := func(o messages.Outcome, c messages.Class, err error) error {
		return &messages.Error{Outcome: o, Class: c, Err: err, Text: "x"}
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exit.OK},
		{errors.New("a flag"), exit.Usage},
		{&exit.Error{Code: exit.Failed}, exit.Failed},
		{e("", messages.ClassConfig, nil), exit.Usage},
		{e("", messages.ClassExited, nil), exit.Failed},
		{e("", messages.ClassCanceled, nil), exit.Interrupted},
		{e("", messages.ClassInvalid, messages.ErrUnknownServer), exit.Usage},
		{e(messages.OutcomeNotSent, messages.ClassExited, nil), exit.NotSent},
		{e(messages.OutcomeNotSent, messages.ClassDenied, nil), exit.NotSent},
		{e(messages.OutcomeNotSent, messages.ClassInvalid, messages.ErrDisabled), exit.NotSent},
		{e(messages.OutcomeNotSent, messages.ClassInvalid, messages.ErrUnknownTool), exit.Usage},
		{e(messages.OutcomeNotSent, messages.ClassInvalid, nil), exit.Usage},
		{e(messages.OutcomeUnknown, messages.ClassTimeout, nil), exit.Unknown},
		{e(messages.OutcomeUnknown, messages.ClassCanceled, nil), exit.Unknown},
		{e(messages.OutcomeRejected, messages.ClassRejected, nil), exit.Rejected},
		{e(messages.OutcomeRejected, messages.ClassForbidden, nil), exit.Rejected},
	} {
		o := &Options{Streams: terminal.Streams{Err: &bytes.Buffer{}}}
		if got := o.ReportError(c.err); got != c.want {
			t.Errorf("%+v: %d, not %d", c.err, got, c.want)
		}
	}
}
