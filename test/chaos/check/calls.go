package check

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// maxCalls bounds how many tools of a trusted server are called without the person naming them.
const maxCalls = 3

// callableTools returns the tools that may be called, or the reason why none may. A tool that the person named comes without
// further conditions.
func (s *serverCheck) callableTools() (calls []Call, because string) {
	if calls := s.o.Calls[s.name]; len(calls) > 0 {
		return calls, ""
	}
	if !s.spec.Trusted {
		return nil, "no tool may be called: name one with " + s.callFlag() + s.uncalledTools(nil) + ", or mark the server trusted, " +
			"which lets its read-only tools without required arguments be called"
	}
	offered := map[string]bool{}
	for _, t := range s.tools.Tools {
		offered[t.Name] = true
	}
	for _, e := range s.first {
		if e.readOnly && e.schema && e.required == 0 && offered[e.name] && len(calls) < maxCalls {
			calls = append(calls, Call{Tool: e.name, Args: json.RawMessage(`{}`)})
		}
	}
	if len(calls) == 0 {
		return nil, "the server is trusted and has no tool that is marked read-only and demands no argument: name one with " +
			s.callFlag() + s.uncalledTools(nil)
	}
	return calls, ""
}

// callFlag returns what a person writes to have a tool called. Package chaos replaces it by what a Go program writes.
func (s *serverCheck) callFlag() string { return CallFlag(s.name) }

// CallFlag returns the option of the command chaos check that has a tool of a server called, as the texts of findings name it.
func CallFlag(server string) string { return "--call '" + messages.Line(server, 30) + ":TOOL {json}'" }

