package sim

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// answerTime is how long the person and the model think about what a server asks.
const answerTime = 300 * time.Millisecond

// configureAnswers has the program answer what servers ask, and what the manager asks about calls, as the scenario says.
func (w *simulation) configureAnswers(cfg *supervisor.Config) {
	for _, s := range w.plan.Servers {
		if !s.Offers {
			continue
		}
		if w.plan.Scenario.Manager.Messages {
			break // another actor does
		}
		cfg.ElicitURL = true
		cfg.Elicit = func(ctx context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			if r.Mode == messages.ElicitURL {
				return supervisor.ElicitResult{Action: messages.ElicitAccept}, waitThinking(ctx)
			}
			return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: answerFor(r.Server)}, waitThinking(ctx)
		}
		cfg.Sample = func(ctx context.Context, r supervisor.SampleRequest) (json.RawMessage, error) {
			return replyFor("sampling/createMessage", r.Server), waitThinking(ctx)
		}
		cfg.Roots = func(_ context.Context, server string) ([]supervisor.Root, error) {
			return []supervisor.Root{{URI: "file:///" + server, Name: "work"}}, nil
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

// answerFor is what the person answers a server: it names the server, so that who gets another one's answer sees it.
func answerFor(server string) json.RawMessage {
	return json.RawMessage(`{"go":true,"for":` + strconv.Quote(server) + `}`)
}

// replyFor is what a method is answered with, for a server.
func replyFor(method, server string) json.RawMessage {
	switch method {
	case "sampling/createMessage":
		return json.RawMessage(`{"role":"assistant","content":{"type":"text","text":` + strconv.Quote(server) + `},"model":"none"}`)
	case "roots/list":
		return json.RawMessage(`{"roots":[{"uri":` + strconv.Quote("file:///"+server) + `,"name":"work"}]}`)
	}
	return json.RawMessage(`{"action":"accept","content":` + string(answerFor(server)) + `}`)
}

// waitThinking takes its time.
func waitThinking(ctx context.Context) error {
	select {
	case <-time.After(answerTime):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
