package supervisor

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/asker"
)

// AskRequest asks the person, through Config.Ask or AskedBy, whether a tool may be called.
type AskRequest struct {
	// Server and Tool name the tool, Arguments are those of the call, unchanged: they may hold secrets, and text that a model
	// made up. Neutralise them (messages.Printable) before a terminal shows them.
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Annotations are the server's own description of the tool. They are claims, unless the server is Trusted.
	Annotations *messages.Annotations `json:"annotations,omitempty"`
	Trusted     bool                  `json:"trusted,omitempty"`
	// Why names the rule or default that requires the question: "the rule ask mcp__github (…)", "the default is ask".
	Why string `json:"why"`
	// Rule is the allow rule that would make the question unnecessary for ever: for this tool and no other. It is empty if no rule
	// of the person's would change anything, because an ask rule or the managed default requires the question.
	Rule string `json:"rule,omitempty"`
	// Waiting counts the calls with the same arguments that wait for this question, this one included, when it is asked. More may
	// join while it is open: Count returns their number now; nil where the question came from another process.
	Waiting int        `json:"waiting,omitempty"`
	Count   func() int `json:"-"`
}

// Equal returns how many calls with the same arguments wait for the question now, this one included.
func (r AskRequest) Equal() int {
	if r.Count != nil {
		return r.Count()
	}
	return max(r.Waiting, 1)
}

// AskAnswer is the person's answer. The zero value refuses.
type AskAnswer string

const (
	// AskNo refuses this call and those with the same arguments that wait with it; the next such call is asked about again.
	AskNo AskAnswer = asker.AnswerNo
	// AskOnce allows this call alone: those with the same arguments that wait are asked about after it, one by one.
	AskOnce AskAnswer = asker.AnswerOnce
	// AskAll allows this call, and those with the same arguments that wait with it.
	AskAll AskAnswer = asker.AnswerAll
	// AskSession allows the tool, with any arguments, until the manager ends: to every caller, and where the call was
	// made with AskedBy and ScopeGrants, to that caller alone.
	AskSession AskAnswer = asker.AnswerSession
	// AskAlways allows like AskSession; the function that asked stores AskRequest.Rule in a file for later runs.
	AskAlways AskAnswer = asker.AnswerAlways
)

// AskedBy makes ask decide about the calls that are made with the result, in the place of Config.Ask: for a program whose callers
// have a person each. An answer to one caller is no answer for another.
func AskedBy(ctx context.Context, ask func(context.Context, AskRequest) (AskAnswer, error)) context.Context {
	return asker.AskedBy(ctx, questionFunc(ask))
}

// ScopeGrants names the caller to whom the answers AskSession and AskAlways are granted, if the function of AskedBy gives them to
// a call that is made with the result. Without it, or with an empty name, they are granted to every caller.
func ScopeGrants(ctx context.Context, caller string) context.Context {
	return asker.ScopeGrants(ctx, caller)
}

// questionFunc returns the program's function for the asker, which knows no type of the facade; nil for none.
func questionFunc(ask func(context.Context, AskRequest) (AskAnswer, error)) asker.Func {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, q asker.Question) (string, error) {
		answer, err := ask(ctx, AskRequest(q))
		return string(answer), err
	}
}
