package drills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// playReusedIDs lets an agent on lines give the id of a request that runs to others, and take requests back: each has its answer or none, and
// afterwards as many requests may run at once as before.
func playReusedIDs(s *stage) {
	files, calls := newServer("files", "hold"), &heldRequests{}
	files.handle = func(ctx context.Context, c *toolCall) (any, error) {
		calls.hold(ctx)
		return textResult(string(c.arguments)), nil
	}
	if s.connectServers(supervisor.Config{}, files) == nil {
		return
	}
	s.maxRequests, s.modernAgents = 2+s.rng.IntN(4), s.isOneIn(2)
	g := s.openGateway(gateway.Config{})
	a := s.joinAgent(g, serve.Principal{Name: "anna"}, serve.Path{}, nil)
	if a == nil {
		return
	}
	for round := range 1 + s.rng.IntN(3) {
		id := fmt.Sprintf("%q", fmt.Sprintf("held-%d", round))
		copies := s.rng.IntN(2*s.maxRequests + 1)
		s.addStory("%d requests may run at once; one is held, and its id is used %d times more", s.maxRequests, copies)
		for range 1 + copies {
			a.sendMessage(map[string]any{"id": json.RawMessage(id), "method": "tools/call", "params": a.paramsOf(map[string]any{"name": "files__hold", "arguments": struct{}{}})})
			s.settleAll()
		}
		calls.mu.Lock()
		held := len(calls.release)
		calls.mu.Unlock()
		if !expectEqual(s, "I25", "files", "the number of calls that came to the server", held, 1) {
			return
		}
		if s.isOneIn(3) {
			s.addStory("the agent takes it back")
			a.sendMessage(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": json.RawMessage(id)}})
			s.settleAll()
		}
		calls.releaseAll()
		s.letPass(time.Second)
		if !checkAllRun(s, a, calls) {
			return
		}
	}
}

// checkAllRun judges that an agent without a request may have as many run at once as its bound says.
func checkAllRun(s *stage, a *agent, calls *heldRequests) bool {
	errs := make([]error, s.maxRequests)
	for n := range errs {
		s.runBeside(func() {
			_, errs[n] = a.callMethod(s.ctx, "tools/call", map[string]any{"name": "files__hold", "arguments": map[string]any{"n": n}})
		})
		s.settleAll()
	}
	calls.mu.Lock()
	held := len(calls.release)
	calls.mu.Unlock()
	if !expectEqual(s, "I25", "files", "the number of an agent's requests that run at once", held, s.maxRequests) {
		return false
	}
	calls.releaseAll()
	s.settleAll()
	if err := errors.Join(errs...); err != nil {
		s.reportFinding("I25", "files", "its calls of an agent were answered, and ended with %v", err)
		return false
	}
	return true
}
