package actors

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/actors/opening"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// A status shows in each phase what is true of it, and nothing that was true of the connection before.
func TestAStatusShowsWhatIsTrueOfItsPhase(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cause := &lifecycle.Cause{Class: messages.ClassNetwork, Text: "lost", Challenge: &messages.Challenge{Scope: "read"}}
	for what, c := range map[string]struct {
		state                              lifecycle.State
		speaks, tools, unlisted, err, next bool
	}{
		"connected": {state: lifecycle.State{Wanted: true, Phase: messages.Connected, Conn: lifecycle.Open}, speaks: true, tools: true, unlisted: true},
		"warm":      {state: lifecycle.State{Phase: messages.Disabled, Conn: lifecycle.Open}, speaks: true},
		"cold":      {state: lifecycle.State{Phase: messages.Disabled}},
		"resting":   {state: lifecycle.State{Wanted: true, Phase: messages.Pending, Step: messages.Idle}, tools: true},
		"dialing":   {state: lifecycle.State{Wanted: true, Phase: messages.Pending, Step: messages.Dialing, Conn: lifecycle.Opening}},
		"restarting": {state: lifecycle.State{Wanted: true, Phase: messages.Pending, Step: messages.Restarting, Cause: cause, NextAt: at, Retry: messages.RetryAt},
			err: true, next: true},
		"failed":     {state: lifecycle.State{Wanted: true, Phase: messages.Failed, Cause: cause, NextAt: at, Retry: messages.RetryAt}, err: true, next: true},
		"needs-auth": {state: lifecycle.State{Wanted: true, Phase: messages.NeedsAuth, Cause: cause}, err: true},
	} {
		v := &View{Name: "a", Spec: &messages.Spec{Command: "a"}, State: c.state, Since: at, Restarts: 2, Attempts: 3, Unlisted: "no list today",
			Last:  transports.Info{StderrTail: "last words", Noise: 4},
			Info:  &session.Info{ProtocolVersion: "2025-11-25", Era: messages.EraLegacy, Instructions: "be kind"},
			Tools: &session.ToolList{Tools: []messages.Tool{{Name: "t", Description: "d"}}, Quarantined: []messages.QuarantinedTool{{Name: "q"}}}}
		v.Info.ServerInfo.Name = "it"
		st := v.Status()
		if st.Name != "a" || st.Status != c.state.Phase || st.Restarts != 2 || st.Attempts != 3 || !st.Since.Equal(at) || st.Noise != 4 ||
			st.StderrTail != "last words" || st.ServerInfo == nil || st.ServerInfo.Name != "it" || st.PID != 0 {
			t.Errorf("%s: %+v", what, st)
		}
		if (st.ProtocolVersion != "") != c.speaks || (st.Era != "") != c.speaks || (st.Instructions != "") != c.speaks {
			t.Errorf("%s: it speaks %q of %q and says %q", what, st.ProtocolVersion, st.Era, st.Instructions)
		}
		if (len(st.Tools) == 1) != c.tools || (len(st.Quarantined) == 1) != c.tools {
			t.Errorf("%s: tools %v, quarantined %v", what, st.Tools, st.Quarantined)
		}
		if (st.ToolsError != "") != c.unlisted {
			t.Errorf("%s: the error of its tools is %q", what, st.ToolsError)
		}
		if (st.Error == "lost") != c.err || (st.Class == messages.ClassNetwork) != c.err || (st.Challenge != nil) != c.err {
			t.Errorf("%s: error %q of class %q, %v", what, st.Error, st.Class, st.Challenge)
		}
		if (st.NextAttempt != nil) != c.next {
			t.Errorf("%s: next attempt %v", what, st.NextAttempt)
		}
	}
}

// The error of an attempt that took too long says what it spent its time with, and what helps.
func TestAnAttemptThatTookTooLongSaysWhy(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	limits := opening.Limits{Silence: 30 * time.Second, Most: 10 * time.Minute, Process: true, Runner: true}
	lasted := func(d time.Duration) opening.State {
		s, _ := opening.Begin(limits, began)
		s, _ = s.Observe(opening.Limits{Exact: true, Silence: time.Hour, Most: time.Hour}, opening.Observation{At: began.Add(d)})
		return s
	}
	installing, endless, starved := lasted(40*time.Second), lasted(10*time.Minute), lasted(40*time.Second)
	installing.Installing, endless.Installing, starved.Waited = true, true, 12*time.Second
	spec := &messages.Spec{Command: "npx", Args: []string{"x"}}
	for what, c := range map[string]struct {
		state opening.State
		text  string
		fix   string
	}{
		"silence": {lasted(30 * time.Second), "no answer within 30s",
			"see what it writes to stderr, or raise connectTimeout if it is only slow to start"},
		"a processor": {starved, "no answer within 30s, besides 12s in which it waited for a processor",
			"see what it writes to stderr, or raise connectTimeout if it is only slow to start; fewer servers, or more processors, make it faster"},
		"an installation": {installing, "npx was at work for 0s, and then no answer for 40s",
			"see what it writes to stderr, or raise connectTimeout if it is only slow to start"},
		"an installation without an end": {endless, "npx was still at work after 10m0s, and its server had not said anything",
			"run the command by hand once to see how far it comes; connectTimeout gives it longer"},
	} {
		a := &attempt{spec: spec, limits: limits, opening: c.state}
		if e := a.tooLong("no answer"); e.Text != c.text || e.Fix != c.fix || e.Class != messages.ClassTimeout || e.Op != "connect" {
			t.Errorf("%s: %q, %q, %s", what, e.Text, e.Fix, e.Class)
		}
	}
	far := &attempt{spec: &messages.Spec{URL: "https://example.org"}, limits: limits, opening: lasted(30 * time.Second),
		transport: inprocess.New(nil)}
	if e := far.tooLong("no answer"); e.Fix != "see whether it works, or raise connectTimeout if it is only slow" {
		t.Errorf("%q", e.Fix)
	}
}
