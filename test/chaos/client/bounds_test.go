package client

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestASlowMachineIsNoHang: a run may take longer than its patience while the time of its day goes on, and ten times as long at most.
func TestASlowMachineIsNoHang(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		takes time.Duration                          // the run; 0 for ever
		now   func(real time.Duration) time.Duration // in the day
		ok    bool
		after time.Duration
	}{
		"soon":              {time.Second, func(time.Duration) time.Duration { return 0 }, true, time.Second},
		"slow, and goes on": {330 * time.Second, func(real time.Duration) time.Duration { return real / 1000 }, true, 330 * time.Second},
		"stands still":      {0, func(time.Duration) time.Duration { return time.Second }, false, 2 * time.Minute},
		"never ends":        {0, func(real time.Duration) time.Duration { return real }, false, mostRealTimes * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ended := make(chan error, 1)
				if c.takes > 0 {
					time.AfterFunc(c.takes, func() { ended <- failed })
				}
				err, ok := awaitEnd(ended, time.Minute, func() time.Duration { return c.now(time.Since(began)) })
				if ok != c.ok || ok && !errors.Is(err, failed) || time.Since(began) != c.after {
					t.Errorf("%v, %v after %v", err, ok, time.Since(began))
				}
			})
		})
	}
}

// TestFollowedRedirectsAreNoStorm: C7 counts ten openings of a server that redirects as one attempt, and more than that all the same.
func TestFollowedRedirectsAreNoStorm(t *testing.T) {
	judge := func(openings int, faults ...scenario.PlannedFault) invariant.Answer {
		h := &history.History{Plan: scenario.Plan{End: time.Minute, Faults: faults, Servers: []scenario.Server{{Name: "s"}}}}
		for i := range openings {
			h.Events = append(h.Events, history.Event{T: time.Duration(i) * time.Millisecond, Server: "s", Side: history.World, Kind: history.Open, Conn: i + 1})
		}
		for _, v := range Judge(h, Limits{}) {
			if v.ID == "C7" {
				return v.Answer
			}
		}
		return ""
	}
	redirect := scenario.PlannedFault{ID: 1, Fault: "redirect", Server: "s", End: time.Minute}
	elsewhere := scenario.PlannedFault{ID: 1, Fault: "redirect", Server: "t", End: time.Minute}
	if got := judge(200, redirect); got == invariant.Violated {
		t.Errorf("twenty attempts with their redirects: %v", got)
	}
	for _, got := range []invariant.Answer{judge(200), judge(200, elsewhere), judge(600, redirect)} {
		if got != invariant.Violated {
			t.Errorf("a storm: %v", got)
		}
	}
}

// TestACallWithoutTimeIsNoFailure: C4 blames no client for a call whose deadline came before any answer could, as a day that was made
// smaller may hold, and blames it for one that had time.
func TestACallWithoutTimeIsNoFailure(t *testing.T) {
	for deadline, want := range map[time.Duration]invariant.Answer{0: invariant.Inconclusive, time.Second: invariant.Inconclusive, 3 * time.Second: invariant.Violated} {
		const asked = 2 * time.Minute
		h := &history.History{
			Plan: scenario.Plan{End: 3 * time.Minute, Servers: []scenario.Server{{Name: "s", Latency: 200 * time.Millisecond}}},
			Events: []history.Event{
				{Server: "s", Side: history.World, Kind: history.Changed, Names: []string{"write"}},
				{T: 40 * time.Second, Side: history.World, Kind: history.Heal},
				{T: asked, Server: "s", Side: history.Caller, Kind: history.Call, Call: "c1", Tool: "write", Deadline: asked + deadline},
				{T: asked + deadline, Server: "s", Side: history.Caller, Kind: history.End, Call: "c1", Outcome: messages.OutcomeUnknown},
			},
		}
		for _, v := range Judge(h, Limits{}) {
			if v.ID == "C4" && v.Answer != want {
				t.Errorf("a deadline after %v: %v, want %v", deadline, v.Answer, want)
			}
		}
	}
}
