package core

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
)

// A caller who cannot have an instance gets an error whose class says why. The supervisor waits for a change that may come soon, and lets a caller
// look again who has missed one.
func TestWhyACallerHasNoInstance(t *testing.T) {
	for what, c := range map[string]struct {
		set     func(s *supervisor, a *managedServer)
		class   messages.Class // ClassNone for no error
		wantErr error
		waits   bool
	}{
		"the manager closes":     {set: func(s *supervisor, _ *managedServer) { s.closing = &CloseAll{} }, class: messages.ClassCanceled, wantErr: messages.ErrClosed},
		"there is no server":     {set: func(s *supervisor, _ *managedServer) { clear(s.servers) }, class: messages.ClassInvalid, wantErr: messages.ErrUnknownServer},
		"the server is removed":  {set: func(_ *supervisor, a *managedServer) { a.removing = true }, class: messages.ClassInvalid, wantErr: messages.ErrUnknownServer},
		"the server comes back":  {set: func(_ *supervisor, a *managedServer) { a.removing, a.waitingSpec = true, a.spec }, waits: true},
		"all share it by now":    {set: func(_ *supervisor, a *managedServer) { a.spec.Share = "" }},
		"it is an instance":      {set: func(_ *supervisor, a *managedServer) { a.owner = &managedServer{} }},
		"the server is disabled": {set: func(_ *supervisor, a *managedServer) { a.wanted = false }, class: messages.ClassInvalid, wantErr: messages.ErrDisabled},
		"its spec is wrong":      {set: func(_ *supervisor, a *managedServer) { a.spec.Invalid = "x" }, class: messages.ClassConfig},
		"its spec is held":       {set: func(_ *supervisor, a *managedServer) { a.spec.Hold = "x" }, class: messages.ClassDenied},
		"the caller has one": {set: func(s *supervisor, a *managedServer) {
			s.servers["a@anna"] = &managedServer{name: "a@anna", owner: a, principal: "anna"}
		}},
		"the caller's old one ends": {set: func(s *supervisor, a *managedServer) {
			s.servers["a@anna"] = &managedServer{name: "a@anna", owner: a, principal: "anna", removing: true}
		}, waits: true},
		"a server has the name": {set: func(s *supervisor, _ *managedServer) {
			s.servers["a@anna"] = &managedServer{name: "a@anna"}
		}, class: messages.ClassInvalid},
		"a negative bound": {set: func(_ *supervisor, a *managedServer) { a.spec.MaxInstances = -1 }, class: messages.ClassConfig},
	} {
		s, a, _ := directed(t)
		a.spec.Share = messages.SharePrincipal
		c.set(s, a)
		before := len(s.servers)
		var replies []error
		s.handleStartInstance(nil, StartInstance{Server: "a", Principal: "anna", Reply: func(err error) { replies = append(replies, err) }})
		if c.waits {
			waiting := a.waitingCommands
			if i := s.servers["a@anna"]; i != nil {
				waiting = i.waitingCommands
			}
			if len(replies) != 0 || len(waiting) != 1 {
				t.Errorf("%s: %d replies, and %d commands wait", what, len(replies), len(waiting))
			}
			continue
		}
		if len(replies) != 1 || len(s.servers) != before {
			t.Errorf("%s: %d replies, %d servers more", what, len(replies), len(s.servers)-before)
			continue
		}
		if got := messages.ClassOf(replies[0]); got != c.class || c.wantErr != nil && !errors.Is(replies[0], c.wantErr) {
			t.Errorf("%s: class %q, not %q: %v", what, got, c.class, replies[0])
		}
		if replies[0] != nil && messages.OutcomeOf(replies[0]) != messages.OutcomeNotSent {
			t.Errorf("%s: outcome %s", what, messages.OutcomeOf(replies[0]))
		}
	}
}

// An instance ends when no request has used it for its time of idleness. One that is not connected keeps, for ten minutes at least and until its
// next attempt, the delay that its failures have earned.
func TestWhenAnInstanceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle, unused = time.Minute, 20 * time.Second
		for _, c := range []struct {
			phase messages.Phase
			retry messages.Retry
			next  time.Duration // to the next attempt
			want  time.Duration // to the end
		}{
			{phase: messages.Connected, want: idle - unused},
			{phase: messages.NeedsAuth, want: idle - unused},
			{phase: messages.Disabled, want: idle - unused},
			{phase: messages.Pending, want: messages.DefaultInstanceIdle - unused},
			{phase: messages.Failed, want: messages.DefaultInstanceIdle - unused},
			{phase: messages.Failed, retry: messages.RetryAt, next: time.Hour, want: time.Hour + time.Second},
			{phase: messages.Pending, retry: messages.RetryAt, next: time.Hour, want: time.Hour + time.Second},
			{phase: messages.Failed, retry: messages.RetryAt, next: -time.Second, want: messages.DefaultInstanceIdle - unused}, // it is due
			{phase: messages.Failed, retry: messages.RetryNever, next: time.Hour, want: messages.DefaultInstanceIdle - unused},
		} {
			i := &managedServer{owner: &managedServer{spec: &messages.Spec{InstanceIdle: messages.Duration(idle)}}}
			use := actors.NewUse("anna", 0)
			time.Sleep(unused)
			now := time.Now()
			i.cell = actors.NewCell(&actors.View{State: lifecycle.State{Phase: c.phase, Retry: c.retry, NextAt: now.Add(c.next)}})
			i.cell.Use = use
			if got := new(supervisor).idleEnd(i, now).Sub(now); got != c.want {
				t.Errorf("%s, retry %q in %v: it ends after %v, not %v", c.phase, c.retry, c.next, got, c.want)
			}
		}
	})
}

// The clock of the instances is set for the first of them that may end, whichever was looked at last.
func TestTheClockIsSetForTheInstanceThatEndsFirst(t *testing.T) {
	s, _, sent := directed(t)
	now := time.Now()
	for _, c := range []struct{ at, want time.Duration }{
		{time.Hour, time.Hour}, {2 * time.Hour, time.Hour}, {time.Hour, time.Hour}, {time.Minute, time.Minute}, {time.Hour, time.Minute},
	} {
		if s.armInstances(now.Add(c.at)); !s.instancesAt.Equal(now.Add(c.want)) {
			t.Errorf("armed for %v, it is set for %v, not %v", c.at, s.instancesAt.Sub(now), c.want)
		}
	}
	s.armInstances(now.Add(-time.Second)) // is due
	if _, ok := (<-sent).(instancesDue); !ok {
		t.Error("what is due is not looked at")
	}
}
