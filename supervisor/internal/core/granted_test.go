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

// directed is a supervisor whose turns the test takes, with one server "a" of which only the record is real: sent is what
// its actor was sent.
func directed(t *testing.T) (s *supervisor, a *managedServer, sent chan any) {
	t.Helper()
	s = newSupervisor(Options{Common: &actors.Common{Log: zap.NewNop()}, Specs: opener.New(opener.Options{}),
		Restart: restart.DefaultPolicy(), Limits: restart.DefaultLimits(2), Rand: func() float64 { return 0.5 }}, &Shared{})
	system := actorsystem.New(zap.NewNop())
	t.Cleanup(system.Shutdown)
	s.root, sent = system.Root, make(chan any, 100)
	pid := s.root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started, *actor.Stopping, *actor.Stopped:
		default:
			sent <- m
		}
	}))
	s.self = pid
	a = &managedServer{name: "a", spec: &messages.Spec{Command: "a"}, pid: pid, actorEpoch: 1, wanted: true}
	s.servers["a"] = a
	t.Cleanup(s.stopTimers)
	return s, a, sent
}

// asks is the message of its actor that requests a start.
func asks(life, attempt uint64) actors.FromServer {
	return actors.FromServer{Name: "a", ActorEpoch: life, Attempt: attempt, Effect: lifecycle.Ask{Urgency: lifecycle.Normal, Fresh: true}}
}

func TestNobodyIsStartedBesideItsConnection(t *testing.T) {
	s, a, sent := directed(t)
	a.liveEpoch, s.epoch = 7, 7
	s.gate.Enqueue(time.Now(), s.startRequest(a, restart.Healthy, time.Now()))
	s.grantStarts(nil)
	if a.liveEpoch != 7 || len(sent) != 0 {
		t.Errorf("it was granted epoch %d while epoch 7 had not been released", a.liveEpoch)
	}
	s.handleReleased(nil, actors.AttemptReleased{Name: "a", Epoch: 7})
	s.handleFromServer(nil, asks(1, 7))
	s.grantStarts(nil)
	if _, ok := (<-sent).(lifecycle.Granted); !ok || a.liveEpoch != 8 {
		t.Errorf("with epoch 7 released it was granted epoch %d, not 8", a.liveEpoch)
	}
}

func TestNobodyIsStartedWhileTheManagerCloses(t *testing.T) {
	s, a, sent := directed(t)
	s.handleFromServer(nil, asks(1, 0))
	s.closing = &CloseAll{}
	s.grantStarts(nil)
	if a.liveEpoch != 0 || len(sent) != 0 {
		t.Errorf("it was granted epoch %d", a.liveEpoch)
	}
}

// The library hands an actor's last words over after it has told of its end, when its successor may be there.
func TestTheLastWordsOfAnActorAreNotItsSuccessors(t *testing.T) {
	s, a, _ := directed(t)
	a.actorEpoch = 2
	for _, e := range []lifecycle.Effect{lifecycle.Ask{Fresh: true}, lifecycle.Up{}, lifecycle.Report{Epoch: 1}} {
		s.handleFromServer(nil, actors.FromServer{Name: "a", ActorEpoch: 1, Effect: e})
	}
	s.grantStarts(nil)
	if a.liveEpoch != 0 || a.isUp || a.policy != (restart.Record{}) {
		t.Errorf("what its predecessor said counts: %+v", a)
	}
	s.handleFromServer(nil, asks(2, 0))
	s.grantStarts(nil)
	if a.liveEpoch == 0 {
		t.Error("what it says itself does not count")
	}
}

// A server that is being added anew waits for the end of its old connection; what is wished of it meanwhile waits with it.
func TestAWishForAServerThatComesBackWaits(t *testing.T) {
	for _, live := range []uint64{0, 3} {
		s, a, sent := directed(t)
		a.liveEpoch, a.removing = live, true
		added := false
		a.waitingCommands = append(a.waitingCommands, waitingCommand{run: func(actor.Context) { added = true }})
		refused := make(chan error, 1)
		s.handleCommand(nil, ServerCommand{Name: "a", Event: lifecycle.Disable{}, Reply: func(err error) { refused <- err }})
		if len(refused) != 0 {
			t.Fatalf("with epoch %d: %v", live, <-refused)
		}
		if len(a.waitingCommands) != 2 || len(sent) != 0 {
			t.Fatalf("with epoch %d: %d commands wait, and %d were sent to the actor that ends", live, len(a.waitingCommands), len(sent))
		}
		// Its removal has ended, and it was not added: only now is there no server that could be disabled.
		delete(s.servers, "a")
		for _, command := range a.waitingCommands {
			command.run(nil)
		}
		if err := <-refused; !added || messages.ClassOf(err) != messages.ClassInvalid {
			t.Errorf("with epoch %d: %v", live, err)
		}
	}
}

// The reason of a panic is kept until the end of its actor is told, also that of the registry, which has no server.
func TestTheReasonOfAPanicGoesWithItsActor(t *testing.T) {
	s, _, _ := directed(t)
	s.ending = true // no successor
	registry := actor.NewPID("", "registry")
	s.shared.Registry.Set(registry)
	for _, who := range []*actor.PID{registry, actor.NewPID("", "nobody")} {
		s.panics[who.Id] = "a planted defect"
		s.handleTerminated(nil, who)
	}
	if len(s.panics) > 0 {
		t.Errorf("left: %v", s.panics)
	}
}
