package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

const (
	askName = `{"message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`
	canAll  = `{"elicitation":{},"sampling":{},"roots":{}}`
	anna    = `{"action":"accept","content":{"name":"anna"}}`
)

// questioner is a tool that asks so many questions one after the other, and answers with all answers, or with the first refusal.
func questioner(name string, questions int) supervisortest.Tool {
	return supervisortest.Tool{Name: name, Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
		said := "asked"
		for range questions {
			got, err := c.Ask(ctx, "elicitation/create", json.RawMessage(askName))
			if err != nil {
				return "refused: " + err.Error(), nil //nolint:nilerr // the refusal is the tool's answer
			}
			said += " " + string(got)
		}
		return said, nil
	}}
}

// modernAgent sends requests of the modern era.
type modernAgent struct {
	*endpoint
	token, path, capabilities string
}

// send sends a request with these members of params, and returns the answer.
func (a modernAgent) send(ctx context.Context, method, name, members string) string {
	w := a.post(ctx, a.path, map[string]string{"Authorization": "Bearer " + a.token, "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": method, "Mcp-Name": name}, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+members+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+a.capabilities+`}}}`)
	return lastMessage(w)
}

// call calls a tool, with further members of params.
func (a modernAgent) call(tool, members string) string {
	return a.send(a.t.Context(), "tools/call", tool, `"name":"`+tool+`",`+members)
}

// asked returns the questions and the state of an answer that asks, nil if it does not.
func asked(t *testing.T, answer string) (questions map[string]json.RawMessage, state string) {
	t.Helper()
	var got struct {
		Result struct {
			ResultType    string
			InputRequests map[string]json.RawMessage
			RequestState  string
		}
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	if got.Result.ResultType != "input_required" {
		return nil, ""
	}
	return got.Result.InputRequests, got.Result.RequestState
}

// reply returns the members of a request that answers questions.
func reply(state string, answers ...string) string {
	all := make([]string, len(answers)/2)
	for i := range all {
		all[i] = `"` + answers[2*i] + `":` + answers[2*i+1]
	}
	return `"inputResponses":{` + strings.Join(all, ",") + `},"requestState":"` + state + `",`
}

func contains(t *testing.T, what, answer string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			t.Errorf("%s: there is no %s in %s", what, part, answer)
		}
	}
}

// A server of the legacy era asks an agent of the modern one in the middle of a call, twice: the call runs once, and each state is
// good for one answer.
func TestModernAgentIsAskedByALegacyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", questioner("ask", 2))
		one.Spec.CallTimeout = messages.Duration(10 * time.Second)
		e := start(t, gateway.PrefixNever, one)
		a := modernAgent{e, "a", "/mcp", canAll}
		questions, first := asked(t, a.call("ask", ""))
		contains(t, "the question", string(questions["question_1"]), `"method":"elicitation/create"`, `"message":"who?"`)
		time.Sleep(4 * time.Minute) // a person takes longer than a call may
		answer := a.call("ask", reply(first, "question_1", anna))
		questions, second := asked(t, answer)
		if len(questions) != 1 || questions["question_2"] == nil || first == second {
			t.Fatalf("the second question: %s", answer)
		}
		contains(t, "the first state again", a.call("ask", reply(first, "question_1", anna)), `"code":-32602`, "used already")
		answer = a.call("ask", reply(second, "question_2", `{"action":"decline"}`))
		contains(t, "the result", answer, `anna`, `decline`, `"resultType":"complete"`)
		contains(t, "the second state again", a.call("ask", reply(second, "question_2", anna)), `"code":-32602`, "its result was given")
		if n := len(one.Calls()); n != 1 {
			t.Errorf("the server got %d calls", n)
		}
	})
}

// An agent that comes with the state alone, because it has no answer yet, is asked again, and its call goes on with the newer state.
func TestASuspendedCallIsResumedWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", questioner("ask", 1))
		a := modernAgent{start(t, gateway.PrefixNever, one), "a", "/mcp", canAll}
		_, first := asked(t, a.call("ask", ""))
		answer := a.call("ask", `"requestState":"`+first+`",`)
		questions, second := asked(t, answer)
		if len(questions) != 1 || second == "" {
			t.Fatalf("without answers the agent is asked %s", answer)
		}
		contains(t, "answers of no shape", a.call("ask", `"inputResponses":5,"requestState":"`+second+`",`), `"code":-32602`)
		contains(t, "the end", a.call("ask", reply(second, "question_1", anna)), "anna")
		if n := len(one.Calls()); n != 1 {
			t.Errorf("the server got %d calls", n)
		}
	})
}

