package drills

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// answerTime is the time in which an agent of the modern era must answer the questions about a call.
const answerTime = 5 * time.Minute

// askingTool is a tool that asks several questions, and ends when all are answered. Any goroutine may use it.
type askingTool struct {
	delays []time.Duration // after which each question is asked

	mu       sync.Mutex
	call     *toolCall
	progress int
	problems []string // what was answered, and must not be
	ended    time.Time
}

// handleCall is the server's function.
func (t *askingTool) handleCall(ctx context.Context, c *toolCall) (any, error) {
	t.mu.Lock()
	t.call = c
	t.mu.Unlock()
	var all sync.WaitGroup
	for n, delay := range t.delays {
		all.Go(func() {
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				return
			}
			answer, err := c.conn.askClient(ctx, "elicitation/create", map[string]any{"message": questionText(n),
				"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}})
			if ctx.Err() == nil && (err != nil || !strings.Contains(string(answer), fmt.Sprintf(`"n":%d`, n))) {
				t.mu.Lock()
				defer t.mu.Unlock()
				t.problems = append(t.problems, fmt.Sprintf("%s was answered with %s (%v)", questionText(n), answer, err))
			}
		})
	}
	all.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = time.Now()
	return textResult("all answered"), nil
}

func questionText(n int) string { return fmt.Sprintf("question %d", n) }

// tellProgress has the tool tell of its progress, if the gateway wants to know.
func (t *askingTool) tellProgress() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.call == nil || t.call.token == nil {
		return
	}
	t.progress++
	t.call.conn.sendMessage(map[string]any{"method": "notifications/progress", "params": map[string]any{"progressToken": t.call.token, "progress": t.progress}})
}

// askedRound is the result by which an agent gets the questions about its call.
type askedRound struct {
	ResultType    string `json:"resultType"`
	RequestState  string `json:"requestState"`
	InputRequests map[string]struct {
		Params struct{ Message string }
	} `json:"inputRequests"`
}

// playRounds lets an agent of the modern era answer the questions about a call in several rounds, some of them at a time: it is asked the others again, is
// never asked what it has answered, hears of the progress while a request of its waits, and gets the result at the end.
func playRounds(s *stage) {
	tool := &askingTool{delays: make([]time.Duration, 1+s.rng.IntN(4))}
	for n := range tool.delays {
		if s.isOneIn(2) {
			tool.delays[n] = s.drawSpan(time.Millisecond, 2*time.Minute)
		}
	}
	box := newServer("box", "ask")
	box.handle = tool.handleCall
	box.spec.CallTimeout, box.spec.MaxCallTimeout = -1, -1
	cfg := supervisor.Config{}
	questions := gateway.PassQuestions(&cfg)
	if s.connectServers(cfg, box) == nil {
		return
	}
	g := s.openGateway(gateway.Config{Questions: []*gateway.Questions{questions}})
	s.modernAgents = true
	a := s.joinAgent(g, serve.Principal{Name: "anna"}, serve.Path{}, map[string]any{"elicitation": map[string]any{"form": struct{}{}}})
	s.addStory("the tool asks after %v", tool.delays)
	params, open, answered := map[string]any{}, []string(nil), map[string]bool{}
	for round := 0; ; round++ {
		result, err := callInRound(s, a, tool, params, round)
		var r askedRound
		_ = json.Unmarshal(result, &r)
		switch {
		case err != nil:
			s.reportFinding("I25", "box", "an agent has answered %d of %d questions about its call, and its request ended with %v", len(answered), len(tool.delays), err)
			return
		case r.ResultType != "input_required":
			tool.mu.Lock()
			defer tool.mu.Unlock()
			if len(answered) < len(tool.delays) || textOf(result) != "all answered" || len(tool.problems) > 0 {
				s.reportFinding("I25", "box", "an agent has answered %d of %d questions about its call, and got %s %s", len(answered), len(tool.delays), result, tool.problems)
			}
			return
		}
		asked := map[string]string{}
		for id, q := range r.InputRequests {
			asked[q.Params.Message] = id
			if answered[q.Params.Message] {
				s.reportFinding("I25", "box", "an agent has answered %s about its call, and is asked it again", q.Params.Message)
				return
			}
		}
		for _, text := range open {
			if asked[text] == "" {
				s.reportFinding("I25", "box", "an agent has not answered %s about its call, and is not asked it again: it is asked %v", text, asked)
				return
			}
		}
		thinking := s.drawSpan(0, answerTime-time.Second)
		if s.isOneIn(8) {
			checkUnanswered(s, tool)
			return
		}
		s.letPass(thinking)
		if !checkProgress(s, a, tool, "") {
			return
		}
		open = nil
		responses := map[string]any{}
		for n := range tool.delays {
			text := questionText(n)
			switch id := asked[text]; {
			case id == "":
			case s.isOneIn(3):
				open = append(open, text)
			default:
				answered[text] = true
				responses[id] = map[string]any{"action": "accept", "content": map[string]any{"n": n}}
			}
		}
		s.addStory("round %d: asked %d, leaves %d open", round, len(asked), len(open))
		params = map[string]any{"requestState": r.RequestState, "inputResponses": responses}
	}
}

// callInRound makes the request of one round, in which the tool tells of its progress.
func callInRound(s *stage, a *agent, tool *askingTool, params map[string]any, round int) (result json.RawMessage, err error) {
	token := fmt.Sprintf("round-%d", round)
	params["name"], params["arguments"], params["_meta"] = "box__ask", struct{}{}, map[string]any{"progressToken": token}
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Minute)
	defer cancel()
	done := make(chan struct{})
	s.runBeside(func() {
		defer close(done)
		result, err = a.callMethod(ctx, "tools/call", params)
	})
	s.settleAll()
	select {
	case <-done:
	default:
		checkProgress(s, a, tool, token)
		if round > 0 && s.isOneIn(3) {
			if _, err := a.callMethod(s.ctx, "tools/call", params); err == nil || !strings.Contains(err.Error(), "used already") {
				s.reportFinding("I25", "box", "an agent gave the answers of a round a second time, and that ended with %v", err)
			}
		}
		<-done
	}
	s.settleAll()
	return result, err
}

// checkProgress has the tool tell of its progress, and judges that the agent hears of it with the token of its request that waits, and not at all if
// none waits (token is empty).
func checkProgress(s *stage, a *agent, tool *askingTool, token string) bool {
	before := len(a.notesOf("notifications/progress"))
	tool.tellProgress()
	s.settleAll()
	var tokens, want []string
	for _, n := range a.notesOf("notifications/progress")[before:] {
		var p struct{ ProgressToken string }
		_ = json.Unmarshal(n.Params, &p)
		tokens = append(tokens, p.ProgressToken)
	}
	if token != "" {
		want = []string{token}
	}
	if !slices.Equal(tokens, want) {
		s.reportFinding("I25", "box", "its tool told of its progress, and the agent was told of it for %q; it must be %q", tokens, want)
		return false
	}
	return true
}

// checkUnanswered judges that a call whose questions no agent answers is cancelled at its server when the time for it is over.
func checkUnanswered(s *stage, tool *askingTool) {
	asked := time.Now()
	s.letPass(answerTime + time.Minute)
	tool.mu.Lock()
	defer tool.mu.Unlock()
	if took := tool.ended.Sub(asked); took != answerTime {
		s.reportFinding("I25", "box", "the questions about a call were not answered in %s, and the server learned of its end after %s", answerTime, took)
	}
}
