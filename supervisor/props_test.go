package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/actorsystem"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// parent spawns one child and reports what becomes of it.
type parent struct {
	child *actor.Props
	pids  chan *actor.PID
	ended chan *actor.PID
}

func (p *parent) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started:
		pid := ctx.Spawn(p.child)
		ctx.Watch(pid)
		p.pids <- pid
	case *actor.Terminated:
		p.ended <- msg.Who
	}
}

// failNow makes an actor with failWhenAsked fail.
type failNow struct{}

func failWhenAsked(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		if _, ok := envelope.Message.(failNow); ok {
			panic("asked to fail")
		}
		next(ctx, envelope)
	}
}

// inFamily runs a test with a manager as the child of an actor whose strategy is given.
func inFamily(t *testing.T, cfg supervisor.Config, strategy actor.SupervisorStrategy, test func(t *testing.T, root *actor.RootContext,
	p *parent, family, child *actor.PID, managers <-chan *supervisor.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		system := actorsystem.New(zap.NewNop())
		managers := make(chan *supervisor.Manager, 16)
		props := supervisor.Props(cfg, func(m *supervisor.Manager) { managers <- m }).Configure(actor.WithReceiverMiddleware(failWhenAsked))
		p := &parent{child: props,
			pids: make(chan *actor.PID, 256), ended: make(chan *actor.PID, 256)}
		var opts []actor.PropsOption
		if strategy != nil {
			opts = append(opts, actor.WithSupervisor(strategy))
		}
		family := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return p }, opts...))
		test(t, system.Root, p, family, <-p.pids, managers)
		_ = system.Root.StopFuture(family).Wait()
		time.Sleep(time.Second) // the throttle of dead letters ends by itself
		system.Shutdown()
	})
}

// TestAManagerIsAChildLikeAnyOther: what was sent before its start has ended is handled, Poison closes all of it, and Terminated comes
// when its last connection is gone.
func TestAManagerIsAChildLikeAnyOther(t *testing.T) {
	for name, end := range map[string]func(*actor.RootContext, *actor.PID){
		"poison": func(r *actor.RootContext, pid *actor.PID) { r.Poison(pid) },
		"stop":   func(r *actor.RootContext, pid *actor.PID) { r.Stop(pid) },
	} {
		t.Run(name, func(t *testing.T) {
			s := supervisortest.NewServer("s", supervisortest.Text("go", "done"))
			gone := false
			left := make(chan struct{})
			cfg := supervisortest.AddTo(supervisor.Config{CallWait: time.Minute}, s)
			serve := cfg.InProcess["s"]
			cfg.InProcess["s"] = func(ctx context.Context, peer inprocess.Peer) error {
				defer close(left)
				defer time.Sleep(time.Second) // a server that takes its time to end
				return serve(ctx, peer)
			}
			inFamily(t, cfg, nil, func(t *testing.T, root *actor.RootContext, p *parent, _, child *actor.PID, managers <-chan *supervisor.Manager) {
				reply, err := root.RequestFuture(child, &messages.CallTool{Tool: "mcp__s__go", CallId: "1"}, time.Minute).Result()
				if got, ok := reply.(*messages.CallToolReply); !ok || err != nil || got.GetFailure() != nil {
					t.Fatalf("%v, %v", reply, err)
				}
				end(root, child)
				if who := <-p.ended; !who.Equal(child) {
					t.Errorf("%v ended", who)
				}
				select {
				case <-left:
					gone = true
				default:
				}
				if _, err := (<-managers).CallTool(t.Context(), "mcp__s__go", nil); !gone || !errors.Is(err, supervisor.ErrClosed) {
					t.Errorf("ended, and the server is gone: %v; a call: %v", gone, err)
				}
			})
		})
	}
}

