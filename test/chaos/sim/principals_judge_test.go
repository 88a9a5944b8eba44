package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The release of a connection may be told after the dial of the next one in the same instant. A connection that is still there
// afterwards is a second one.
func TestAnInstanceHasOneConnection(t *testing.T) {
	for _, released := range []bool{true, false} {
		rec := history.NewRecorder(scenario.Plan{}, nil)
		w := &simulation{rec: rec, start: time.Now(), virtualNow: time.Second}
		p := &principals{world: w}
		h := &simServer{w: w, conns: map[int]*simConn{1: {}, 2: {}}}
		p.checkOnlyConn("mail@carl", h)
		if released {
			delete(h.conns, 1)
		}
		for do := w.timeline.takeDue(w.virtualNow + 1); do != nil; do = w.timeline.takeDue(w.virtualNow + 1) {
			do()
		}
		if n := rec.Len(); (n == 0) != released {
			t.Errorf("released %v: %d violations", released, n)
		}
	}
}

// A connection that is still opening may be there a minute after a reconnect: an attempt that runs is as good as a new one. One that is open, or
// was already to end, may not, and no connection outlives another specification, a removal or, of an instance, the disabling of its server.
func TestACommandEndsTheConnectionsOfInstances(t *testing.T) {
	for _, tt := range []struct {
		command, name     string
		phase             messages.Phase
		step              messages.Step
		refused, violated bool
	}{
		{command: reconnection, name: "mail@carl", phase: messages.Pending, step: messages.Handshaking},
		{command: reconnection, name: "mail@carl", phase: messages.Pending, step: messages.Listing},
		{command: reconnection, name: "mail@carl", phase: messages.Pending, step: messages.Closing, violated: true},
		{command: reconnection, name: "mail@carl", phase: messages.Connected, violated: true},
		{command: reconnection, name: "mail@carl", phase: messages.Connected, refused: true},
		{command: reconnection, name: "mail", phase: messages.Connected, violated: true},
		{command: reconnection, name: "notes@carl", phase: messages.Connected},
		{command: otherSpec, name: "mail@carl", phase: messages.Pending, step: messages.Listing, violated: true},
		{command: removal, name: "mail@carl", phase: messages.Pending, step: messages.Listing, violated: true},
		{command: disabling, name: "mail@carl", phase: messages.Pending, step: messages.Listing, violated: true},
		{command: disabling, name: "mail", phase: messages.Connected},
	} {
		rec := history.NewRecorder(scenario.Plan{}, nil)
		w := &simulation{rec: rec, start: time.Now(), virtualNow: time.Second}
		p := &principals{world: w, hosts: map[string]*simServer{tt.name: {w: w, conns: map[int]*simConn{2: {}}}}}
		p.expectEnded("mail", tt.command, []messages.Status{{Name: tt.name, Status: tt.phase, Step: tt.step}}, func() bool { return tt.refused })
		for do := w.timeline.takeDue(time.Second + endsInstances); do != nil; do = w.timeline.takeDue(time.Second + endsInstances) {
			do()
		}
		if n := rec.Len(); (n > 0) != tt.violated {
			t.Errorf("%+v: %d violations", tt, n)
		}
	}
}

// A caller is refused for the sake of others only if there are as many instances as may be: free places are given.
func TestACallerIsRefusedOnlyWhenAllInstancesAreTaken(t *testing.T) {
	for _, tt := range []struct {
		most     int
		err      error
		violated bool
	}{{2, supervisor.ErrTooManyInstances, false}, {1, supervisor.ErrTooManyInstances, true}, {1, nil, false}} {
		rec := history.NewRecorder(scenario.Plan{}, nil)
		p := &principals{world: &simulation{rec: rec, start: time.Now()}, specs: map[string]messages.Spec{"mail": {MaxInstances: 2}}}
		p.checkFull("p-1", "mail", tt.most, tt.err)
		if n := rec.Len(); (n > 0) != tt.violated {
			t.Errorf("%d of 2, ended with %v: %d violations", tt.most, tt.err, n)
		}
	}
}

// An agent is shown what its caller is offered, without the tools of a connection that was lost (seed 20995072).
func TestAgentsAreShownNoLostTools(t *testing.T) {
	offered := func(server, tool string, state catalog.State) *supervisor.Entry {
		return &supervisor.Entry{Tool: &messages.Tool{Server: server, Name: tool}, State: state}
	}
	got := namesForAgents([]*supervisor.Entry{offered("notes", "put", catalog.Lost), offered("mail", "write", catalog.Live), offered("mail", "put", catalog.Cached)})
	if want := []string{"mail__put", "mail__write"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A call that takes longer than its instance may be idle uses the instance until it is answered.
func TestAnInstanceIsUsedUntilTheAnswer(t *testing.T) {
	for _, tt := range []struct {
		end      time.Duration
		violated bool
	}{{211 * time.Second, true}, {216 * time.Second, false}} {
		rec := history.NewRecorder(scenario.Plan{}, nil)
		w := &simulation{rec: rec, start: time.Now()}
		p := &principals{world: w, hosts: map[string]*simServer{}, use: map[string]*instanceUse{}, calls: map[string]principalCall{"p-1": {"mail", "carl", "read"}},
			specs: map[string]messages.Spec{"mail": {InstanceIdle: messages.Duration(5 * time.Second)}}}
		for _, e := range []history.Event{
			{T: 200 * time.Second, Kind: history.Received, Method: "tools/call", Call: "p-1", By: "carl"},
			{T: 210 * time.Second, Kind: history.Answered, Method: "tools/call", Call: "p-1"},
			{T: tt.end, Kind: history.Released},
		} {
			w.virtualNow, w.start = e.T, time.Now().Add(-e.T)
			p.recordHost("mail@carl", "carl", e)
		}
		if n := rec.Len(); (n > 0) != tt.violated {
			t.Errorf("ended at %s: %d violations", tt.end, n)
		}
	}
}

// A wish to watch that crossed one to end the watch says nothing: which of them came first to the server is not known (seed 30320502).
func TestCrossingWishesAreNoWatch(t *testing.T) {
	for _, tt := range []struct {
		first, second, secondEnds, firstEnds int // the steps: a wish to watch, and one to end that
		watched                              bool
	}{
		{first: 3, second: 1, secondEnds: 2, firstEnds: 4, watched: true},
		{first: 1, second: 2, secondEnds: 3, firstEnds: 4},
		{first: 2, second: 1, secondEnds: 3, firstEnds: 4},
		{first: 1, second: 2, secondEnds: 4, firstEnds: 3},
	} {
		w := &simulation{}
		p := &principals{world: w, watches: map[string]*instanceWatch{}, commanded: map[string]time.Duration{"mail": -time.Hour}}
		var endWatch, endEnding func(bool)
		steps := map[int]func(){
			tt.first:      func() { endWatch = p.beginWatch("mail@carl", false) },
			tt.second:     func() { endEnding = p.beginWatch("mail@carl", true) },
			tt.secondEnds: func() { endEnding(true) },
			tt.firstEnds:  func() { endWatch(true) },
		}
		for n := 1; n <= len(steps); n++ {
			w.start = time.Now().Add(-time.Duration(n) * time.Minute)
			steps[n]()
		}
		if got := p.isWatched("mail@carl", time.Hour); got != tt.watched {
			t.Errorf("%+v: watched %t", tt, got)
		}
	}
}
