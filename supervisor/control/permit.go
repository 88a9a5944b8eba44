package control

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// modePermit is the mode of a question whether a call may be made. It travels on the stream of that call in the form
// of a question of the server. No server can use this mode: a session accepts only form and url.
const modePermit = "mcpvisor-permit"

// actionUnseen is the action with which a caller reports that no person saw the question.
const actionUnseen = "mcpvisor-unseen"

// permitAnswer is the content of an answer to modePermit. It travels inside of an ElicitResult, because that is the
// only answer that pathAnswer accepts.
type permitAnswer struct {
	Answer supervisor.AskAnswer `json:"answer"`
	// Text and Fix say why there is no answer; empty if there is one.
	Text string `json:"text,omitempty"`
	Fix  string `json:"fix,omitempty"`
}

// permitVia returns a function that asks the caller of a stream for the permission. Every failure is AskNo.
func permitVia(ask elicitFunc) func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
	return func(ctx context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
		// The whole request travels, so that the caller's side can show what would be called.
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
		// The caller's side has refused or could not ask; its words explain more than ours.
		if p.Text != "" {
			return supervisor.AskNo, &messages.Error{Op: "ask", Class: messages.ClassDenied, Text: p.Text, Fix: p.Fix}
		}
		return p.Answer, nil
	}
}

// answererFor returns the hook that answers a question, nil if the caller has none for it.
func (a *CallHooks) answererFor(r messages.ElicitRequest) elicitFunc {
	// Questions of servers.
	if r.Mode != modePermit {
		return a.Ask
	}
	if a.Permit == nil {
		return nil
	}
	return func(ctx context.Context, q messages.ElicitRequest) (res messages.ElicitResult, err error) {
		// An error of Permit travels as content, so that its text and fix reach the other side.
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
		// The action only says that there is an answer; the answer itself is in the content.
		res.Action = messages.ElicitAccept
		res.Content, err = json.Marshal(p)
		return res, err
	}
}