// TestAManagerThatCannotStartFailsItsParent: the strategy of the parent decides, with the *Error as the reason: to stop it, to begin
// again, to escalate.
func TestAManagerThatCannotStartFailsItsParent(t *testing.T) {
	broken := supervisor.Config{Restart: restart.Policy{Factor: -1}}
	if _, err := supervisor.Start(t.Context(), broken); err == nil {
		t.Fatal("the policy works")
	}
	decide := func(d actor.Directive, reasons chan<- any) actor.SupervisorStrategy {
		return actor.NewOneForOneStrategy(3, time.Hour, func(reason any) actor.Directive {
			reasons <- reason
			return d
		})
	}
	for name, c := range map[string]struct {
		directive actor.Directive
		failures  int
	}{"stop": {actor.StopDirective, 1}, "restart": {actor.RestartDirective, 4}, "escalate": {actor.EscalateDirective, 1}} {
		t.Run(name, func(t *testing.T) {
			reasons := make(chan any, 256)
			inFamily(t, broken, decide(c.directive, reasons), func(t *testing.T, root *actor.RootContext, p *parent, family, child *actor.PID,
				_ <-chan *supervisor.Manager) {
				time.Sleep(time.Minute)
				var e *supervisor.Error
				if n := len(reasons); n < c.failures {
					t.Errorf("%d failures", n)
				}
				if err, ok := (<-reasons).(error); !ok || !errors.As(err, &e) || e.Class != messages.ClassInvalid {
					t.Errorf("failed with %v", err)
				}
				if c.directive == actor.StopDirective && !(<-p.ended).Equal(child) {
					t.Error("another one ended")
				}
			})
		})
	}
}

// TestARestartedManagerBeginsAnew: a restart by the parent closes the manager before the next one is started.
func TestARestartedManagerBeginsAnew(t *testing.T) {
	s := supervisortest.NewServer("s", supervisortest.Text("go", "done"))
	cfg := supervisortest.AddTo(supervisor.Config{CallWait: time.Minute}, s)
	inFamily(t, cfg, actor.NewOneForOneStrategy(3, time.Hour, func(any) actor.Directive { return actor.RestartDirective }),
		func(t *testing.T, root *actor.RootContext, p *parent, _, child *actor.PID, managers <-chan *supervisor.Manager) {
			first := <-managers
			if err := first.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			root.Send(child, &actor.Failure{}) // no message of ours: passed on, and ignored by the manager
			root.Send(child, failNow{})
			second := <-managers
			if err := second.Ready(t.Context()); err != nil || s.Connections() != 2 {
				t.Errorf("%v, %d connections", err, s.Connections())
			}
			if err := first.Ready(t.Context()); !errors.Is(err, supervisor.ErrClosed) {
				t.Errorf("the first: %v", err)
			}
			// What is closed by its method takes the actor with it.
			if err := second.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if who := <-p.ended; !who.Equal(child) {
				t.Errorf("%v ended", who)
			}
		})
}

// TestAManagerThatIsPoisonedAtItsStart: what was sent before is answered, although the manager never handles it.
func TestAManagerThatIsPoisonedAtItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actorsystem.New(zap.NewNop())
		release := make(chan struct{})
		cfg := supervisor.Config{ActorOptions: func(string) []actor.PropsOption { <-release; return nil }}
		pid := system.Root.Spawn(supervisor.Props(cfg, nil))
		call := system.Root.RequestFuture(pid, &messages.CallTool{Tool: "mcp__s__go", CallId: "1"}, time.Minute)
		system.Root.Poison(pid)
		synctest.Wait()
		close(release)
		reply, err := call.Result()
		if got, ok := reply.(*messages.CallToolReply); !ok || err != nil || got.GetCallId() != "1" || !errors.Is(got.GetFailure().ToError(), supervisor.ErrClosed) {
			t.Errorf("%v, %v", reply, err)
		}
		time.Sleep(time.Second) // the throttle of dead letters ends by itself
		system.Shutdown()
	})
}

// TestAManagerThatCannotStartAnswersEachCommand: a command gets its own reply with its ids and the failure, so that its sender, which waits
// for that reply, does not wait for ever. Another message than a command is answered with a Failure, and a Failure not at all.
func TestAManagerThatCannotStartAnswersEachCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actorsystem.New(zap.NewNop())
		stop := actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
		replies := make(chan any, 16)
		family := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				// A manager that has ended before a command is sent answers nothing: this one begins when all are sent.
				sent := make(chan struct{})
				props := supervisor.Props(supervisor.Config{Restart: restart.Policy{Factor: -1}}, nil)
				pid := ctx.Spawn(props.Configure(actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
					return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
						<-sent
						next(c, envelope)
					}
				})))
				for _, command := range []any{&messages.AddServer{Name: "x", RequestId: "one"}, &messages.CallTool{CallId: "two", Tool: "mcp__x__y"},
					&messages.GetStatus{RequestId: "three"}, &messages.ListPrompts{RequestId: "four"}, "no command", &messages.Failure{}} {
					ctx.Request(pid, command)
				}
				close(sent)
			case *actor.Stopping, *actor.Stopped:
			default:
				replies <- m
			}
		}, actor.WithSupervisor(stop)))
		synctest.Wait()
		close(replies)
		var got []string
		for reply := range replies {
			switch r := reply.(type) {
			case *messages.Done:
				got = append(got, "Done "+r.GetRequestId()+" "+r.GetFailure().GetClass())
			case *messages.CallToolReply:
				got = append(got, "CallToolReply "+r.GetCallId()+" "+r.GetFailure().GetClass())
			case *messages.StatusReply:
				got = append(got, "StatusReply "+r.GetRequestId()+" "+r.GetFailure().GetClass())
			case *messages.PromptsReply:
				got = append(got, "PromptsReply "+r.GetRequestId()+" "+r.GetFailures()[0].GetClass())
			case *messages.Failure:
				got = append(got, "Failure "+r.GetClass())
			}
		}
		want := []string{"Done one invalid", "CallToolReply two invalid", "StatusReply three invalid", "PromptsReply four invalid", "Failure invalid"}
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		_ = system.Root.StopFuture(family).Wait()
		time.Sleep(time.Second) // the throttle of dead letters ends by itself
		system.Shutdown()
	})
}

