package supervisor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The bounds of package requests.
const (
	mostElicits   = 10
	nextElicit    = 6 * time.Second
	mostSamplings = 20
)

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
		h := m.requestHandler.HandlersFor("s")
		for name, kind := range map[string]struct {
			burst int
			ask   func()
		}{
			"elicitation": {mostElicits, func() { _, _ = h.Elicit(t.Context(), ElicitRequest{Mode: messages.ElicitURL}) }},
			"sampling":    {mostSamplings, func() { _, _ = h.Sample(t.Context(), SampleRequest{}) }},
		} {
			for range kind.burst + 7 {
				kind.ask()
			}
			for range kind.burst {
				if n := <-heard; n != 0 {
					t.Errorf("%s: %d were not heard before one of the first", name, n)
				}
			}
			time.Sleep(nextElicit)
			kind.ask()
			if n := <-heard; n != 7 {
				t.Errorf("%s: the actor is told of %d that were not heard, not of 7", name, n)
			}
		}
	})
}
