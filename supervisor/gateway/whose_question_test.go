package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// lateQuestioner is a tool that asks when a value comes from when, and ends a second afterwards.
func lateQuestioner(name string, when <-chan struct{}) supervisortest.Tool {
	return supervisortest.Tool{Name: name, Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
		<-when
		got, err := c.Ask(ctx, "elicitation/create", json.RawMessage(askName))
		return fmt.Sprint(string(got), err), nil
	}}
}

// At the principal's own instance a question is put to the newest request, which may be another one than it is about. If that one ends first, the
// question was answered with an error; now the agent's answer counts nevertheless, or the request that still runs asks.
func TestAQuestionOutlivesTheCallThatAsksIt(t *testing.T) {
	const taken = `"inputResponses":{"question_1":` + anna + `},`
	for name, c := range map[string]struct {
		// comesBack are the members with which the newest call comes back once it has asked; empty: it ends before it has.
		comesBack string
		leaves    bool // the agent closes the newest call, which has not asked
		askedOnce bool
	}{
		"the agent has the question and answers":       {comesBack: taken, askedOnce: true},
		"the agent has the question and comes without": {comesBack: `"inputResponses":{},`},
		"the call ends before it asks":                 {},
		"the agent leaves before it is asked":          {leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				when := make(chan struct{})
				one := supervisortest.NewServer("one", lateQuestioner("late", when), text("wait"))
				one.Spec.Share = messages.SharePrincipal
				a := modernAgent{start(t, gateway.PrefixNever, one), "a", "/mcp", canAll}
				contains(t, "the instance begins", a.call("wait", ""), "it is wait")
				late, waited := make(chan string, 1), make(chan string, 1)
				go func() { late <- a.call("late", "") }()
				synctest.Wait()
				release := one.Hang("wait")
				defer release()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { waited <- a.send(ctx, "tools/call", "wait", `"name":"wait",`) }()
				synctest.Wait()
				close(when)
				synctest.Wait()
				switch {
				case c.comesBack != "":
					questions, state := asked(t, <-waited)
					if len(questions) != 1 {
						t.Fatal("the newest request is not asked")
					}
					release()
					synctest.Wait()
					contains(t, "the newest call", a.call("wait", c.comesBack+`"requestState":"`+state+`",`), "it is wait")
				case c.leaves:
					cancel()
					<-waited
				default:
					release()
					contains(t, "the newest call", <-waited, "it is wait")
				}
				answer := <-late
				if !c.askedOnce {
					questions, state := asked(t, answer)
					if len(questions) != 1 {
						t.Fatalf("the request that runs does not ask: %s", answer)
					}
					answer = a.call("late", reply(state, "question_1", anna))
				}
				contains(t, "what asked", answer, `\"name\":\"anna\"`, `\u003cnil\u003e`)
			})
		})
	}
}

// A question that comes while the only request at a server waits for an answer is about that request, too. It was refused.
func TestACallAsksWhileItWaitsForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
			second := make(chan string)
			go func() {
				time.Sleep(time.Second)
				got, err := c.Ask(ctx, "elicitation/create", json.RawMessage(askName))
				second <- fmt.Sprint(string(got), err)
			}()
			got, err := c.Ask(ctx, "elicitation/create", json.RawMessage(askName))
			return fmt.Sprint(string(got), err, <-second), nil
		}})
		a := modernAgent{start(t, gateway.PrefixNever, one), "a", "/mcp", canAll}
		_, state := asked(t, a.call("ask", ""))
		time.Sleep(2 * time.Second)
		questions, state := asked(t, a.call("ask", reply(state, "question_1", anna)))
		if len(questions) != 1 {
			t.Fatal("the second question is not asked")
		}
		contains(t, "the result", a.call("ask", reply(state, "question_2", `{"action":"decline"}`)), "anna", "decline")
	})
}

// modernLines is an agent of the modern era on lines.
type modernLines struct {
	in  io.Writer
	out *bufio.Reader
}

func newModernLines(t *testing.T, g *gateway.Gateway, principal string) modernLines {
	in, write := io.Pipe()
	read, out := io.Pipe()
	go func() {
		_ = serve.Stdio(context.Background(), serve.Options{Service: g}, serve.Principal{Name: principal}, serve.Path{}, in, out)
		_ = out.Close()
	}()
	t.Cleanup(func() { _ = write.Close() })
	return modernLines{write, bufio.NewReader(read)}
}

