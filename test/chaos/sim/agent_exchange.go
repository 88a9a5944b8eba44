package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/test/chaos/agents"
)

// outcomeMember is the member of _meta, or of the data of an error, in which the endpoint tells the outcome.
const outcomeMember = "mcpvisor/outcome"

// maxAgentRounds bounds how often an agent is asked about one request.
const maxAgentRounds = 20

// ask sends a request of an agent, and again with its answers for as long as the endpoint requires input. An error is one of the protocol,
// with the outcome that the endpoint tells.
func (g *principalAgents) ask(ctx context.Context, caller, method, name, params string) (json.RawMessage, error) {
	more := ""
	for range maxAgentRounds {
		result, err := g.exchange(ctx, caller, method, name, params+more, nil)
		if err != nil || string(rawjson.Member(result, "resultType")) != `"input_required"` {
			return result, cmp.Or(err, toolError(result))
		}
		more = answersTo(result, caller)
	}
	g.p.reportViolation("I24", "", fmt.Sprintf("the agent of %q was asked more than %d times about one %s", caller, maxAgentRounds, method))
	return nil, context.DeadlineExceeded
}

// toolError returns the error that a result of a call stands for, nil if the tool has answered.
func toolError(result []byte) error {
	outcome, failed := rawjson.Text(rawjson.Member(rawjson.Member(result, "_meta"), outcomeMember))
	if !failed {
		return nil
	}
	return &messages.Error{Op: "call", Outcome: messages.Outcome(outcome), Text: messages.Line(string(result), 300)}
}

// answersTo returns the members of params with which an agent answers what a result requires, in the name of its caller.
func answersTo(result []byte, caller string) string {
	b := []byte(`,"inputResponses":{`)
	empty := len(b)
	m := rawjson.ObjectAt(rawjson.Member(result, "inputRequests"), 0, 0)
	for m.Next() {
		method, _ := rawjson.Text(rawjson.Member(m.Skip(), "method"))
		if len(b) > empty {
			b = append(b, ',')
		}
		b = append(append(rawjson.AppendText(b, string(m.Name)), ':'), replyFor(method, caller)...)
	}
	b = append(b, '}')
	if state := rawjson.Member(result, "requestState"); state != nil {
		b = append(append(b, `,"requestState":`...), state...)
	}
	return string(b)
}

// exchange sends one request of an agent, and returns its answer. notify takes the notifications that come before it.
func (g *principalAgents) exchange(ctx context.Context, caller, method, name, params string, notify func(method string, params []byte)) (json.RawMessage, error) {
	if params != "" {
		params = "," + params
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}}` + params + `}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	if err != nil {
		panic(err) // the address is the harness's own
	}
	r.Header.Set("Authorization", "Bearer "+agents.TokenMark+caller)
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", method)
	if name != "" {
		r.Header.Set("Mcp-Name", name)
	}
	res, err := g.client.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	in := bufio.NewReaderSize(res.Body, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		line = bytes.TrimPrefix(bytes.TrimSpace(line), []byte("data: "))
		if method, ok := rawjson.Text(rawjson.Member(line, "method")); ok && notify != nil {
			notify(method, rawjson.Member(line, "params"))
		} else if result := rawjson.Member(line, "result"); result != nil {
			return result, nil
		} else if problem := rawjson.Member(line, "error"); problem != nil {
			outcome, _ := rawjson.Text(rawjson.Member(rawjson.Member(problem, "data"), outcomeMember))
			return nil, &messages.Error{Op: "call", Outcome: messages.Outcome(outcome), Text: messages.Line(string(problem), 300)}
		}
		if err != nil {
			return nil, err
		}
	}
}