// A state is good for the one who got it, on the same path, for the same request: everybody else gets an error, and no call runs.
func TestStateOfASuspendedCallIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", questioner("ask", 1), questioner("other", 1))
		e := start(t, gateway.PrefixNever, one)
		a := modernAgent{e, "a", "/mcp", canAll}
		_, state := asked(t, a.call("ask", `"arguments":{"n":1,"m":2},`))
		same := `"arguments":{"m":2,"n":1},`
		good := reply(state, "question_1", anna)
		for name, answer := range map[string]string{
			"another principal":   modernAgent{e, "b", "/mcp", canAll}.call("ask", same+good),
			"another path":        modernAgent{e, "a", "/mcp/s/one", canAll}.call("ask", same+good),
			"another tool":        a.call("other", same+good),
			"other arguments":     a.call("ask", `"arguments":{"n":2,"m":2},`+good),
			"no arguments":        a.call("ask", good),
			"a changed state":     a.call("ask", same+reply(state[:20]+"AAAA"+state[24:], "question_1", anna)),
			"a longer state":      a.call("ask", same+reply(state+"-TAMPERED", "question_1", anna)),
			"a state of nobody":   a.call("ask", same+reply("AAAA", "question_1", anna)),
			"answers of no shape": a.call("ask", same+`"inputResponses":[],"requestState":"`+state+`",`),
			"an answer of none":   a.call("ask", same+reply(state, "question_1", "5")),
		} {
			contains(t, name, answer, `"code":-32602`)
		}
		if n := len(one.Calls()); n != 1 {
			t.Errorf("the server got %d calls", n)
		}
		contains(t, "who got it", a.call("ask", same+good), "anna")
	})
}

// Of two requests with the same state one waits for the call, and the other one gets an error.
func TestSuspendedCallIsResumedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", questioner("ask", 1))
		e := start(t, gateway.PrefixNever, one)
		a := modernAgent{e, "a", "/mcp", canAll}
		_, state := asked(t, a.call("ask", ""))
		answers := make(chan string, 10)
		for range 10 {
			go func() { answers <- a.call("ask", reply(state, "question_1", anna)) }()
		}
		results := 0
		for range 10 {
			if answer := <-answers; strings.Contains(answer, "anna") {
				results++
			} else {
				contains(t, "the other one", answer, `"code":-32602`)
			}
		}
		if n := len(one.Calls()); n != 1 || results != 1 {
			t.Errorf("the server got %d calls, the agents %d results", n, results)
		}
	})
}

// A call whose agent does not come back is cancelled at its server, and an agent that comes later gets an error that says so.
func TestAbandonedCallIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		one := supervisortest.NewServer("one", supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
			_, _ = c.Ask(ctx, "elicitation/create", json.RawMessage(askName))
			<-ctx.Done()
			ended <- ctx.Err()
			return "", nil
		}})
		e := start(t, gateway.PrefixNever, one)
		a := modernAgent{e, "a", "/mcp", canAll}
		_, state := asked(t, a.call("ask", ""))
		began := time.Now()
		if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(began).Round(time.Second) != 5*time.Minute {
			t.Errorf("the call ended after %v with %v", time.Since(began), err)
		}
		contains(t, "too late", a.call("ask", reply(state, "question_1", anna)),
			`"code":-32602`, "cancelled", "It may have run", `"mcpvisor/outcome":"unknown"`)
		time.Sleep(time.Hour)
		contains(t, "much too late", a.call("ask", reply(state, "question_1", anna)), `"code":-32602`, "too old")
		if n := len(one.Calls()); n != 1 {
			t.Errorf("the server got %d calls", n)
		}
	})
}

