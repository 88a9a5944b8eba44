package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// consents are the person of a program that asks about calls, one for all callers and one for each caller with a name, and judge that each call which
// gets a result has the consent of the right one, and that no person is asked about what they have allowed already. The violations are of I20.
type consents struct {
	report func(server, text string)

	mu sync.Mutex
	// granted are the tools that a person has allowed until the manager ends; the caller is empty for the person of all.
	granted map[consent]bool
	// allowed are the calls that a person has allowed, with the caller whose person that was.
	allowed map[string]string
}

// A consent is that of one caller's person to a tool.
type consent struct{ caller, server, tool string }

// askedAbout reads the call from the arguments of a question.
func askedAbout(arguments json.RawMessage) string {
	var a struct {
		Call string `json:"call"`
	}
	_ = json.Unmarshal(arguments, &a) // a question about no call of the load names none
	return a.Call
}

// answerAsk answers in the name of a caller's person, or of that of all. Three tools get three kinds of consent, so that each is used in every run.
func (c *consents) answerAsk(caller string, r supervisor.AskRequest) supervisor.AskAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.granted[consent{"", r.Server, r.Tool}] || c.granted[consent{caller, r.Server, r.Tool}] {
		c.report(r.Server, fmt.Sprintf("the person of %q was asked about the tool %s, and had allowed it until the manager ends", caller, r.Tool))
	}
	if call := askedAbout(r.Arguments); call != "" {
		c.allowed[call] = caller
	}
	switch r.Tool {
	case scenario.ReadTool:
		c.granted[consent{caller, r.Server, r.Tool}] = true
		return supervisor.AskSession
	case scenario.PutTool:
		return supervisor.AskOnce
	}
	return supervisor.AskAll
}

// scopeTo returns ctx with the person of a caller, who decides in the place of that of all.
func (c *consents) scopeTo(ctx context.Context, caller string) context.Context {
	return supervisor.ScopeGrants(supervisor.AskedBy(ctx, func(_ context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
		return c.answerAsk(caller, r), nil
	}), caller)
}

// checkCall judges a call that has got a result: its own person has allowed it, or its tool. A trusted server's word that its tool reads only is enough.
func (c *consents) checkCall(call load.Call, caller string, trusted bool) {
	if trusted && call.Stream.Tool == scenario.ReadTool {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := call.Stream
	if allower, asked := c.allowed[call.ID]; asked && allower == caller || c.granted[consent{"", s.Server, s.Tool}] || c.granted[consent{caller, s.Server, s.Tool}] {
		return
	}
	c.report(s.Server, fmt.Sprintf("the call %s of the tool %s got a result, and the person of %q, whose consent it needs, was not asked", call.ID, s.Tool, caller))
}
