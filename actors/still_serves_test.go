package actors

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// Only a request that was sent and lost its connection asks the server whether it still serves: of every other failure the answer would
// say nothing. The table has every class with every outcome.
func TestOnlyALostRequestAsksWhetherTheServerServes(t *testing.T) {
	pings := 0
	l := &Link{gate: openGateTo(t, func(ctx context.Context, p inprocess.Peer) error {
		for {
			body, err := p.Read(ctx)
			if err != nil {
				return nil //nolint:nilerr // the connection has ended
			}
			var request struct{ ID json.RawMessage }
			if err := json.Unmarshal(body, &request); err != nil {
				return err
			}
			pings++
			_ = p.Write(ctx, []byte(`{"jsonrpc":"2.0","id":`+string(request.ID)+`,"result":{}}`))
		}
	})}
	for _, class := range messages.Classes {
		for _, outcome := range []messages.Outcome{messages.OutcomeNotSent, messages.OutcomeUnknown, messages.OutcomeRejected} {
			pings = 0
			lost := &messages.Error{Class: class, Outcome: outcome}
			// An error without a class is one of the network: see messages.ClassOf.
			want := (class == messages.ClassNetwork || class == messages.ClassNone) && outcome == messages.OutcomeUnknown
			if got := l.stillServes(t.Context(), lost, time.Minute); got != want || (pings == 1) != want {
				t.Errorf("%v, %v: it serves: %v, after %d pings", class, outcome, got, pings)
			}
		}
	}
}
