package gateway_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// A request that cannot be meant is refused with the code for it, in both eras, and reaches no server.
func TestRequestsThatCannotBeMeant(t *testing.T) {
	one := supervisortest.NewServer("one", text("read"))
	e := start(t, gateway.PrefixNever, one)
	a := e.agent("a", "/mcp", "{}")
	for _, c := range []struct{ method, params, want string }{
		{"tools/call", `{}`, "tools/call names no tool"},
		{"tools/call", `{"name":""}`, "tools/call names no tool"},
		{"tools/call", `{"name":5}`, "tools/call names no tool"},
		{"tools/call", `{"name":"read","arguments":5}`, "the arguments must be an object"},
		{"tools/call", `{"name":"read","arguments":[]}`, "the arguments must be an object"},
		{"resources/read", `{}`, "resources/read names no uri"},
		{"resources/read", `{"uri":""}`, "resources/read names no uri"},
		{"prompts/get", `{}`, "prompts/get names no prompt"},
		{"prompts/get", `{"name":""}`, "prompts/get names no prompt"},
		{"completion/complete", `{}`, "completion/complete names no ref"},
		{"completion/complete", `{"ref":"x"}`, "completion/complete names no ref"},
	} {
		contains(t, c.method+" "+c.params, a.ask(c.method, c.params), `"code":-32602`, c.want)
		members := c.params[1 : len(c.params)-1]
		if members != "" {
			members += ","
		}
		name := ""
		if got := struct{ Name string }{}; json.Unmarshal([]byte(c.params), &got) == nil {
			name = got.Name
		}
		contains(t, "modern "+c.method+" "+c.params, e.modern("a", c.method, name, members), `"code":-32602`, c.want)
	}
	for _, c := range []struct{ method, params, want string }{
		{"resources/subscribe", `{}`, `"code":-32602`}, {"resources/unsubscribe", `{"uri":""}`, `"code":-32602`},
		{"logging/setLevel", `{"level":"loud"}`, `"code":-32602`}, {"logging/setLevel", `{}`, `"code":-32602`},
		{"ping", `{}`, `"result":{}`}, {"subscriptions/listen", `{}`, `"code":-32601`}, {"no/such", `{}`, `"code":-32601`},
	} {
		contains(t, c.method+" "+c.params, a.ask(c.method, c.params), c.want)
	}
	for _, method := range []string{"ping", "logging/setLevel", "resources/subscribe", "no/such"} {
		contains(t, "modern "+method, e.modern("a", method, "", ""), `"code":-32601`)
	}
	contains(t, "a filter of no shape", e.modern("a", "subscriptions/listen", "", `"notifications":5,`), `"code":-32602`)
	if n := len(one.Calls()); n != 0 {
		t.Errorf("the server got %d calls", n)
	}
}

// The question of a server in a call reaches the agent whose call it is, as the server wrote it, and the server gets the agent's own words.
func TestAllQuestionsReachTheAgent(t *testing.T) {
	for method, c := range map[string]struct{ ability, params, answer, want string }{
		"sampling/createMessage": {`"sampling":{}`, `{"messages":[],"maxTokens":7}`, `{"role":"assistant","content":{"type":"text","text":"hm"},"model":"m"}`, `"text":"hm"`},
		"roots/list":             {`"roots":{}`, ``, `{"roots":[{"uri":"file:///work","name":"w"}]}`, `file:///work`},
		"elicitation/create":     {`"elicitation":{}`, `{"message":"who?","requestedSchema":{"type":"object","properties":{}}}`, `{"action":"decline"}`, `decline`},
	} {
		for _, able := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				got := make(chan string, 1)
				one := supervisortest.NewServer("one", supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, call supervisortest.Call) (string, error) {
					var params json.RawMessage
					if c.params != "" {
						params = json.RawMessage(c.params)
					}
					answer, err := call.Ask(ctx, method, params)
					if err != nil {
						answer = json.RawMessage(err.Error())
					}
					got <- string(answer)
					return "asked", nil
				}})
				e := start(t, gateway.PrefixNever, one)
				abilities := "{}"
				if able {
					abilities = "{" + c.ability + "}"
				}
				a := e.agent("a", "/mcp", abilities)
				post := func(body string) string {
					return a.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": a.id}, body).Body.String()
				}
				heard := make(chan string, 1)
				go func() { heard <- post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask"}}`) }()
				time.Sleep(time.Second)
				if able {
					post(`{"jsonrpc":"2.0","id":1,"result":` + c.answer + `}`)
				}
				stream, answer := <-heard, <-got
				contains(t, method+": the end", stream, "asked")
				if able {
					contains(t, method+": the question", stream, `"method":"`+method+`"`)
					contains(t, method+": the answer", answer, c.want)
					return
				}
				contains(t, method+" to an agent that cannot be asked", answer, "-32")
			})
		}
	}
}
