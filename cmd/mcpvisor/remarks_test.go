package main

import (
	"bytes"
	"errors"
	"testing"

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
		{nil, exitOK},
		{errors.New("a flag"), exitUsage},
		{&exitError{code: exitFailed}, exitFailed},
		{e("", messages.ClassConfig, nil), exitUsage},
		{e("", messages.ClassExited, nil), exitFailed},
		{e("", messages.ClassCanceled, nil), exitInterrupted},
		{e("", messages.ClassInvalid, messages.ErrUnknownServer), exitUsage},
		{e(messages.OutcomeNotSent, messages.ClassExited, nil), exitNotSent},
		{e(messages.OutcomeNotSent, messages.ClassDenied, nil), exitNotSent},
		{e(messages.OutcomeNotSent, messages.ClassInvalid, messages.ErrDisabled), exitNotSent},
		{e(messages.OutcomeNotSent, messages.ClassInvalid, messages.ErrUnknownTool), exitUsage},
		{e(messages.OutcomeNotSent, messages.ClassInvalid, nil), exitUsage},
		{e(messages.OutcomeUnknown, messages.ClassTimeout, nil), exitUnknown},
		{e(messages.OutcomeUnknown, messages.ClassCanceled, nil), exitUnknown},
		{e(messages.OutcomeRejected, messages.ClassRejected, nil), exitRejected},
		{e(messages.OutcomeRejected, messages.ClassForbidden, nil), exitRejected},
	} {
		o := &options{streams: streams{err: &bytes.Buffer{}}}
		if got := o.reportError(c.err); got != c.want {
			t.Errorf("%+v: %d, not %d", c.err, got, c.want)
		}
	}
}
