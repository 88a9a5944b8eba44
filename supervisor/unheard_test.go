package supervisor

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A server that asks more often than it may is refused unheard: the watchers get an event at once, and the answerer is told
// with the next question how many there were.
func TestQuestionsOverTheBoundAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []int
		var received []messages.Event
		d := newRequestHandler(answerers{log: zap.NewNop(),
			elicit: func(_ context.Context, r ElicitRequest) (ElicitResult, error) {
				heard = append(heard, r.Unheard)
				return ElicitResult{Action: messages.ElicitDecline}, nil
			},
			sample: func(_ context.Context, r SampleRequest) (json.RawMessage, error) {
				heard = append(heard, r.Unheard)
				return json.RawMessage(`{}`), nil
			},
			publish: func(e messages.Event) { received = append(received, e) }})
		h := d.handlersFor("s")
		for name, kind := range map[string]struct {
			burst int
			ask   func()
		}{
			"elicitation": {elicitBurst, func() { _, _ = h.Elicit(t.Context(), ElicitRequest{Mode: messages.ElicitURL}) }},
			"sampling":    {sampleBurst, func() { _, _ = h.Sample(t.Context(), SampleRequest{}) }},
		} {
			heard, received = nil, nil
			for range kind.burst + 7 {
				kind.ask()
			}
			if len(heard) != kind.burst || len(received) != 1 || received[0].Kind != messages.EventUnheard || received[0].Server != "s" || received[0].Missed != 1 {
				t.Fatalf("%s: %d were heard, told %+v", name, len(heard), received)
			}
			time.Sleep(elicitEvery)
			kind.ask()
			if heard[kind.burst] != 7 {
				t.Errorf("%s: whoever answers is told of %d that were not heard, not of 7", name, heard[kind.burst])
			}
			time.Sleep(2 * time.Minute)
			for range kind.burst + 2 {
				kind.ask()
			}
			if len(received) != 2 || received[1].Missed != 7 {
				t.Errorf("%s: a minute later watchers are told %+v", name, received)
			}
		}
	})
}

// An actor that answers what servers ask is told the same with the next request, and so is one on another machine.
func TestAnActorIsToldOfQuestionsOverTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := Start(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = m.Close(context.Background())
			time.Sleep(time.Millisecond)
		}()
		heard := make(chan int64, 100)
		m.System().Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch r := c.Message().(type) {
			case *actor.Started:
				c.RequestWithCustomSender(m.PID(), &messages.HandleRequests{Elicitation: true, ElicitationUrl: true, Sampling: true}, c.Self())
			case *messages.ServerRequest:
				heard <- r.GetUnheard()
				c.Send(m.PID(), &messages.ServerRequestReply{RequestId: r.GetRequestId(), Refused: true})
			}
		}))
		synctest.Wait()
		h := m.requestHandler.handlersFor("s")
		for name, kind := range map[string]struct {
			burst int
			ask   func()
		}{
			"elicitation": {elicitBurst, func() { _, _ = h.Elicit(t.Context(), ElicitRequest{Mode: messages.ElicitURL}) }},
			"sampling":    {sampleBurst, func() { _, _ = h.Sample(t.Context(), SampleRequest{}) }},
		} {
			for range kind.burst + 7 {
				kind.ask()
			}
			for range kind.burst {
				if n := <-heard; n != 0 {
					t.Errorf("%s: %d were not heard before one of the first", name, n)
				}
			}
			time.Sleep(elicitEvery)
			kind.ask()
			if n := <-heard; n != 7 {
				t.Errorf("%s: the actor is told of %d that were not heard, not of 7", name, n)
			}
		}
	})
}
