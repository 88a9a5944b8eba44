package control

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Whether a call may be made is asked on the stream of that call, in the form of a question of its server with a mode of
// its own. No server can ask in this mode: the session knows form and url.
const modePermit = "mcpvisor-permit"

// actionUnseen is what a caller answers in place of an action when no person was shown the question.
const actionUnseen = "mcpvisor-unseen"

// permitAnswer is the content of an answer.
type permitAnswer struct {
	Answer supervisor.AskAnswer `json:"answer"`
	// Text and Fix say why there is no answer.
	Text string `json:"text,omitempty"`
	Fix  string `json:"fix,omitempty"`
}

// permitVia asks the caller of a stream.
func permitVia(ask elicitFunc) func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
	return func(ctx context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
		params, err := json.Marshal(r)
		if err != nil {
			return supervisor.AskNo, malformedError("arguments", err.Error())
		}
		res, err := ask(ctx, messages.ElicitRequest{Mode: modePermit, Server: r.Server, Params: params})
		if err != nil {
			return supervisor.AskNo, err
		}
		var p permitAnswer
		if err := json.Unmarshal(res.Content, &p); err != nil {
			return supervisor.AskNo, malformedError("answer", err.Error())
		}
		if p.Text != "" {
			return supervisor.AskNo, &messages.Error{Op: "ask", Class: messages.ClassDenied, Text: p.Text, Fix: p.Fix}
		}
		return p.Answer, nil
	}
}

// answererFor is who answers a question here; nil if nobody does.
func (a *CallHooks) answererFor(r messages.ElicitRequest) elicitFunc {
	if r.Mode != modePermit {
		return a.Ask
	}
	if a.Permit == nil {
		return nil
	}
	return func(ctx context.Context, q messages.ElicitRequest) (res messages.ElicitResult, err error) {
		var r supervisor.AskRequest
		if err := json.Unmarshal(q.Params, &r); err != nil {
			return res, err
		}
		p := permitAnswer{}
		if p.Answer, err = a.Permit(ctx, r); err != nil {
			p = permitAnswer{Answer: supervisor.AskNo, Text: messages.Line(err.Error(), 300)}
			if e, ok := err.(*messages.Error); ok { //nolint:errorlint // what is wrapped says less
				p.Text, p.Fix = e.Text, e.Fix
			}
		}
		res.Action = messages.ElicitAccept
		res.Content, err = json.Marshal(p)
		return res, err
	}
}
