package core

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/actorsystem"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/opener"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// A server asks for a start while a grant is on its way to it (a command reconnected it in that moment), and the attempt fails
// before its handshake is answered. What it asked for is answered by that grant: the next attempt waits for its time, in
// whichever order the end of the attempt and the report of it arrive.
func TestARequestThatAGrantOvertookIsNotGrantedAgain(t *testing.T) {
	for _, releasedFirst := range []bool{true, false} {
		s := newSupervisor(Options{Common: &actors.Common{Log: zap.NewNop()}, Specs: opener.New(opener.Options{}),
			Restart: restart.DefaultPolicy(), Limits: restart.DefaultLimits(2), Rand: func() float64 { return 0.5 }}, &Shared{})
		system := actorsystem.New(zap.NewNop())
		defer system.Shutdown()
		s.root = system.Root
		pid := s.root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
		s.self = pid
		r := &managedServer{name: "a", spec: &messages.Spec{Command: "a"}, pid: pid, actorEpoch: 1}
		s.servers["a"] = r
		defer s.stopTimers()
		says := func(knows uint64, e lifecycle.Effect) {
			s.handleFromServer(nil, actors.FromServer{Name: "a", ActorEpoch: 1, Attempt: knows, Effect: e})
			s.grantStarts(nil)
		}

		says(0, lifecycle.Ask{Urgency: lifecycle.Normal, Fresh: true})
		if r.liveEpoch != 1 {
			t.Fatalf("the first start has epoch %d, not 1", r.liveEpoch)
		}
		says(0, lifecycle.Ask{Urgency: lifecycle.Person, Fresh: true})
		end := []func(){
			func() { s.handleReleased(nil, actors.AttemptReleased{Name: "a", Epoch: 1}); s.grantStarts(nil) },
			func() {
				says(1, lifecycle.Report{Epoch: 1, Cause: lifecycle.Cause{Class: messages.ClassTimeout, Text: "no answer"}})
			},
		}
		if !releasedFirst {
			end[0], end[1] = end[1], end[0]
		}
		for _, do := range end {
			do()
		}
		if r.liveEpoch != 0 {
			t.Errorf("released first %v: started again at once, with epoch %d", releasedFirst, r.liveEpoch)
		}
		if granted, wake := s.gate.Next(time.Now()); len(granted) > 0 || wake.Before(time.Now()) {
			t.Errorf("released first %v: granted %v, and the next start is due at %v", releasedFirst, granted, wake)
		}
		// A command asks again, of a server that knows of its last attempt: that is granted.
		says(1, lifecycle.Ask{Urgency: lifecycle.Person, Fresh: true})
		if r.liveEpoch != 2 {
			t.Errorf("released first %v: a person's wish was not granted", releasedFirst)
		}
	}
}
