package supervisor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// directed is a supervisor whose turns the test takes, with one server "a" of which only the record is real: sent is what
// its actor was sent.
func directed(t *testing.T) (s *supervisor, a *record, sent chan any) {
	t.Helper()
	cfg := Config{Restart: restart.DefaultPolicy(), Gate: restart.DefaultLimits(2), Logger: zap.NewNop(), Rand: func() float64 { return 0.5 }}
	s = newSupervisor(&cfg, &shared{}, nil)
	system := newSystem(cfg.Logger)
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
	a = &record{name: "a", spec: &Spec{Command: "a"}, pid: pid, life: 1, wanted: true}
	s.records["a"] = a
	t.Cleanup(s.stopTimers)
	return s, a, sent
}

// asks is what its actor says when it is to be started.
func asks(life, attempt uint64) actors.FromServer {
	return actors.FromServer{Name: "a", Life: life, Attempt: attempt, Effect: lifecycle.Ask{Urgency: lifecycle.Normal, Fresh: true}}
}

func TestNobodyIsStartedBesideItsConnection(t *testing.T) {
	s, a, sent := directed(t)
	a.live, s.epoch = 7, 7
	s.gate.Ask(time.Now(), s.request(a, restart.Healthy, time.Now()))
	s.pump(nil)
	if a.live != 7 || len(sent) != 0 {
		t.Errorf("it was granted epoch %d while epoch 7 had not been released", a.live)
	}
	s.released(nil, actors.Released{Name: "a", Epoch: 7})
	s.fromServer(nil, asks(1, 7))
	s.pump(nil)
	if _, ok := (<-sent).(lifecycle.Granted); !ok || a.live != 8 {
		t.Errorf("with epoch 7 released it was granted epoch %d, not 8", a.live)
	}
}

func TestNobodyIsStartedWhileTheManagerCloses(t *testing.T) {
	s, a, sent := directed(t)
	s.fromServer(nil, asks(1, 0))
	s.closing = &closeAll{}
	s.pump(nil)
	if a.live != 0 || len(sent) != 0 {
		t.Errorf("it was granted epoch %d", a.live)
	}
}

// The library hands an actor's last words over after it has told of its end, when its successor may be there.
func TestTheLastWordsOfAnActorAreNotItsSuccessors(t *testing.T) {
	s, a, _ := directed(t)
	a.life = 2
	for _, e := range []lifecycle.Effect{lifecycle.Ask{Fresh: true}, lifecycle.Up{}, lifecycle.Report{Epoch: 1}} {
		s.fromServer(nil, actors.FromServer{Name: "a", Life: 1, Effect: e})
	}
	s.pump(nil)
	if a.live != 0 || a.up || a.policy != (restart.Record{}) {
		t.Errorf("what its predecessor said counts: %+v", a)
	}
	s.fromServer(nil, asks(2, 0))
	s.pump(nil)
	if a.live == 0 {
		t.Error("what it says itself does not count")
	}
}

// A server that is being added anew waits for the end of its old connection; what is wished of it meanwhile waits with it.
func TestAWishForAServerThatComesBackWaits(t *testing.T) {
	for _, live := range []uint64{0, 3} {
		s, a, sent := directed(t)
		a.live, a.removing = live, true
		added := false
		a.again = append(a.again, func(actor.Context) { added = true })
		refused := make(chan error, 1)
		s.wish(nil, wish{"a", lifecycle.Disable{}, func(err error) { refused <- err }})
		if len(refused) != 0 {
			t.Fatalf("with epoch %d: %v", live, <-refused)
		}
		if len(a.again) != 2 || len(sent) != 0 {
			t.Fatalf("with epoch %d: %d commands wait, and %d were sent to the actor that ends", live, len(a.again), len(sent))
		}
		// Its removal has ended, and it was not added: only now is there nobody who could be disabled.
		delete(s.records, "a")
		for _, command := range a.again {
			command(nil)
		}
		if err := <-refused; !added || messages.ClassOf(err) != messages.ClassInvalid {
			t.Errorf("with epoch %d: %v", live, err)
		}
	}
}