// A server that dies, or goes on by itself, while its agent is asked: the agent gets what became of the call.
func TestSuspendedCallEndsBeforeItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", questioner("ask", 1), supervisortest.Tool{Name: "impatient",
			Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				_, err := c.Ask(ctx, "elicitation/create", json.RawMessage(askName))
				return fmt.Sprint("went on: ", err), nil
			}})
		e := start(t, gateway.PrefixNever, one)
		a := modernAgent{e, "a", "/mcp", canAll}
		_, state := asked(t, a.call("impatient", ""))
		time.Sleep(2 * time.Minute)
		contains(t, "the server went on", a.call("impatient", reply(state, "question_1", anna)), "went on: context deadline exceeded")
		contains(t, "once only", a.call("impatient", reply(state, "question_1", anna)), `"code":-32602`)
		_, state = asked(t, a.call("ask", ""))
		one.Crash()
		time.Sleep(time.Second)
		contains(t, "the server died", a.call("ask", reply(state, "question_1", anna)), `"isError":true`, `"mcpvisor/outcome":"unknown"`)
		if n := len(one.Calls()); n != 2 {
			t.Errorf("the server got %d calls", n)
		}
	})
}

// An agent that closes the request which waits for a call takes the call back.
func TestClosingTheRequestCancelsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		one := supervisortest.NewServer("one", supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
			_, _ = c.Ask(ctx, "elicitation/create", json.RawMessage(askName))
			<-ctx.Done()
			close(ended)
			return "", nil
		}})
		e := start(t, gateway.PrefixNever, one)
		a := modernAgent{e, "a", "/mcp", canAll}
		_, state := asked(t, a.call("ask", ""))
		ctx, cancel := context.WithCancel(t.Context())
		go a.send(ctx, "tools/call", "ask", `"name":"ask",`+reply(state, "question_1", anna))
		synctest.Wait()
		before := time.Now()
		cancel()
		<-ended
		synctest.Wait()
		if !time.Now().Equal(before) {
			t.Errorf("the call went on for %v", time.Since(before))
		}
		contains(t, "afterwards", a.call("ask", reply(state, "question_1", anna)), `"code":-32602`, "was closed")
	})
}

// Questions that a server asks at once come together; what is not answered is asked again, and what nobody has asked is ignored.
func TestQuestionsOfOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
			answers := make(chan string, 3)
			for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
				params := map[string]string{"elicitation/create": askName, "sampling/createMessage": `{"messages":[],"maxTokens":5}`, "roots/list": "{}"}
				go func() {
					got, err := c.Ask(ctx, method, json.RawMessage(params[method]))
					answers <- fmt.Sprint(string(got), err)
				}()
			}
			return <-answers + <-answers + <-answers, nil
		}})
		e := start(t, gateway.PrefixNever, one)
		a := modernAgent{e, "a", "/mcp", canAll}
		questions, state := asked(t, a.call("ask", ""))
		if len(questions) != 3 {
			t.Fatalf("the agent is asked %s", questions)
		}
		var id, others []string
		for name, q := range questions {
			switch {
			case strings.Contains(string(q), "elicitation/create"):
				id = []string{name, anna, "question_9", `{}`}
			case strings.Contains(string(q), "roots/list"):
				others = append(others, name, `{"roots":[{"uri":"file:///x"}]}`)
			default:
				others = append(others, name, `{"role":"assistant","model":"m","content":{"type":"text","text":"hello"}}`)
			}
		}
		rest, state := asked(t, a.call("ask", reply(state, id...)))
		if len(rest) != 2 || rest[id[0]] != nil {
			t.Fatalf("the agent is asked again %s", rest)
		}
		contains(t, "the result", a.call("ask", reply(state, others...)), "anna", "file:///x", "hello")
	})
}

// Nobody is asked who has not said that he can be, and no request that may not be answered with a question.
func TestQuestionsToModernAgentsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", questioner("ask", 1), supervisortest.Tool{Name: "url",
			Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
				_, err := c.Ask(ctx, "elicitation/create", json.RawMessage(`{"mode":"url","message":"look","url":"https://example.com","elicitationId":"1"}`))
				return fmt.Sprint("refused: ", err), nil
			}})
		e := start(t, gateway.PrefixNever, one)
		for _, capabilities := range []string{`{}`, `{"sampling":{}}`, `{"elicitation":null}`} {
			a := modernAgent{e, "a", "/mcp", capabilities}
			contains(t, capabilities, a.call("ask", ""), "refused")
		}
		contains(t, "a form only", modernAgent{e, "a", "/mcp", canAll}.call("url", ""), "refused")
		if questions, _ := asked(t, (modernAgent{e, "a", "/mcp", `{"elicitation":{"url":{}}}`}).call("url", "")); len(questions) != 1 {
			t.Error("an address is not shown")
		}
	})
}

