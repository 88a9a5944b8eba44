package supervisor

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A server that asks more often than it may is refused unheard: the watchers are told at once, and whoever answers is told
// with the next question how many there were.
func TestQuestionsOverTheBoundAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []int
		var told []messages.Event
		d := newDesk(&Config{Logger: zap.NewNop(),
			Elicit: func(_ context.Context, r ElicitRequest) (ElicitResult, error) {
				heard = append(heard, r.Unheard)
				return ElicitResult{Action: messages.ElicitDecline}, nil
			},
			Sample: func(_ context.Context, r SampleRequest) (json.RawMessage, error) {
				heard = append(heard, r.Unheard)
				return json.RawMessage(`{}`), nil
			}})
		d.publish = func(e messages.Event) { told = append(told, e) }
		h := d.handlers("s")
		for name, kind := range map[string]struct {
			burst int
			ask   func()
		}{
			"elicitation": {elicitBurst, func() { _, _ = h.Elicit(t.Context(), ElicitRequest{Mode: messages.ElicitURL}) }},
			"sampling":    {sampleBurst, func() { _, _ = h.Sample(t.Context(), SampleRequest{}) }},
		} {
			heard, told = nil, nil
			for range kind.burst + 7 {
				kind.ask()
			}
			if len(heard) != kind.burst || len(told) != 1 || told[0].Kind != messages.EventUnheard || told[0].Server != "s" || told[0].Missed != 1 {
				t.Fatalf("%s: %d were heard, told %+v", name, len(heard), told)
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
			if len(told) != 2 || told[1].Missed != 7 {
				t.Errorf("%s: a minute later watchers are told %+v", name, told)
			}
		}
	})
}
