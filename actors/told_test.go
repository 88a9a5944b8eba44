package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

func TestHistoryIsBoundedAndSaysNothingTwice(t *testing.T) {
	var h History
	for i := range 3 * historySize {
		h.Add(Entry{Text: fmt.Sprint(i)})
		h.Add(Entry{Text: fmt.Sprint(i)})
	}
	got := h.Entries()
	if len(got) != historySize || got[0].Text != fmt.Sprint(2*historySize) || got[historySize-1].Text != fmt.Sprint(3*historySize-1) {
		t.Errorf("%d entries, from %q to %q", len(got), got[0].Text, got[len(got)-1].Text)
	}
}

func TestToolRule(t *testing.T) {
	for _, c := range []struct {
		allowed, denied []string
		tool, want      string
	}{
		{nil, nil, "x", ""},
		{[]string{}, nil, "x", "allowedTools"},
		{[]string{"x"}, nil, "x", ""},
		{[]string{"get_*"}, nil, "get_a", ""},
		{[]string{"get_*"}, nil, "set_a", "allowedTools"},
		{[]string{"*"}, []string{"drop_*"}, "drop_all", "deniedTools"},
		{nil, []string{"x"}, "xy", ""},
	} {
		if got := ToolRule(&messages.Spec{AllowedTools: c.allowed, DeniedTools: c.denied}, c.tool); got != c.want {
			t.Errorf("allowed %v, denied %v, tool %q: %q, want %q", c.allowed, c.denied, c.tool, got, c.want)
		}
	}
}

func TestCauseNamesTheLastWordsOfAChild(t *testing.T) {
	exited := &messages.Error{Class: messages.ClassExited, Text: "the process ended with exit status 1"}
	for _, c := range []struct {
		conn transports.Info
		want string
	}{
		{transports.Info{StderrTail: "first\nError: no token\n\n"}, "the process ended with exit status 1; its last words: Error: no token"},
		{transports.Info{}, "the process ended with exit status 1"},
		{transports.Info{StderrTail: "\x1b[31mred\x1b[0m"}, "the process ended with exit status 1; its last words: red"},
		{transports.Info{StderrTail: "listening", Exit: "signal: killed"}, "the process ended with exit status 1"},
		{transports.Info{StderrTail: "npm error code ENOENT\nnpm error enoent Could not read package.json: Error: " +
			"ENOENT: no such file or directory, open '/home/me/.npm/_npx/cd4394af9034e104/package.json'\n"},
			"the process ended with exit status 1; an installation in npx's cache was cut short, and every start fails until its folder is " +
				`deleted; delete "/home/me/.npm/_npx/cd4394af9034e104", then connect again`},
		{transports.Info{StderrTail: "terminate called after throwing an instance of 'x'\n  what():  no model\n", Exit: "signal: aborted (core dumped)"},
			"the process ended with exit status 1; its last words: no model"},
		{transports.Info{StderrTail: strings.Repeat("x", 10_000)}, "the process ended with exit status 1; its last words: " + strings.Repeat("x", 199) + "…"},
	} {
		if got := causeOf(exited, c.conn); got.Text != c.want || got.Class != messages.ClassExited {
			t.Errorf("%+v: %q", c.conn, got.Text)
		}
	}
	if got := causeOf(nil, transports.Info{}); got.Class != messages.ClassNetwork || got.Text == "" {
		t.Errorf("no error: %+v", got)
	}
}

func TestCellWakesWhoeverWaits(t *testing.T) {
	c := NewCell(&View{Attempts: 0})
	got := make(chan int, 10)
	for range 10 {
		go func() {
			v, err := c.Wait(context.Background(), func(v *View) bool { return v.Attempts >= 100 })
			if err != nil {
				t.Error(err)
			}
			got <- v.Attempts
		}()
	}
	for i := range 101 {
		c.Publish(&View{Attempts: i}, nil)
	}
	for range 10 {
		if n := <-got; n < 100 {
			t.Errorf("woken with %d", n)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := c.Wait(ctx, func(*View) bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// The reason says in a few words what a program reads from the parts.
func TestReason(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, s := range map[string]lifecycle.State{
		"dialing": {Phase: messages.Pending, Step: messages.Dialing},
		"restarting after exited, next attempt at 03:04:05": {Phase: messages.Pending, Step: messages.Restarting, NextAt: at, Cause: &lifecycle.Cause{Class: messages.ClassExited}},
		"timeout, retry at 03:04:05":                        {Phase: messages.Failed, Retry: messages.RetryAt, NextAt: at, Cause: &lifecycle.Cause{Class: messages.ClassTimeout}},
		"network, parked, probe at 03:04:05":                {Phase: messages.Failed, Retry: messages.RetryParked, NextAt: at, Cause: &lifecycle.Cause{Class: messages.ClassNetwork}},
		"config, not retried":                               {Phase: messages.Failed, Retry: messages.RetryNever, Cause: &lifecycle.Cause{Class: messages.ClassConfig}},
		"credentials needed for read write":                 {Phase: messages.NeedsAuth, Cause: &lifecycle.Cause{Challenge: &messages.Challenge{Scope: "read write"}}},
		"credentials needed":                                {Phase: messages.NeedsAuth},
		"cold":                                              {Phase: messages.Disabled},
		"warm: its connection is kept":                      {Phase: messages.Disabled, Conn: lifecycle.Open},
		"":                                                  {Phase: messages.Connected},
	} {
		if got := (&View{Spec: &messages.Spec{}, State: s}).Reason(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