// A shared server that does not say about which request it asks: the question is refused where others have requests at it, and where
// one principal has several that work. Those that wait for an answer already are not meant.
func TestWhoseQuestionItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := supervisortest.NewServer("one", questioner("ask", 1), text("wait")), supervisortest.NewServer("two", text("elsewhere"))
		e := start(t, gateway.PrefixNever, one, two)
		a, b := modernAgent{e, "a", "/mcp", canAll}, modernAgent{e, "b", "/mcp", canAll}
		defer two.Hang("elsewhere")()
		go a.call("elsewhere", "") // a request at another server does not matter
		synctest.Wait()
		_, first := asked(t, a.call("ask", `"arguments":{"n":1},`))
		_, second := asked(t, a.call("ask", `"arguments":{"n":2},`))
		contains(t, "another principal", b.call("ask", ""), "refused")
		contains(t, "the second", a.call("ask", `"arguments":{"n":2},`+reply(second, "question_1", `{"action":"accept","content":{"name":"2"}}`)), `\"2\"`)
		contains(t, "the first", a.call("ask", `"arguments":{"n":1},`+reply(first, "question_1", `{"action":"accept","content":{"name":"1"}}`)), `\"1\"`)
		release := one.Hang("wait")
		waits := make(chan struct{})
		go func() { defer close(waits); a.call("wait", "") }()
		synctest.Wait()
		contains(t, "two that work", a.call("ask", ""), "refused", "to which of the requests that it has not answered the question belongs")
		release()
		<-waits
		if questions, _ := asked(t, b.call("ask", "")); len(questions) != 1 {
			t.Error("alone at the server, the agent is not asked")
		}
	})
}

// At the principal's own instance the question is that of its newest request, also in the modern era, whose agents of one principal cannot be told
// apart. It was refused, with the advice to have the instances that were there.
func TestAnInstanceAsksAboutTheNewestModernRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", questioner("ask", 1), text("wait"))
		one.Spec.Share = messages.SharePrincipal
		e := start(t, gateway.PrefixNever, one)
		a, b := modernAgent{e, "a", "/mcp", canAll}, modernAgent{e, "b", "/mcp", canAll}
		contains(t, "the instance begins", a.call("wait", "")+b.call("wait", ""), "it is wait")
		release := one.Hang("wait")
		var waits sync.WaitGroup
		for _, agent := range []modernAgent{a, b} {
			waits.Go(func() { contains(t, "what waits", agent.call("wait", ""), "it is wait") })
		}
		synctest.Wait()
		questions, state := asked(t, a.call("ask", ""))
		if len(questions) != 1 {
			t.Error("the newest request is not asked")
		}
		contains(t, "the answer of another principal", b.call("ask", reply(state, "question_1", anna)), `"code":-32602`)
		contains(t, "the answer", a.call("ask", reply(state, "question_1", anna)), `\"name\":\"anna\"`)
		release()
		waits.Wait()
	})
}

// The calls that wait for answers are bounded for each principal: the question of one more is refused, and others are asked.
func TestSuspendedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
			_, err := c.Ask(ctx, "roots/list", nil)
			return fmt.Sprint("refused: ", err), nil
		}}
		servers := make([]*supervisortest.Server, 7)
		for i := range servers {
			servers[i] = supervisortest.NewServer(fmt.Sprint("s", i), ask)
			servers[i].Spec.MaxInFlight = 20
		}
		e := start(t, gateway.PrefixAlways, servers...)
		a := modernAgent{e, "a", "/mcp", canAll}
		waits := 0
		for i := range 70 {
			if questions, _ := asked(t, a.call(fmt.Sprintf("s%d__ask", i%6), "")); questions != nil {
				waits++
			}
		}
		if waits != 64 {
			t.Errorf("%d calls wait", waits)
		}
		if questions, _ := asked(t, (modernAgent{e, "b", "/mcp", canAll}).call("s6__ask", "")); questions == nil {
			t.Error("another principal is not asked")
		}
		time.Sleep(6 * time.Minute)
		if questions, _ := asked(t, a.call("s0__ask", "")); questions == nil {
			t.Error("the places are not free again")
		}
	})
}

