package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestJSONIsSafeAndMeansTheSame checks that escaped JSON decodes to the same values and holds nothing that acts on a terminal.
func TestJSONIsSafeAndMeansTheSame(t *testing.T) {
	want := map[string]any{
		"esc": "\x1b[2J", "c1": "a\u009bb", "bidi": "x\u202ey", "zero": "a\u200bb", "tag": "a\U000e0041b",
		"plain":    "ä€𝄞 <&>\n\t",
		"replaced": "\ufffd", "line": "\u2028",
	}
	var b bytes.Buffer
	if err := printJSON(&b, want); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); messages.Printable(text) != text {
		t.Errorf("it holds something that acts on a terminal: %q", text)
	}
	var got map[string]any
	want["schema"] = float64(jsonSchema)
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q became %q (%v)", want, got, err)
	}
}

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

// TestShellWord checks which names are quoted for a shell.
func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{
		"a-b_c.d": "a-b_c.d", "two words": "'two words'", "it's": `'it'\''s'`, "$x": "'$x'",
	} {
		if got := shellWord(s); got != want {
			t.Errorf("%q: %s, not %s", s, got, want)
		}
	}
}

// TestTimesForPeople checks clockTime on the same day and another, and relativeTime in both directions.
func TestTimesForPeople(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)
	if got := clockTime(now.Add(time.Minute), now); got != "12:01:00" {
		t.Error(got)
	}
	if got := clockTime(now.Add(-24*time.Hour), now); got != "2026-05-03 12:00:00" {
		t.Error(got)
	}
	if got := relativeTime(now.Add(90*time.Second), now); got != "in 1m30s" {
		t.Error(got)
	}
	if got := relativeTime(now.Add(-5*time.Second), now); got != "5s ago" {
		t.Error(got)
	}
}

// TestAdviceForEveryClass checks that there is advice for every class of failures that has no error text with advice of its
// own.
func TestAdviceForEveryClass(t *testing.T) {
	own := map[messages.Class]bool{ // they do not make a server fail, or never without a text of their own
		messages.ClassNone: true, messages.ClassCanceled: true, messages.ClassInvalid: true, messages.ClassRejected: true,
		messages.ClassSession: true, messages.ClassUnauthorized: true, // needs-auth has its own
	}
	for _, class := range messages.Classes {
		st := messages.Status{Name: "x", Status: messages.Failed, Class: class, Error: "e"}
		if got := statusAdvice(st, nil, false); len(got) == 0 && !own[class] {
			t.Errorf("no advice for class %q", class)
		}
	}
	for _, phase := range messages.Phases {
		st := messages.Status{Name: "x", Status: phase, Class: messages.ClassUnauthorized}
		if got := statusAdvice(st, nil, true); (len(got) == 0) != (phase == messages.Connected || phase == messages.Failed) {
			t.Errorf("%s: %v", phase, got)
		}
	}
}