// call calls a tool, with further members of params.
func (a modernLines) call(tool, members string) {
	_, _ = io.WriteString(a.in, `{"jsonrpc":"2.0","id":"`+tool+`","method":"tools/call","params":{"name":"`+tool+`",`+members+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+canAll+"}}}\n")
}

// answer returns what the agent is answered next.
func (a modernLines) answer() string {
	line, err := a.out.ReadString('\n')
	return line + strings.TrimPrefix(fmt.Sprint(err), "<nil>")
}

// Over lines it is known which agent has made a request. If one has made all that the server has not answered, every question is for it, as in the
// legacy era: it is asked by its newest request. It was refused as soon as the agent had two calls. Of two agents of one person neither is asked.
func TestOneAgentOnLinesIsAskedByItsNewestCall(t *testing.T) {
	for _, principal := range []string{"", "a person"} {
		synctest.Test(t, func(t *testing.T) {
			one := supervisortest.NewServer("one", questioner("ask", 1), text("wait"), text("else"))
			cfg := supervisor.Config{}
			gateway.PassQuestions(&cfg)
			g := gateway.New(gateway.Config{Manager: supervisortest.StartConfig(t, cfg, one), Prefix: gateway.PrefixNever})
			defer g.Close()
			agent, other := newModernLines(t, g, principal), newModernLines(t, g, principal)
			release := one.Hang("wait")
			agent.call("wait", "")
			synctest.Wait()
			agent.call("ask", "")
			questions, state := asked(t, agent.answer())
			if len(questions) != 1 {
				t.Fatal("the agent is not asked")
			}
			agent.call("ask", reply(state, "question_1", anna))
			contains(t, "the result", agent.answer(), "anna")
			other.call("ask", "")
			contains(t, "of two agents", other.answer(), "refused", "it has not answered")
			release()
			contains(t, "the first call", agent.answer(), "it is wait")
			other.call("ask", "")
			if questions, _ = asked(t, other.answer()); len(questions) != 1 {
				t.Error("alone at the server, the other agent is not asked")
			}
		})
	}
}

// A principal has agents of both eras at its instance: the question goes to the one with the newest request, whichever era it is of. It went to the
// agent of the legacy era always, which may have left without a word: then the other one got no answer.
func TestTheNewestRequestOfEitherEraIsAsked(t *testing.T) {
	for _, modernIsNewest := range []bool{true, false} {
		begun, mayAsk, release := make(chan struct{}, 10), make(chan struct{}), make(chan struct{})
		one := waitsAndAsks("one", begun, mayAsk, release)
		one.Spec.Share = messages.SharePrincipal
		e, _ := startEndpoint(t, supervisor.Config{}, nil, map[string]serve.Principal{"a": {Name: "ann"}}, one)
		legacy, modern := e.agent("a", "/mcp", `{"elicitation":{}}`), modernAgent{e, "a", "/mcp", canAll}
		answer := make(chan string, 1)
		callModern := func(tool string) {
			go func() { answer <- modern.call(tool, "") }()
			<-begun
		}
		var heard func() string
		var ended chan struct{}
		if modernIsNewest {
			heard, ended = e.call(legacy, "one__wait")
			<-begun
			callModern("one__ask")
		} else {
			callModern("one__wait")
			heard, ended = e.call(legacy, "one__ask")
			<-begun
		}
		close(mayAsk)
		if modernIsNewest {
			got := ""
			for got == "" {
				select {
				case got = <-answer:
				case <-time.After(time.Millisecond):
					if strings.Contains(heard(), "elicitation/create") {
						t.Fatal("the agent of the legacy era is asked")
					}
				}
			}
			questions, state := asked(t, got)
			if len(questions) != 1 {
				t.Fatalf("the agent of the modern era is not asked: %s", got)
			}
			contains(t, "the answer", modern.call("one__ask", reply(state, "question_1", anna)), `\"name\":\"anna\"`)
		} else {
			for !strings.Contains(heard(), "elicitation/create") {
				select {
				case <-ended:
					t.Fatalf("the agent of the legacy era is not asked: %s", heard())
				case got := <-answer:
					t.Fatalf("the agent of the modern era is asked: %s", got)
				case <-time.After(time.Millisecond):
				}
			}
			legacy.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": legacy.id}, `{"jsonrpc":"2.0","id":1,"result":`+anna+`}`)
		}
		close(release)
		<-ended
		if !modernIsNewest {
			contains(t, "the answer", heard(), `\"name\":\"anna\"`)
			contains(t, "the older call", <-answer, "waited")
		}
	}
}
