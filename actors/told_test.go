package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

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
		// A star may stand anywhere, as in the rules of permissions.
		{nil, []string{"*_delete"}, "user_delete", "deniedTools"},
		{nil, []string{"*_delete"}, "user_deleted", ""},
		{nil, []string{"user_*_now"}, "user_drop_now", "deniedTools"},
		{[]string{"*_read"}, nil, "user_read", ""},
		{[]string{"*_read"}, nil, "user_write", "allowedTools"},
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
		// Without a planned attempt there is no time to name.
		"restarting after network":             {Phase: messages.Pending, Step: messages.Restarting, Cause: &lifecycle.Cause{Class: messages.ClassNetwork}},
		"exited":                               {Phase: messages.Failed, Retry: messages.RetryAt, Cause: &lifecycle.Cause{Class: messages.ClassExited}},
		"timeout, parked":                      {Phase: messages.Failed, Retry: messages.RetryParked, Cause: &lifecycle.Cause{Class: messages.ClassTimeout}},
		"config, not retried":                  {Phase: messages.Failed, Retry: messages.RetryNever, Cause: &lifecycle.Cause{Class: messages.ClassConfig}},
		"exited, next attempt not planned yet": {Phase: messages.Failed, Conn: lifecycle.Closing, Cause: &lifecycle.Cause{Class: messages.ClassExited}},
		"credentials needed for read write":    {Phase: messages.NeedsAuth, Cause: &lifecycle.Cause{Challenge: &messages.Challenge{Scope: "read write"}}},
		"credentials needed":                   {Phase: messages.NeedsAuth},
		"cold":                                 {Phase: messages.Disabled},
		"warm: its connection is kept":         {Phase: messages.Disabled, Conn: lifecycle.Open},
		"":                                     {Phase: messages.Connected},
	} {
		if got := (&View{Spec: &messages.Spec{}, State: s}).Reason(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

// Whatever people follow of a server is told to watchers, each time that it changes, and nothing else is.
func TestWhatPeopleFollowIsTold(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	network := &lifecycle.Cause{Class: messages.ClassNetwork, Text: "lost"}
	failed := lifecycle.State{Wanted: true, Phase: messages.Failed, Epoch: 1, Cause: network, StartRequested: true, Retry: messages.RetryAt, NextAt: at}
	later, parked, listing, ticket := failed, failed, failed, failed
	later.NextAt = at.Add(time.Second)
	parked.Retry = messages.RetryParked
	listing.Listing = true
	ticket.Ticket, ticket.Answered = 7, 7
	sameInstant := failed
	sameInstant.NextAt = at.In(time.FixedZone("", 3600))
	refused := lifecycle.State{Wanted: true, Phase: messages.NeedsAuth, Epoch: 1, Cause: network}
	cold := lifecycle.State{Phase: messages.Disabled, Epoch: 1}
	warm := lifecycle.State{Phase: messages.Disabled, Epoch: 1, Conn: lifecycle.Open}
	dialing := lifecycle.State{Wanted: true, Phase: messages.Pending, Step: messages.Dialing, Epoch: 1}
	greeting := lifecycle.State{Wanted: true, Phase: messages.Pending, Step: messages.Handshaking, Epoch: 1}
	for what, c := range map[string]struct {
		before, now lifecycle.State
		kinds       []messages.EventKind
	}{
		"nothing":              {failed, failed, nil},
		"a list":               {failed, listing, nil},
		"a request":            {failed, ticket, nil},
		"the zone of a time":   {failed, sameInstant, nil},
		"the time":             {failed, later, []messages.EventKind{messages.EventPhase}},
		"what follows":         {failed, parked, []messages.EventKind{messages.EventPhase}},
		"the step":             {dialing, greeting, []messages.EventKind{messages.EventPhase}},
		"the phase":            {warm, failed, []messages.EventKind{messages.EventPhase}},
		"a kept connection":    {warm, cold, []messages.EventKind{messages.EventPhase}},
		"credentials":          {cold, refused, []messages.EventKind{messages.EventPhase, messages.EventAuthRequired}},
		"no more credentials":  {refused, cold, []messages.EventKind{messages.EventPhase}},
		"the same credentials": {refused, refused, nil},
	} {
		hub := NewHub()
		watcher := hub.Watch(10)
		v := &View{Name: "a", Spec: &messages.Spec{}, State: c.now}
		s := &Server{state: c.now, cfg: ServerConfig{Name: "a", Cell: NewCell(v), Common: &Common{Hub: hub, Log: zap.NewNop()}}}
		s.publishChange(v, c.before)
		watcher.Close()
		var kinds []messages.EventKind
		for e := range watcher.Events(t.Context()) {
			if kinds = append(kinds, e.Kind); e.Status == nil || e.Status.Status != c.now.Phase || e.Server != "a" {
				t.Errorf("%s: %+v", what, e)
			}
		}
		if fmt.Sprint(kinds) != fmt.Sprint(c.kinds) {
			t.Errorf("%s has changed, and %v was told, not %v", what, kinds, c.kinds)
		}
	}
}

// saying is a turn of an actor, of which only the message is there.
type saying struct {
	actor.Context
	message any
}

func (s saying) Message() any { return s.message }

// Each timer of a burst has a number of its own, by which one that was replaced is known.
func TestEachTimerOfABurstHasItsNumber(t *testing.T) {
	s := &Server{}
	s.cfg.Common = &Common{}
	s.cfg.Timing.Quiet, s.cfg.Timing.MaxWait = time.Hour, time.Hour
	for round := 1; round <= 3; round++ {
		before := s.relist
		s.scheduleRelist(lifecycle.Coalesce{Epoch: 1})
		if s.relistRound != round || before != nil && before.Stop() {
			t.Errorf("timer %d has number %d, and the one before it still runs", round, s.relistRound)
		}
	}
	s.relist.Stop()
}

// A timer that was replaced in the moment in which it rang is not one that has rung: the burst goes on.
func TestATimerThatWasReplacedListsNothing(t *testing.T) {
	began := time.Now()
	v := &View{}
	s := &Server{relistRound: 2, dirtySince: began, cfg: ServerConfig{Cell: NewCell(v), Common: &Common{Hub: NewHub()}}}
	s.Receive(saying{message: relistDue{epoch: 1, round: 1}})
	if s.dirtySince != began {
		t.Error("the burst has ended with the timer that was replaced")
	}
	s.Receive(saying{message: relistDue{epoch: 1, round: 2}})
	if !s.dirtySince.IsZero() {
		t.Error("the burst goes on after its timer has rung")
	}
}
