package sim

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// answerTime is the virtual time that the simulated person and model take for an answer.
const answerTime = 300 * time.Millisecond

// declaredCapabilities are those of the embedding program, which answers once any server asks questions; nil if a messageActor answers instead, which
// may say so at any time.
func (w *simulation) declaredCapabilities() []string {
	if w.plan.Scenario.Manager.Messages || !slices.ContainsFunc(w.plan.Servers, func(s scenario.Server) bool { return s.Offers }) {
		return nil
	}
	return []string{"elicitation", "sampling", "roots"}
}

// configureAnswers makes the embedding program answer the servers' questions, and the manager's questions about calls, as the
// scenario wants it. It does so once any server asks questions.
func (w *simulation) configureAnswers(cfg *supervisor.Config) {
	if w.declaredCapabilities() != nil {
		cfg.ElicitURL = true
		cfg.Elicit = func(ctx context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			if r.Mode == messages.ElicitURL {
				return supervisor.ElicitResult{Action: messages.ElicitAccept}, waitThinking(ctx, r.Message)
			}
			return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: answerFor(r.Server)}, waitThinking(ctx, r.Message)
		}
		cfg.Sample = func(ctx context.Context, r supervisor.SampleRequest) (json.RawMessage, error) {
			return replyFor("sampling/createMessage", r.Server), waitThinking(ctx, string(r.Params))
		}
		cfg.Roots = func(_ context.Context, server string) ([]supervisor.Root, error) {
			return []supervisor.Root{{URI: "file:///" + server, Name: "work"}}, nil
		}
	}
	m := w.plan.Scenario.Manager
	if m.Ask {
		w.consents = &consents{report: w.reportBrokenPromise, granted: map[consent]bool{}, allowed: map[string]string{}}
		cfg.Access = access.Rules{Own: access.Set{Default: access.Ask}}
		cfg.Ask = func(_ context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
			return w.consents.answerAsk("", r), nil
		}
	}
}

// answerFor is the person's answer to a server. It names the server, so that peer.Machine sees an answer that was meant for
// another one.
func answerFor(server string) json.RawMessage {
	return json.RawMessage(`{"go":true,"for":` + strconv.Quote(server) + `}`)
}

// replyFor is the answer to a server's request, by its method.
func replyFor(method, server string) json.RawMessage {
	switch method {
	case "sampling/createMessage":
		return json.RawMessage(`{"role":"assistant","content":{"type":"text","text":` + strconv.Quote(server) + `},"model":"none"}`)
	case "roots/list":
		return json.RawMessage(`{"roots":[{"uri":` + strconv.Quote("file:///"+server) + `,"name":"work"}]}`)
	}
	return json.RawMessage(`{"action":"accept","content":` + string(answerFor(server)) + `}`)
}

// waitThinking waits for answerTime, or until ctx ends. The question adds less than a microsecond, so that of several that came in one instant
// chance does not decide which is answered first.
func waitThinking(ctx context.Context, question string) error {
	select {
	case <-time.After(answerTime + time.Duration(seedOf("thinking", question)%1000)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