// A call that has asked ends at its server at once when nobody can answer any more: its token was taken away, or its lines have ended.
func TestSuspendedCallEndsWithItsAgent(t *testing.T) {
	for _, lines := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan time.Time, 1)
			one := supervisortest.NewServer("one", supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
				_, _ = c.Ask(ctx, "elicitation/create", json.RawMessage(askName))
				<-ctx.Done()
				ended <- time.Now()
				return "", nil
			}})
			var cfg supervisor.Config
			gateway.PassQuestions(&cfg)
			m := supervisortest.StartConfig(t, cfg, one)
			g := gateway.New(gateway.Config{Manager: m, Prefix: gateway.PrefixNever})
			t.Cleanup(g.Close)
			principals := map[string]serve.Principal{"a": {Name: "a"}, "b": {Name: "a"}}
			tokens := serve.NewTokens(principals)
			h := serve.NewHandler(serve.Options{Service: g, Authenticate: tokens.Authenticate})
			t.Cleanup(func() { _ = h.Close(context.Background()) })
			leave := func() {
				delete(principals, "a")
				tokens.Set(principals)
			}
			if lines {
				in, write := io.Pipe()
				answers, out := io.Pipe()
				go func() {
					_ = serve.Stdio(t.Context(), serve.Options{Service: g}, serve.Principal{Name: "a"}, serve.Path{}, in, out)
				}()
				_, _ = io.WriteString(write, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
					`"io.modelcontextprotocol/clientCapabilities":`+canAll+"}}}\n")
				answer, _ := bufio.NewReader(answers).ReadString('\n')
				contains(t, "on lines", answer, "input_required")
				leave = func() { _ = write.Close() }
			} else if questions, _ := asked(t, (modernAgent{&endpoint{t, m, h}, "a", "/mcp", canAll}).call("ask", "")); questions == nil {
				t.Fatal("the agent is not asked")
			}
			time.Sleep(time.Second)
			left := time.Now()
			leave()
			if took := (<-ended).Sub(left); took != 0 {
				t.Errorf("lines %t: the call went on for %v", lines, took)
			}
		})
	}
}

// The rules of a view change while an agent is asked: a call that it may not make any more is cancelled at its server, and the agent, when it
// comes back, is told that it may have run. Before, the agent was told that there is no such tool, and the call waited for it for five minutes.
func TestSuspendedCallIsForbiddenMeanwhile(t *testing.T) {
	for name, rule := range map[string]string{"a hidden tool": "deny mcp__one__ask", "denied arguments": "deny mcp__one__ask(path:/etc/**)"} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			one := supervisortest.NewServer("one", supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
				_, _ = c.Ask(ctx, "elicitation/create", json.RawMessage(askName))
				<-ctx.Done()
				ended <- ctx.Err()
				return "", nil
			}})
			e, g := startViews(t, map[string]config.View{"some": viewOf([]string{"one"}, "")}, map[string]serve.Principal{"a": {Name: "ann", View: "some"}}, one)
			a := modernAgent{e, "a", "/mcp", canAll}
			const arguments = `"arguments":{"path":"/etc/passwd"},`
			_, state := asked(t, a.call("one__ask", arguments))
			g.SetViews(map[string]config.View{"some": viewOf([]string{"one"}, "", rule)})
			synctest.Wait()
			if answer := a.call("one__ask", arguments+reply("AAAA", "question_1", anna)); len(ended) > 0 || strings.Contains(answer, "unknown") {
				t.Errorf("%s: a state that was made up is answered with %s, and %d calls ended", name, answer, len(ended))
			}
			began := time.Now()
			contains(t, name, a.call("one__ask", arguments+reply(state, "question_1", anna)), `"code":-32602`, "may not be called any more", "It may have run",
				`"mcpvisor/outcome":"unknown"`)
			if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(began) > time.Second {
				t.Errorf("%s: the call ended after %v with %v", name, time.Since(began), err)
			}
			contains(t, name+": once more", a.call("one__ask", arguments+reply(state, "question_1", anna)), `"mcpvisor/outcome":"unknown"`)
			if n := len(one.Calls()); n != 1 {
				t.Errorf("%s: the server got %d calls", name, n)
			}
		})
	}
}

