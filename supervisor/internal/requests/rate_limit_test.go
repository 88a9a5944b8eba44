package requests

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
)

// A server that asks more often than it may is refused unheard: the watchers get an event at once, and the answerer is told
// with the next question how many there were.
func TestQuestionsOverTheBoundAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []int
		var received []messages.Event
		runner := hooks.NewRunner(zap.NewNop())
		defer runner.Close()
		d := New(Answerers{Log: zap.NewNop(), Hooks: runner,
			Elicit: func(_ context.Context, r messages.ElicitRequest) (messages.ElicitResult, error) {
				heard = append(heard, r.Unheard)
				return messages.ElicitResult{Action: messages.ElicitDecline}, nil
			},
			Sample: func(_ context.Context, r messages.SampleRequest) (json.RawMessage, error) {
				heard = append(heard, r.Unheard)
				return json.RawMessage(`{}`), nil
			},
			Publish: func(e messages.Event) { received = append(received, e) }})
		h := d.HandlersFor("s")
		for name, kind := range map[string]struct {
			burst int
			ask   func()
		}{
			"elicitation": {elicitBurst, func() { _, _ = h.Elicit(t.Context(), messages.ElicitRequest{Mode: messages.ElicitURL}) }},
			"sampling":    {sampleBurst, func() { _, _ = h.Sample(t.Context(), messages.SampleRequest{}) }},
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
			if n := heard[kind.burst+1]; n != 0 {
				t.Errorf("%s: the answerer hears once more of %d that were not heard", name, n)
			}
		}
	})
}

// A server that was refused and has its whole burst again is not forgotten while another one asks: its next question tells how many before it
// were not heard.
func TestAnotherServersQuestionKeepsTheNumberOfUnheardOnes(t *testing.T) {
	limits, now := rateLimits{burst: 2, every: time.Second}, time.Unix(1_000_000, 0)
	for range 5 {
		limits.takeRequest("files", now)
	}
	now = now.Add(time.Minute)
	limits.takeRequest("mail", now)
	if unheard, heard := limits.takeRequest("files", now); unheard != 3 || !heard {
		t.Errorf("its next question is heard: %t, with %d unheard before it, not 3", heard, unheard)
	}
	now = now.Add(time.Minute)
	if limits.takeRequest("mail", now); len(limits.byServer) != 1 {
		t.Errorf("%d servers are kept, and one has asked lately", len(limits.byServer))
	}
}
