package check

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// mostCalls is how many tools of a trusted server are called at most.
const mostCalls = 3

// callable are the tools that may be called, or why there are none.
func (s *subject) callable() (calls []Call, because string) {
	if calls := s.o.Calls[s.name]; len(calls) > 0 {
		return calls, ""
	}
	if !s.spec.Trusted {
		return nil, "no tool may be called: name one with --call '" + messages.Line(s.name, 30) + ":TOOL {json}', or mark the " +
			"server trusted, which lets its read-only tools without required arguments be called"
	}
	offered := map[string]bool{}
	for _, t := range s.tools.Tools {
		offered[t.Name] = true
	}
	for _, e := range s.first {
		if e.readOnly && e.schema && e.required == 0 && offered[e.name] && len(calls) < mostCalls {
			calls = append(calls, Call{Tool: e.name, Args: json.RawMessage(`{}`)})
		}
	}
	if len(calls) == 0 {
		return nil, "the server is trusted and has no tool that is marked read-only and demands no argument: name one with " +
			"--call '" + messages.Line(s.name, 30) + ":TOOL {json}'"
	}
	return calls, ""
}

// calls tries the tools that may be called.
func (s *subject) calls(ctx context.Context) {
	calls, because := s.callable()
	if because != "" {
		s.add("call", NotTried, because, "")
		return
	}
	slowest, longest := Call{}, time.Duration(0)
	for _, call := range calls {
		s.on(ctx, "call "+call.Tool, func(ctx context.Context, c *conversation) {
			took, ok := s.call(ctx, c, call)
			if !ok {
				return
			}
			if took > longest {
				slowest, longest = call, took
			}
			s.callsAtOnce(ctx, c, call, took)
		})
	}
	if slowest.Tool == "" {
		s.add("cancel", NotTried, "no call was answered", "")
		return
	}
	s.on(ctx, "cancel", func(ctx context.Context, c *conversation) { s.cancellation(ctx, c, slowest, longest) })
}

func (call Call) params() map[string]any {
	return map[string]any{"name": call.Tool, "arguments": call.Args}
}

// call calls a tool once, and reports how long that took.
func (s *subject) call(ctx context.Context, c *conversation, call Call) (time.Duration, bool) {
	id := "call " + call.Tool
	within, cancel := context.WithTimeout(ctx, s.o.CallTimeout)
	defer cancel()
	began := time.Now()
	r, err := c.begin(within, "tools/call", call.Tool, call.params()).wait(within)
	took := time.Since(began)
	var result struct {
		IsError bool             `json:"isError"`
		Content *json.RawMessage `json:"content"`
	}
	switch {
	case err != nil:
		s.add(id, Fail, "called, it "+said(err), "end every call with a result or an error", "ms", took)
		return 0, false
	case r.Error != nil:
		s.add(id, Warn, fmt.Sprintf("it refuses the call with error %d: %s", r.Error.Code, messages.Line(r.Error.Message, 120)),
			"are the arguments right?", "ms", took)
		return 0, false
	case json.Unmarshal(r.Result, &result) != nil || result.Content == nil:
		s.add(id, Fail, "the result of the call has no content", "answer a call with content, a list that may be empty", "ms", took)
		return 0, false
	case result.IsError:
		s.add(id, Warn, fmt.Sprintf("the tool reports a failure after %s", ms(took)), "are the arguments right?", "ms", took)
		return took, true
	}
	s.add(id, Pass, fmt.Sprintf("answered after %s with %s", ms(took), plural(len(r.Result), "byte")), "", "ms", took,
		"bytes", len(r.Result))
	return took, true
}

// callsAtOnce calls one tool several times at once.
func (s *subject) callsAtOnce(ctx context.Context, c *conversation, call Call, alone time.Duration) {
	id := "call-parallel " + call.Tool
	n := s.o.Concurrency
	within, cancel := context.WithTimeout(ctx, s.o.CallTimeout+time.Duration(n)*alone)
	defer cancel()
	began := time.Now()
	flights := make([]*flight, n)
	for i := range flights {
		flights[i] = c.begin(within, "tools/call", call.Tool, call.params())
	}
	lost, refused := 0, 0
	var why error
	for _, f := range flights {
		r, err := f.wait(within)
		switch {
		case err != nil:
			lost, why = lost+1, err
		case r.Error != nil:
			refused++
		}
	}
	together := time.Since(began)
	serial := time.Duration(n) * alone
	switch {
	case lost > 0:
		s.add(id, Fail, fmt.Sprintf("of %d calls at once %d were not answered: it %s", n, lost, said(why)),
			"keep calls apart by their id, and end each of them")
	case refused > 0:
		s.add(id, Warn, fmt.Sprintf("of %d calls at once %d were refused", n, refused),
			"let calls wait for their turn instead of refusing them")
	case alone > 100*time.Millisecond && together > serial+serial/2:
		s.add(id, Warn, fmt.Sprintf("%d calls at once take %s, longer than one after the other (%s)", n, ms(together), ms(serial)),
			"what do they wait for? A lock, or one connection that they share", "calls", n, "togetherMs", together)
	default:
		s.add(id, Pass, fmt.Sprintf("%d calls at once take %s; one takes %s", n, ms(together), ms(alone)), "", "calls", n,
			"togetherMs", together)
	}
}

// slowEnough is how long a call must take to be cancelled while it runs.
const slowEnough = 150 * time.Millisecond

// cancellation cancels a call that runs.
func (s *subject) cancellation(ctx context.Context, c *conversation, call Call, takes time.Duration) {
	if takes < slowEnough {
		s.add("cancel", NotTried, fmt.Sprintf("%s answers after %s, before it can be cancelled: name a slow call with --call",
			messages.Line(call.Tool, 40), ms(takes)), "")
		return
	}
	within, cancel := context.WithTimeout(ctx, s.o.CallTimeout+s.o.Answer)
	defer cancel()
	f := c.begin(within, "tools/call", call.Tool, call.params())
	select {
	case <-time.After(min(takes/3, time.Second)):
	case <-ctx.Done():
		return
	}
	if c.modern != "" && c.kind == messages.HTTP {
		f.cancel() // in this era the end of the response's stream is the cancellation
	} else if err := c.tell(ctx, s.o.Answer, "notifications/cancelled", c.request(0, "notifications/cancelled",
		map[string]any{"requestId": f.id, "reason": "a check"})); err != nil {
		s.add("cancel", Fail, "the cancellation "+said(refusedBy(err)), "accept notifications/cancelled")
		return
	}
	lives := c.alive(ctx, s.o.Answer)
	rest, stop := context.WithTimeout(ctx, takes+time.Second)
	defer stop()
	_, err := f.wait(rest)
	tool := messages.Line(call.Tool, 40)
	switch {
	case lives != nil:
		s.add("cancel", Fail, fmt.Sprintf("after %s was cancelled it %s when it is asked for a sign of life", tool, said(lives)),
			"read messages while a call runs: run calls beside the reading of input")
	case err == nil:
		s.add("cancel", Warn, fmt.Sprintf("%s was cancelled, and is answered all the same: it went on working", tool),
			"stop the work when notifications/cancelled comes, and send no answer")
	default:
		s.add("cancel", Pass, fmt.Sprintf("%s was cancelled: no answer comes, and other requests are answered", tool), "")
	}
}