// What is kept of suspended calls is bounded in bytes, for each principal: the question of a call that is too much is refused. Before, only
// their number was bounded.
func TestSuspendedCallsAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := supervisortest.NewServer("one", questioner("ask", 1)), supervisortest.NewServer("two", questioner("ask", 1))
		e, g := startEndpoint(t, supervisor.Config{}, nil, map[string]serve.Principal{"a": {Name: "a"}, "b": {Name: "b"}}, one, two)
		g.KeepAtMost(100_000) // one principal alone gets three quarters
		a, b := modernAgent{e, "a", "/mcp/s/one", canAll}, modernAgent{e, "b", "/mcp/s/two", canAll}
		arguments := func(size int) string { return `"arguments":{"text":"` + strings.Repeat("x", size) + `"},` }
		_, first := asked(t, a.call("ask", arguments(40_000)))
		contains(t, "what is too much", a.call("ask", arguments(40_000)), "refused", `"resultType":"complete"`)
		_, small := asked(t, a.call("ask", arguments(20_000)))
		_, other := asked(t, b.call("ask", arguments(20_000)))
		contains(t, "the first one", a.call("ask", arguments(40_000)+reply(first, "question_1", anna)), "anna")
		_, second := asked(t, a.call("ask", arguments(25_000)))
		if second == "" {
			t.Error("what the first one has given back is not there for another")
		}
		contains(t, "a small one", a.call("ask", arguments(20_000)+reply(small, "question_1", anna)), "anna")
		contains(t, "another principal's", b.call("ask", arguments(20_000)+reply(other, "question_1", anna)), "anna")
		time.Sleep(6 * time.Minute) // the questions that are left get no answer
		if h := g.Held(); h.Suspended != 0 || h.Kept != 0 {
			t.Errorf("when all have ended there are %+v", h)
		}
	})
}

// The results of calls that have ended while their agent was asked count to the same bound: one that is too much is dropped, and its agent is told that
// the call has run. Before, only their number was bounded: 64 calls of a principal could keep 64 answers of any size.
func TestResultsThatWaitAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = 40_000
		one := supervisortest.NewServer("one", supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, _ = c.Ask(ctx, "elicitation/create", json.RawMessage(askName))
			return strings.Repeat("x", text), nil
		}})
		e, g := startEndpoint(t, supervisor.Config{}, nil, map[string]serve.Principal{"a": {Name: "a"}}, one)
		g.KeepAtMost(100_000) // one principal alone gets three quarters
		a := modernAgent{e, "a", "/mcp/s/one", canAll}
		_, first := asked(t, a.call("ask", ""))
		_, second := asked(t, a.call("ask", ""))
		_, third := asked(t, a.call("ask", ""))
		time.Sleep(2 * time.Second)
		if kept := g.Held().Kept; kept < text || kept > 2*text {
			t.Errorf("of three results that wait %d bytes are kept", kept)
		}
		whole, dropped := 0, 0
		for _, state := range []string{first, second} {
			switch answer := a.call("ask", reply(state, "question_1", anna)); {
			case strings.Contains(answer, strings.Repeat("x", text)):
				whole++
			default:
				contains(t, "a result that was dropped", answer, "its answer was dropped", "may have run", `"mcpvisor/outcome":"unknown"`)
				dropped++
			}
		}
		time.Sleep(6 * time.Minute) // the agent asks for the third only when its time has passed
		contains(t, "the third", a.call("ask", reply(third, "question_1", anna)), `"code":-32602`)
		if h := g.Held(); whole > 1 || whole+dropped != 2 || h.Suspended != 0 || h.Kept != 0 {
			t.Errorf("%d results were given and %d dropped, and when all have ended there are %+v", whole, dropped, h)
		}
		_, late := asked(t, a.call("ask", ""))
		time.Sleep(2 * time.Second)
		contains(t, "one that has room again", a.call("ask", reply(late, "question_1", anna)), strings.Repeat("x", text))
	})
}
