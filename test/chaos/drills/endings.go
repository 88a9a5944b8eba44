package drills

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// heldRequests are requests that a server answers when the drill says so. Any goroutine may hold one.
type heldRequests struct {
	mu      sync.Mutex
	release []chan struct{}
	ended   []time.Time // when the server learned that the caller of a call has gone; zero: it has not
}

// hold returns when the request is released, or its caller has gone.
func (h *heldRequests) hold(ctx context.Context) {
	h.mu.Lock()
	n, release := len(h.release), make(chan struct{})
	h.release, h.ended = append(h.release, release), append(h.ended, time.Time{})
	h.mu.Unlock()
	select {
	case <-release:
	case <-ctx.Done():
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended[n] = time.Now()
	}
}

// releaseAll releases what is held.
func (h *heldRequests) releaseAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, release := range h.release {
		close(release)
	}
	h.release = nil
}

// playEndings lets an agent go while its calls run, and while its wish to watch a resource is on its way: an agent that only closes its input
// gets all its results; the calls of one whose connection is lost are ended, and nothing is watched for it afterwards.
func playEndings(s *stage) {
	files, calls, wishes := newServer("files", "hold"), &heldRequests{}, &heldRequests{}
	files.offers["resources"] = []map[string]any{{"name": "one", "uri": "drill://files/one"}}
	files.handle = func(ctx context.Context, c *toolCall) (any, error) {
		calls.hold(ctx)
		return textResult(string(c.arguments)), nil
	}
	var isTakenBack func() error // of the newest wish to watch the resource
	files.instead = func(c *conn, m message) bool {
		if m.Method != "resources/subscribe" {
			return false
		}
		ctx, cancel := context.WithCancel(c.ctx)
		isTakenBack = ctx.Err
		c.mu.Lock()
		c.running[string(m.ID)] = cancel
		c.mu.Unlock()
		c.work.Go(func() {
			wishes.hold(ctx)
			c.sendResult(m, struct{}{})
		})
		return true
	}
	if s.connectServers(supervisor.Config{}, files) == nil {
		return
	}
	g := s.openGateway(gateway.Config{})
	s.modernAgents = s.isOneIn(2)
	a := s.joinAgent(g, serve.Principal{Name: "anna"}, serve.Path{}, nil)
	if a == nil {
		return
	}
	tool := a.listNames(s, "tools/list", "tools", "name")
	if len(tool) != 1 {
		s.reportFinding("I26", "files", "it has one tool, and an agent sees %q", tool)
		return
	}
	answers := make([]string, 1+s.rng.IntN(4))
	for i := range answers {
		s.runBeside(func() {
			result, err := a.callMethod(s.ctx, "tools/call", map[string]any{"name": tool[0], "arguments": map[string]any{"n": i}})
			if err != nil {
				result = json.RawMessage(fmt.Sprintf("%q", err.Error()))
			}
			answers[i] = textOf(result)
		})
	}
	watches := s.isOneIn(2)
	if watches && !s.modernAgents {
		s.runBeside(func() {
			_, _ = a.callMethod(s.ctx, "resources/subscribe", map[string]any{"uri": "drill://files/one"})
		})
	}
	end := func() {}
	if watches && s.modernAgents {
		end = a.listenFor(s, map[string]any{"resourceSubscriptions": []string{"drill://files/one"}})
	}
	s.letPass(s.drawSpan(time.Millisecond, 10*time.Second))
	s.addStory("%d calls of a tool are held (modern: %t)", len(answers), s.modernAgents)
	left := time.Now()
	closes := s.isOneIn(2)
	if closes {
		end()
		s.addStory("the agent closes its input")
		_ = a.out.Close()
	} else {
		s.addStory("the agent's connection is lost")
		if s.isOneIn(2) {
			s.runBeside(wishes.releaseAll) // in whichever order
		}
		a.hangUp()
	}
	s.letPass(s.drawSpan(time.Millisecond, 10*time.Second))
	calls.mu.Lock()
	for _, ended := range calls.ended {
		if closes && !ended.IsZero() {
			s.reportFinding("I25", "files", "the agent closed its input while its calls ran, and one of them was cancelled at %s", ended.Format("4:05.000"))
			break
		}
		if !closes && !ended.Equal(left) {
			s.reportFinding("I25", "files", "the agent's connection was lost at %s, and the server learned of it at %s", left.Format("4:05.000"), ended.Format("4:05.000"))
			break
		}
	}
	calls.mu.Unlock()
	calls.releaseAll()
	wishes.releaseAll()
	s.letPass(time.Minute)
	for i, text := range answers {
		if want := fmt.Sprintf(`{"n":%d}`, i); closes && text != want {
			s.reportFinding("I25", "files", "the agent had closed its input, and its call with %s was answered with %q", want, text)
			return
		}
	}
	// A wish that was taken back is none.
	watched, given := len(files.heardOf("resources/subscribe")), len(files.heardOf("resources/unsubscribe"))
	if isTakenBack != nil && isTakenBack() == nil && watched != given {
		s.reportFinding("I12", "files", "the only agent has gone; it was asked %d times to tell of a resource, and %d times not to any more", watched, given)
	}
}

// textOf returns the text of a result, or what stands there instead of one.
func textOf(result json.RawMessage) string {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil || len(r.Content) != 1 {
		return string(result)
	}
	return r.Content[0].Text
}
