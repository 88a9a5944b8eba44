package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// elicitFunc answers a server's question, permitFunc whether a call may be made.
type (
	elicitFunc = func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error)
	permitFunc = func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error)
)

// methodElicit is the method of a server's question to the person.
const methodElicit = "elicitation/create"

// openQuestions are the questions that callers have not answered yet. The zero value is ready.
type openQuestions struct {
	waiting sync.Map // openQuestion by id
}

// An openQuestion waits for the answer of the process that was asked.
type openQuestion struct {
	process  string                        // fence.Peer.Process; empty if the system does not identify it
	answered chan *messages.AnswerQuestion // capacity 1
}

// ask puts a question to the caller of the exchange. The id of a question holds 128 random bits, so another process cannot guess
// it, and acceptAnswer compares the process as well. It returns when the answer has come, the caller has gone, or ctx has ended;
// then the question is withdrawn.
func (x *exchange) ask(ctx context.Context, q *messages.CallerQuestion) (*messages.AnswerQuestion, error) {
	q.Id = rand.Text()
	answered := make(chan *messages.AnswerQuestion, 1)
	// The question is stored before it is sent, because its answer may come before send returns.
	x.questions.waiting.Store(q.GetId(), openQuestion{peerOf(x.request).Process(), answered})
	defer x.questions.waiting.Delete(q.GetId())
	if err := x.send(q); err != nil {
		return nil, err
	}
	select {
	// Every way out removes the question (the deferred Delete), so a late answer finds none.
	case a := <-answered:
		if a.GetNotShown() {
			return nil, &messages.Error{Op: "elicit", Class: messages.ClassDenied, Text: "the caller could not show it", Err: messages.ErrNotShown}
		}
		return a, nil
	case <-x.request.Done():
		return nil, &messages.Error{Op: "elicit", Class: messages.ClassCanceled, Text: "the caller went away"}
	case <-ctx.Done():
		_ = x.send(&messages.CallerQuestionEnded{Id: q.GetId()}) // an error means that the peer has gone
		return nil, ctx.Err()
	}
}

// acceptAnswer hands an answer to the question that waits for it. The first answer of the process that was asked
// counts; an answer to a question that is over is ignored without an error, because the caller could not know.
func (qs *openQuestions) acceptAnswer(from string, a *messages.AnswerQuestion) error {
	waiting, ok := qs.waiting.Load(a.GetId())
	if !ok {
		return nil
	}
	q := waiting.(openQuestion)
	// On systems that do not identify processes both are empty, and the id alone protects the question.
	if q.process != from {
		return &messages.Error{Op: "control", Class: messages.ClassDenied, Err: messages.ErrDenied,
			Text: "another process was asked this question"}
	}
	if _, ok := qs.waiting.LoadAndDelete(a.GetId()); ok { // of two answers one wins, so that the channel has room
		q.answered <- a
	}
	return nil
}

// elicitVia returns a function that puts a server's questions to the caller of the exchange.
func (x *exchange) elicitVia() elicitFunc {
	return func(ctx context.Context, r messages.ElicitRequest) (res messages.ElicitResult, err error) {
		a, err := x.ask(ctx, &messages.CallerQuestion{Request: &messages.ServerRequest{Server: r.Server, Method: methodElicit,
			Params: r.Params, Unheard: int64(r.Unheard)}})
		if err != nil {
			return res, err
		}
		if err := rawjson.Unmarshal(a.GetReply().GetResult(), &res); err != nil {
			return res, malformedError("answer", err.Error())
		}
		return res, nil
	}
}

// permitVia returns a function that asks the caller of the exchange for the permission. Every failure is AskNo.
func (x *exchange) permitVia() permitFunc {
	return func(ctx context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
		// The whole request travels, so that the caller's side can show what would be called.
		a, err := x.ask(ctx, &messages.CallerQuestion{Permit: permitToProto(r)})
		if err != nil {
			return supervisor.AskNo, err
		}
		// The caller's side has refused or could not ask; its words explain more than ours.
		if f := a.GetPermit().GetFailure(); f != nil {
			return supervisor.AskNo, &messages.Error{Op: "ask", Class: messages.ClassDenied, Text: f.GetText(), Fix: f.GetFix()}
		}
		return supervisor.AskAnswer(a.GetPermit().GetAnswer()), nil
	}
}

// answerer returns the function that answers a question, nil if the caller has no hook for it. It always gives an answer: if the
// hook fails, that no person saw the question, or why the permission is not given.
func (a *CallHooks) answerer(q *messages.CallerQuestion) func(context.Context) *messages.AnswerQuestion {
	switch r := q.GetRequest(); {
	case q.GetPermit() != nil && a.Permit != nil:
		return func(ctx context.Context) *messages.AnswerQuestion {
			answer, err := a.Permit(ctx, permitFromProto(q.GetPermit()))
			p := &messages.PermitReply{Answer: string(answer)}
			if err != nil {
				p = &messages.PermitReply{Answer: string(supervisor.AskNo), Failure: permitFailure(err)}
			}
			return &messages.AnswerQuestion{Id: q.GetId(), Permit: p}
		}
	case r.GetMethod() == methodElicit && a.Ask != nil:
		return func(ctx context.Context) *messages.AnswerQuestion {
			res, err := a.Ask(ctx, elicitFromProto(r))
			raw, encodeErr := json.Marshal(res)
			if err != nil || encodeErr != nil {
				return &messages.AnswerQuestion{Id: q.GetId(), NotShown: true}
			}
			return &messages.AnswerQuestion{Id: q.GetId(), Reply: &messages.ServerRequestReply{Result: raw}}
		}
	}
	return nil
}
