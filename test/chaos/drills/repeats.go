package drills

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// How the server answers a request that comes a second time.
const (
	secondAnswered = "answers"
	secondRejected = "rejects it"
	secondFails    = "answers that the tool failed"
	secondLost     = "crashes again"
)

// repeatScript counts the calls and reads that come to a server. The server leaves each unanswered the first time, so that it is lost with the
// connection, and answers it the second time as the drill says.
type repeatScript struct {
	mu     sync.Mutex
	second string
	came   map[string]int
}

// handleMessage plays the server about calls and reads.
func (r *repeatScript) handleMessage(c *conn, m message) bool {
	var p struct {
		Name, URI string
		Arguments struct {
			N json.RawMessage `json:"n"`
		}
	}
	switch m.Method {
	case "tools/call", "resources/read", "prompts/get":
		_ = json.Unmarshal(m.Params, &p)
	default:
		return false
	}
	r.mu.Lock()
	key := p.Name + p.URI + string(p.Arguments.N)
	r.came[key]++
	n, second := r.came[key], r.second
	r.mu.Unlock()
	switch {
	case n == 1:
		return true
	case second == secondRejected:
		c.sendMessage(map[string]any{"id": m.ID, "error": map[string]any{"code": -32602, "message": "it is done already"}})
	case second == secondLost:
		c.end(fmt.Errorf("the server crashed again"))
	case m.Method == "resources/read":
		c.sendResult(m, map[string]any{"contents": []any{map[string]any{"uri": p.URI, "text": "x"}}})
	case m.Method == "prompts/get":
		c.sendResult(m, map[string]any{"messages": []any{}})
	default:
		result := textResult("x")
		result["isError"] = second == secondFails
		c.sendResult(m, result)
	}
	return true
}

// countOf returns how often a request has come.
func (r *repeatScript) countOf(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.came[key]
}

// lostRequest is a call or read that runs while its server crashes.
type lostRequest struct {
	kind, key string
	harmless  bool
	done      bool
	err       error
}

// playRepeats lets a server crash while calls and reads of all kinds run: what may run twice is sent once more if the server is back in time, and never
// a third time; of everything else the caller learns that it may have run.
func playRepeats(s *stage) {
	files := newServer("files")
	hints := map[string]map[string]any{"read": {"readOnlyHint": true}, "put": {"idempotentHint": true}, "plain": {"readOnlyHint": false, "idempotentHint": false}, "bare": nil}
	for _, name := range []string{"read", "put", "plain", "bare"} {
		tool := toolNamed(name)
		if hints[name] != nil {
			tool["annotations"] = hints[name]
		}
		files.tools = append(files.tools, tool)
	}
	files.offers["prompts"] = []map[string]any{{"name": "greet"}}
	files.offers["resourceTemplates"] = []map[string]any{{"name": "any", "uriTemplate": "state://files/{n}"}}
	files.spec.Trusted = s.isOneIn(2)
	script := &repeatScript{came: map[string]int{}}
	files.instead = script.handleMessage
	wait := s.drawSpan(500*time.Millisecond, 8*time.Second)
	m := s.connectServers(supervisor.Config{WithdrawAfter: wait}, files)
	if m == nil {
		return
	}
	for round := range 1 + s.rng.IntN(3) {
		if !crashDuringRequests(s, m, files, script, wait, round) {
			return
		}
		files.refuseDials(nil)
		if err := m.Reconnect(s.ctx, "files"); err != nil {
			s.reportFinding("I8", "files", "it accepts connections, and Reconnect ended with %v", err)
			return
		}
	}
}

// crashDuringRequests makes requests, lets their server crash, and judges how they end. It returns false after a finding.
func crashDuringRequests(s *stage, m *supervisor.Manager, files *server, script *repeatScript, wait time.Duration, round int) bool {
	var requests []*lostRequest
	for n := range 1 + s.rng.IntN(5) {
		r := startLostRequest(s, m, files, round*10+n)
		requests = append(requests, r)
	}
	s.settleAll()
	second := pickOne(s, secondAnswered, secondRejected, secondFails, secondLost)
	script.mu.Lock()
	script.second = second
	script.mu.Unlock()
	s.addStory("%d requests run (trusted: %t); then the server %s", len(requests), files.spec.Trusted, second)
	s.letPass(s.drawSpan(0, 5*time.Second))
	refused := s.isOneIn(2)
	if refused {
		files.refuseDials(fmt.Errorf("not yet"))
	}
	crashed, opened := time.Now(), files.countOpened()
	files.endConns()
	if refused {
		away := s.drawSpan(0, 2*wait)
		s.addStory("it is away for %s", away)
		s.letPass(away)
		files.refuseDials(nil)
	}
	s.letPass(2*wait + time.Minute)
	// The connection after the crash is the first one that was opened since.
	back := time.Duration(-1)
	if files.countOpened() > opened {
		back = files.openedAt(opened).Sub(crashed)
	}
	repeated := back >= 0 && back < wait
	s.addStory("it is back after %s, and its requests wait for %s", back, wait)
	for _, r := range requests {
		if !checkLostRequest(s, script, r, repeated, second) {
			return false
		}
	}
	return true
}

// startLostRequest makes one call or read in a goroutine of the drill.
func startLostRequest(s *stage, m *supervisor.Manager, files *server, n int) *lostRequest {
	r := &lostRequest{kind: pickOne(s, "read", "put", "plain", "bare", "resource", "prompt")}
	send := func(ctx context.Context) (err error) {
		_, err = m.CallServerTool(ctx, "files", r.kind, fmt.Appendf(nil, `{"n":%d}`, n))
		return err
	}
	switch r.kind {
	case "resource":
		r.key, r.harmless = fmt.Sprintf("state://files/%d", n), true
		send = func(ctx context.Context) (err error) {
			_, err = m.ReadServerResource(ctx, "files", r.key)
			return err
		}
	case "prompt":
		r.key, r.harmless = fmt.Sprintf(`greet"%d"`, n), true
		send = func(ctx context.Context) (err error) {
			_, err = m.GetServerPrompt(ctx, "files", "greet", map[string]string{"n": fmt.Sprint(n)})
			return err
		}
	default:
		r.key, r.harmless = fmt.Sprintf("%s%d", r.kind, n), files.spec.Trusted && (r.kind == "read" || r.kind == "put")
	}
	s.runBeside(func() {
		r.err = send(s.ctx)
		r.done = true
	})
	return r
}

// checkLostRequest judges how one request ended. It returns false after a finding.
func checkLostRequest(s *stage, script *repeatScript, r *lostRequest, repeated bool, second string) bool {
	if !r.done {
		s.reportFinding("I9", "files", "a %s was lost with its connection, and has not ended", r.kind)
		return false
	}
	want, fails := 1, true
	if r.harmless && repeated {
		want, fails = 2, second == secondRejected || second == secondLost
	}
	// The crash on the first that comes again overtakes the others.
	if got := script.countOf(r.key); got != want && (second != secondLost || got != 1) {
		s.reportFinding("I2", "files", "a %s (may run twice: %t) was lost with its connection, and came %d times; it must come %d times", r.kind, r.harmless, got, want)
		return false
	}
	if outcome := messages.OutcomeOf(r.err); fails && outcome != messages.OutcomeUnknown {
		s.reportFinding("I2", "files", "a %s may have run before its connection was lost (it came %d times), and ended with the outcome %q: %v", r.kind, script.countOf(r.key), outcome, r.err)
		return false
	} else if !fails && r.err != nil {
		s.reportFinding("I2", "files", "a %s was answered when it came again, and ended with %v", r.kind, r.err)
		return false
	}
	return true
}
