package sim

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// answerTime is how long the person and the model think about what a server asks.
const answerTime = 300 * time.Millisecond

// answering has the program answer what servers ask, and what the manager asks about calls, as the scenario says.
func (w *world) answering(cfg *supervisor.Config) {
	for _, s := range w.plan.Servers {
		if !s.Offers {
			continue
		}
		cfg.Elicit = func(ctx context.Context, _ supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: json.RawMessage(`{"go":true}`)}, think(ctx)
		}
		cfg.Sample = func(ctx context.Context, _ supervisor.SampleRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"role":"assistant","content":{"type":"text","text":"yes"},"model":"none"}`), think(ctx)
		}
		cfg.Roots = func(context.Context, string) ([]supervisor.Root, error) {
			return []supervisor.Root{{URI: "file:///work", Name: "work"}}, nil
		}
	}
	m := w.plan.Scenario.Manager
	if m.Audit {
		cfg.Audit = io.Discard
	}
	if m.Ask {
		cfg.Access = access.Rules{Own: access.Set{Default: access.Ask}}
		cfg.Ask = func(_ context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
			switch r.Tool {
			case "read":
				return supervisor.AskSession, nil
			case "put":
				return supervisor.AskOnce, nil
			}
			return supervisor.AskAll, nil
		}
	}
}

// think takes its time.
func think(ctx context.Context) error {
	select {
	case <-time.After(answerTime):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
