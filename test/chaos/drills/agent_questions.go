package drills

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// askedAgent is an agent that may be asked, with what it declares, and its calls that run, the oldest first.
type askedAgent struct {
	*agent
	principal string
	abilities []string
	running   []*heldCall
}

// heldCall is a call that its server answers when the drill says so.
type heldCall struct {
	number  int
	conn    *conn
	release chan struct{}
}

// The questions of a server: their methods, params, and the answers to them.
var serverQuestions = map[string]struct {
	method, params string
	answer         any
}{
	"elicitation": {"elicitation/create", `{"message":"May it go on?","requestedSchema":{"type":"object","properties":{"go":{"type":"boolean"}}}}`,
		map[string]any{"action": "accept", "content": map[string]any{"go": true}}},
	"sampling": {"sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}],"maxTokens":10}`,
		map[string]any{"role": "assistant", "content": map[string]any{"type": "text", "text": "yes"}, "model": "none"}},
	"roots": {"roots/list", `{}`, map[string]any{"roots": []any{}}},
}

// playAgentQuestions lets the instances of principals ask while several agents, which can be asked this or that, have calls at them.
func playAgentQuestions(s *stage) {
	mail, held := newServer("mail", "hold"), make(chan *heldCall, 100)
	mail.handle = func(ctx context.Context, c *toolCall) (any, error) {
		h := &heldCall{conn: c.conn, release: make(chan struct{})}
		held <- h
		select {
		case <-h.release:
		case <-ctx.Done():
		}
		return textResult("done"), nil
	}
	mail.spec.Share, mail.spec.CallTimeout, mail.spec.MaxCallTimeout = messages.SharePrincipal, -1, -1
	cfg := supervisor.Config{}
	questions := gateway.PassQuestions(&cfg)
	if s.connectServers(cfg, mail) == nil {
		return
	}
	g := s.openGateway(gateway.Config{Questions: []*gateway.Questions{questions}})
	var agents []*askedAgent
	for range 2 + s.rng.IntN(3) {
		a := &askedAgent{principal: pickOne(s, "anna", "anna", "ben")}
		declared := map[string]any{}
		for _, ability := range []string{"elicitation", "sampling", "roots"} {
			if s.isOneIn(2) {
				a.abilities, declared[ability] = append(a.abilities, ability), struct{}{}
			}
		}
		a.agent = s.joinAgent(g, serve.Principal{Name: a.principal}, serve.Path{}, declared)
		a.answerWith(func(method string, _ json.RawMessage) any {
			for _, q := range serverQuestions {
				if q.method == method {
					return q.answer
				}
			}
			return nil
		})
		agents = append(agents, a)
	}
	begun := 0
	for range 10 + s.rng.IntN(8) {
		s.letPass(10 * time.Second)
		a := pickOne(s, agents...)
		switch n := s.rng.IntN(5); {
		case n < 2:
			s.runBeside(func() {
				_, _ = a.callMethod(s.ctx, "tools/call", map[string]any{"name": "mail__hold", "arguments": struct{}{}})
			})
			s.settleAll()
			if len(held) != 1 {
				s.reportFinding("I24", "mail", "the call of an agent of %s did not come to the server", a.principal)
				return
			}
			h := <-held
			begun++
			h.number, a.running = begun, append(a.running, h)
			s.addStory("call %d, of an agent of %s that declares %q", begun, a.principal, a.abilities)
		case n == 2 && len(a.running) > 0:
			i := s.rng.IntN(len(a.running))
			close(a.running[i].release)
			s.addStory("call %d ends", a.running[i].number)
			a.running = slices.Delete(a.running, i, i+1)
		default:
			if len(a.running) > 0 && !checkQuestion(s, a.running[0].conn, a.principal, pickOne(s, "elicitation", "sampling", "roots"), agents) {
				return
			}
		}
	}
}

// checkQuestion has an instance ask, and judges which agent of its principal it reaches: of those that can be asked so, the one with the newest call.
func checkQuestion(s *stage, instance *conn, principal, ability string, agents []*askedAgent) bool {
	var want *askedAgent
	newest := 0
	for _, a := range agents {
		if len(a.running) > 0 && a.principal == principal && slices.Contains(a.abilities, ability) && a.running[len(a.running)-1].number > newest {
			want, newest = a, a.running[len(a.running)-1].number
		}
	}
	before := make([]int, len(agents))
	for i, a := range agents {
		before[i] = a.countAsked()
	}
	q := serverQuestions[ability]
	result, err := instance.askClient(s.ctx, q.method, json.RawMessage(q.params))
	s.settleAll()
	for i, a := range agents {
		asked := a.countAsked() - before[i]
		if (asked == 1) != (a == want) || asked > 1 {
			s.reportFinding("I24", "mail", "the instance of %s asked for %s: an agent of %s that declares %q and has %d calls was asked %d times, and must be the one: %t",
				principal, ability, a.principal, a.abilities, len(a.running), asked, a == want)
			return false
		}
	}
	// Without an agent that can be asked, the roots are those that are shared, which are none, or the answer is an error.
	if want != nil && err != nil || want == nil && err == nil && ability != "roots" {
		s.reportFinding("I24", "mail", "the instance of %s asked for %s, which an agent can answer: %t, and got %s %v", principal, ability, want != nil, result, err)
		return false
	}
	if want == nil && err != nil && !strings.Contains(err.Error(), "could be asked") {
		s.reportFinding("I24", "mail", "the instance of %s asked for %s, which no agent can answer, and got %v", principal, ability, err)
		return false
	}
	return true
}