// uncalledTools names, in brackets, the first tools of the server that calls leaves out; empty if there are none.
func (s *serverCheck) uncalledTools(calls []Call) string {
	var names []string
	for _, e := range s.first {
		if !slices.ContainsFunc(calls, func(c Call) bool { return c.Tool == e.name }) {
			names = append(names, e.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (not called: " + firstFew(names) + ")"
}

// checkCalls calls the tools that may be called: once, several at once, and the slowest one to cancel it.
func (s *serverCheck) checkCalls(ctx context.Context) {
	calls, because := s.callableTools()
	if because != "" {
		s.addFinding("call", NotTried, because, "")
		return
	}
	// The slowest call is cancelled at the end: it is the one that most probably still runs when the cancellation arrives.
	slowest, longest := Call{}, time.Duration(0)
	for _, call := range calls {
		s.runShared(ctx, "call "+call.Tool, func(ctx context.Context, c *rawClient) {
			took, ok := s.checkCall(ctx, c, call)
			if !ok {
				return
			}
			if took > longest {
				slowest, longest = call, took
			}
			s.checkParallelCalls(ctx, c, call, took)
		})
	}
	// Without a single answer there is nothing to compare a cancelled call with.
	if slowest.Tool == "" {
		s.addFinding("cancel", NotTried, "no call was answered", "")
		return
	}
	s.runShared(ctx, "cancel", func(ctx context.Context, c *rawClient) {
		s.checkCancellation(ctx, c, slowest, longest, s.uncalledTools(calls))
	})
}

// params returns the params of tools/call.
func (call Call) params() map[string]any {
	return map[string]any{"name": call.Tool, "arguments": call.Args}
}

// checkCall calls a tool once and judges the answer. It returns how long the call took, and false if it gave no usable result.
// A failure of the tool itself still counts as an answer.
func (s *serverCheck) checkCall(ctx context.Context, c *rawClient, call Call) (time.Duration, bool) {
	id := "call " + call.Tool
	within, cancel := context.WithTimeout(ctx, s.o.CallTimeout)
	defer cancel()
	began := time.Now()
	r, err := c.sendRequest(within, "tools/call", call.Tool, call.params()).awaitReply(within)
	took := time.Since(began)
	var result struct {
		IsError bool             `json:"isError"`
		Content *json.RawMessage `json:"content"`
	}
	switch {
	case err != nil:
		s.addFinding(id, Fail, "called, it "+failureText(err), "end every call with a result or an error", "ms", took)
		return 0, false
	case r.Error != nil:
		s.addFinding(id, Warn, fmt.Sprintf("it refuses the call with error %d: %s", r.Error.Code, messages.Line(r.Error.Message, 120)),
			"are the arguments right?", "ms", took)
		return 0, false
	case json.Unmarshal(r.Result, &result) != nil || result.Content == nil:
		s.addFinding(id, Fail, "the result of the call has no content", "answer a call with content, a list that may be empty", "ms", took)
		return 0, false
	case result.IsError:
		s.addFinding(id, Warn, fmt.Sprintf("the tool reports a failure after %s", durationText(took)), "are the arguments right?", "ms", took)
		return took, true
	}
	s.addFinding(id, Pass, fmt.Sprintf("answered after %s with %s", durationText(took), pluralText(len(r.Result), "byte")), "", "ms", took,
		"bytes", len(r.Result))
	return took, true
}

// checkParallelCalls calls one tool Concurrency times at once, and compares the time with that of calls one after the other.
// alone is the time of one call.
func (s *serverCheck) checkParallelCalls(ctx context.Context, c *rawClient, call Call, alone time.Duration) {
	id := "call-parallel " + call.Tool
	n := s.o.Concurrency
	// A server that runs one call after the other is slow and not broken, so the calls get the time that they need in a row.
	within, cancel := context.WithTimeout(ctx, s.o.CallTimeout+time.Duration(n)*alone)
	defer cancel()
	began := time.Now()
	pending := make([]*pendingRequest, n)
	for i := range pending {
		pending[i] = c.sendRequest(within, "tools/call", call.Tool, call.params())
	}
	// All requests are out before the first answer is read, so that the server may answer in any order.
	lost, refused := 0, 0
	var cause error
	for _, f := range pending {
		r, err := f.awaitReply(within)
		switch {
		case err != nil:
			lost, cause = lost+1, err
		case r.Error != nil:
			refused++
		}
	}
	together := time.Since(began)
	serial := time.Duration(n) * alone
	switch {
	case lost > 0:
		s.addFinding(id, Fail, fmt.Sprintf("of %d calls at once %d were not answered: it %s", n, lost, failureText(cause)),
			"keep calls apart by their id, and end each of them")
	case refused > 0:
		s.addFinding(id, Warn, fmt.Sprintf("of %d calls at once %d were refused", n, refused),
			"let calls wait for their turn instead of refusing them")
	// Below 100 ms the time of a call is mostly noise, so that a comparison says nothing.
	case alone > 100*time.Millisecond && together > serial+serial/2:
		s.addFinding(id, Warn, fmt.Sprintf("%d calls at once take %s, longer than one after the other (%s)", n, durationText(together), durationText(serial)),
			"what do they wait for? A lock, or one connection that they share", "calls", n, "togetherMs", together)
	default:
		s.addFinding(id, Pass, fmt.Sprintf("%d calls at once take %s; one takes %s", n, durationText(together), durationText(alone)), "", "calls", n,
			"togetherMs", together)
	}
}

// slowEnough is the time that a call must take so that a cancellation can reach it while it runs.
const slowEnough = 150 * time.Millisecond

// checkCancellation cancels a call while it runs, and checks that the server goes on answering and does not answer the call.
// others names the tools that were not called, for a person who looks for a slow one.
func (s *serverCheck) checkCancellation(ctx context.Context, c *rawClient, call Call, takes time.Duration, others string) {
	tooQuick := func(took time.Duration) {
		s.addFinding("cancel", NotTried, fmt.Sprintf("%s answers after %s, before it can be cancelled: name a call that takes longer "+
			"than %s with %s%s", messages.Line(call.Tool, 40), durationText(took), slowEnough, s.callFlag(), others), "")
	}
	if takes < slowEnough {
		tooQuick(takes)
		return
	}
	within, cancel := context.WithTimeout(ctx, s.o.CallTimeout+s.o.Answer)
	defer cancel()
	began := time.Now()
	f := c.sendRequest(within, "tools/call", call.Tool, call.params())
	select {
	// The call before was slow for another reason than its work, such as a machine that was busy: nothing is left to cancel.
	case r := <-f.answer:
		f.answer <- r
		_, _ = f.awaitReply(within)
		tooQuick(time.Since(began))
		return
	// A third of the call's time, so that it has surely begun and has not ended.
	case <-time.After(min(takes/3, time.Second)):
	case <-ctx.Done():
		return
	}
	if c.modern != "" && c.kind == messages.HTTP {
		// 2026-07-28: over HTTP the end of the response's stream is the cancellation.
		f.cancel()
	} else if err := c.sendMessage(ctx, s.o.Answer, "notifications/cancelled", c.requestBody(0, "notifications/cancelled",
		map[string]any{"requestId": f.id, "reason": "a check"})); err != nil {
		s.addFinding("cancel", Fail, "the cancellation "+failureText(refusedBy(err)), "accept notifications/cancelled")
		return
	}
	lives := c.checkAlive(ctx, s.o.Answer)
	rest, stop := context.WithTimeout(ctx, takes+time.Second)
	defer stop()
	_, err := f.awaitReply(rest)
	tool := messages.Line(call.Tool, 40)
	switch {
	case lives != nil:
		s.addFinding("cancel", Fail, fmt.Sprintf("after %s was cancelled it %s when it is asked for a sign of life", tool, failureText(lives)),
			"read messages while a call runs: run calls beside the reading of input")
	case err == nil:
		s.addFinding("cancel", Warn, fmt.Sprintf("%s was cancelled, and is answered all the same: it went on working", tool),
			"stop the work when notifications/cancelled comes, and send no answer")
	default:
		s.addFinding("cancel", Pass, fmt.Sprintf("%s was cancelled: no answer comes, and other requests are answered", tool), "")
	}
}