// TestStartedMayRunTheProgram: a function started that does not return holds up neither commands nor the end.
func TestStartedMayRunTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actorsystem.New(zap.NewNop())
		release, s := make(chan struct{}), supervisortest.NewServer("s", supervisortest.Text("go", "done"))
		pid := system.Root.Spawn(supervisor.Props(supervisortest.AddTo(supervisor.Config{CallWait: time.Minute}, s), func(*supervisor.Manager) { <-release }))
		reply, err := system.Root.RequestFuture(pid, &messages.CallTool{Tool: "mcp__s__go", CallId: "1"}, 2*time.Minute).Result()
		if got, ok := reply.(*messages.CallToolReply); !ok || err != nil || got.GetFailure() != nil {
			t.Errorf("%v, %v", reply, err)
		}
		if err := system.Root.PoisonFuture(pid).Wait(); err != nil {
			t.Errorf("poisoned: %v", err)
		}
		close(release)
		time.Sleep(time.Second) // the throttle of dead letters ends by itself
		system.Shutdown()
	})
}

// TestAPanicOfStartedFailsTheActor: the parent decides, as about a start that fails.
func TestAPanicOfStartedFailsTheActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actorsystem.New(zap.NewNop())
		reasons := make(chan any, 1)
		strategy := actor.NewOneForOneStrategy(0, 0, func(reason any) actor.Directive {
			reasons <- reason
			return actor.StopDirective
		})
		p := &parent{child: supervisor.Props(supervisor.Config{}, func(*supervisor.Manager) { panic("ouch") }), pids: make(chan *actor.PID, 1), ended: make(chan *actor.PID, 1)}
		family := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return p }, actor.WithSupervisor(strategy)))
		child := <-p.pids
		var e *supervisor.Error
		if err, ok := (<-reasons).(error); !ok || !errors.As(err, &e) || e.Class != messages.ClassPanic {
			t.Errorf("failed with %v", err)
		}
		if who := <-p.ended; !who.Equal(child) {
			t.Errorf("%v ended", who)
		}
		_ = system.Root.StopFuture(family).Wait()
		time.Sleep(time.Second) // the throttle of dead letters ends by itself
		system.Shutdown()
	})
}

// TestServeEndsWithItsContext: and may be called again.
func TestServeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := supervisortest.NewServer("s", supervisortest.Text("go", "done"))
		stop := errors.New("enough")
		for range 2 {
			ctx, cancel := context.WithCancelCause(t.Context())
			var closed *supervisor.Manager
			err := supervisor.Serve(ctx, supervisortest.AddTo(supervisor.Config{}, s), func(m *supervisor.Manager) {
				closed = m
				time.AfterFunc(time.Minute, func() { cancel(stop) })
			})
			if !errors.Is(err, stop) {
				t.Errorf("ended with %v", err)
			}
			if err := closed.Ready(t.Context()); !errors.Is(err, supervisor.ErrClosed) {
				t.Errorf("afterwards: %v", err)
			}
		}
		if n := s.Connections(); n != 2 {
			t.Errorf("%d connections", n)
		}
		if err := supervisor.Serve(t.Context(), supervisor.Config{Restart: restart.Policy{Factor: -1}}, nil); !errors.Is(err, supervisor.ErrInvalid) {
			t.Errorf("a config that cannot work: %v", err)
		}
		if err := supervisor.Serve(t.Context(), supervisor.Config{}, func(m *supervisor.Manager) { go m.Close(t.Context()) }); err != nil {
			t.Errorf("closed by its method: %v", err)
		}
	})
}
