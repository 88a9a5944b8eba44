package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// lineAgent is an agent on lines that reads when the test says so.
type lineAgent struct {
	t    *testing.T
	in   *io.PipeWriter
	from *bufio.Reader
	done chan struct{}
}

// startLines serves agents on lines from scripted servers.
func startLines(t *testing.T, servers ...*supervisortest.Server) *gateway.Gateway {
	m := supervisortest.StartConfig(t, supervisor.Config{}, servers...)
	g := gateway.New(gateway.Config{Manager: m, Prefix: gateway.PrefixNever})
	t.Cleanup(g.Close)
	if err := m.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

func lineAgentOf(t *testing.T, g *gateway.Gateway) *lineAgent {
	in, agent := io.Pipe()
	from, out := io.Pipe()
	a := &lineAgent{t, agent, bufio.NewReader(from), make(chan struct{})}
	go func() {
		defer close(a.done)
		_ = serve.Stdio(context.Background(), serve.Options{Service: g}, serve.Principal{Name: "a person"}, serve.Path{}, in, out)
		_ = out.Close()
	}()
	a.say(`{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	a.read()
	return a
}

func (a *lineAgent) say(line string) {
	a.t.Helper()
	if _, err := io.WriteString(a.in, line+"\n"); err != nil {
		a.t.Fatal(err)
	}
}

// call begins calls of a tool, with the ids from 0 on.
func (a *lineAgent) call(tool string, n int) {
	a.t.Helper()
	for id := range n {
		a.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`, id, tool))
	}
	synctest.Wait()
}

func (a *lineAgent) read() string {
	a.t.Helper()
	line, err := a.from.ReadString('\n')
	if err != nil {
		a.t.Fatal(err)
	}
	return line
}

// readResults reads n answers, which must be results.
func (a *lineAgent) readResults(n int) {
	a.t.Helper()
	for range n {
		if line := a.read(); !strings.Contains(line, `"isError":false`) && !strings.Contains(line, `"result":{"content"`) || strings.Contains(line, `"isError":true`) {
			a.t.Errorf("an answer is %.300s", line)
		}
	}
}

func (a *lineAgent) leave() {
	_ = a.in.Close()
	<-a.done
}

// countCalls returns how many calls of a tool a server got.
func countCalls(s *supervisortest.Server, tool string) (n int) {
	for _, c := range s.Calls() {
		if c.Tool == tool {
			n++
		}
	}
	return n
}

// An agent that reads nothing had the server send all that it had asked for: the answers to other agents came behind 400 MB. It gets no more
// now than it may leave unread, others are answered meanwhile, and everything comes once it reads.
func TestAnAgentThatReadsNothingIsGotNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 1<<20)
		one := supervisortest.NewServer("one", supervisortest.Text("large", large), text("small"))
		g := startLines(t, one)
		silent, other := lineAgentOf(t, g), lineAgentOf(t, g)
		silent.call("large", 60)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := countCalls(one, "large"); n > 40 {
			t.Errorf("%d of 60 calls were sent for an agent that reads nothing", n)
		}
		other.call("small", 100)
		other.readResults(100)
		silent.readResults(60)
		if n := countCalls(one, "large"); n != 60 {
			t.Errorf("%d calls were sent in all", n)
		}
		silent.leave()
		other.leave()
		if h := g.Held(); h != (gateway.Held{}) {
			t.Errorf("when all agents have gone, the gateway holds %+v", h)
		}
	})
}

// What is only expected holds nothing up for long: a tool that was not called yet, and that is slow, runs as often as it is called.
func TestSlowToolsRunAsOftenAsTheyAreCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", text("slow"))
		release := one.Hang("slow")
		g := startLines(t, one)
		a := lineAgentOf(t, g)
		a.call("slow", 200)
		began := time.Now()
		for countCalls(one, "slow") < 200 && time.Since(began) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("200 calls are under way after %s", took)
		}
		release()
		a.readResults(200)
		a.call("slow", 1000) // their results are known to be small
		a.readResults(1000)
		a.leave()
	})
}

// A call that waits for its agent to read ends with the agent, and was not sent.
func TestAWaitingCallEndsWithItsAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", supervisortest.Text("large", strings.Repeat("x", 1<<20)))
		g := startLines(t, one)
		a := lineAgentOf(t, g)
		a.call("large", 49)
		// Behind what waits already: of fifty at once the last one may be among the first that are sent, and then has its answer.
		a.say(`{"jsonrpc":"2.0","id":49,"method":"tools/call","params":{"name":"large"}}`)
		synctest.Wait()
		a.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":49}}`)
		synctest.Wait()
		sent := countCalls(one, "large")
		a.readResults(sent)
		a.readResults(49 - sent)
		a.leave()
		if n := countCalls(one, "large"); n != 49 {
			t.Errorf("%d calls were sent, and one of 50 was taken back before", n)
		}
		if h := g.Held(); h != (gateway.Held{}) {
			t.Errorf("the gateway holds %+v", h)
		}
	})
}

// The agents of one person take turns at a server that bounds its calls: they were one caller, and the call of one came behind all calls of
// another.
func TestAgentsOfOnePersonTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		one := supervisortest.NewServer("one", supervisortest.Func("work", func(context.Context, supervisortest.Call) (string, error) {
			time.Sleep(time.Second)
			ended.Add(1)
			return "worked", nil
		}))
		one.Spec.MaxInFlight, one.Spec.CallTimeout = 1, messages.Duration(time.Hour)
		g := startLines(t, one)
		busy, other := lineAgentOf(t, g), lineAgentOf(t, g)
		busy.call("work", 20)
		other.call("work", 1)
		other.readResults(1)
		if n := ended.Load(); n > 3 {
			t.Errorf("the one call of an agent was the %dth, behind those of another", n)
		}
		busy.readResults(20)
		busy.leave()
		other.leave()
	})
}

// Over HTTP the turns are those of a principal, however many sessions it opens. Each session of the legacy era had turns of its own, so that a
// principal with many of them kept the others waiting.
func TestSessionsOfOnePrincipalTakeTurnsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		one := supervisortest.NewServer("one", supervisortest.Func("work", func(context.Context, supervisortest.Call) (string, error) {
			time.Sleep(time.Second)
			ended.Add(1)
			return "worked", nil
		}))
		one.Spec.MaxInFlight, one.Spec.CallTimeout = 1, messages.Duration(time.Hour)
		e := start(t, gateway.PrefixNever, one)
		call := func(token string) { e.agent(token, "/mcp", "{}").ask("tools/call", `{"name":"work","arguments":{}}`) }
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { call("a") })
		}
		synctest.Wait()
		call("b")
		if n := ended.Load(); n > 3 {
			t.Errorf("the one call of a principal was the %dth, behind those of the sessions of another", n)
		}
		all.Wait()
	})
}

// slowWriter is the connection of an agent that reads nothing until the test says so.
type slowWriter struct {
	*httptest.ResponseRecorder
	read <-chan struct{}
}

func (w slowWriter) Write(b []byte) (int, error) {
	<-w.read
	return w.ResponseRecorder.Write(b)
}

// Nothing tells the agents of the modern era apart that come over HTTP in the name of one principal. They had no window: all that one of them asked
// for was sent, and the answers to other principals came behind it.
func TestAPrincipalThatReadsNothingIsGotNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 64<<10)
		one := supervisortest.NewServer("one", supervisortest.Text("large", large), text("small"))
		g := startLines(t, one)
		g.ShareWindow(1 << 20)
		h := serve.NewHandler(serve.Options{Service: g, Authenticate: func(r *http.Request) (serve.Principal, error) {
			return serve.Principal{Name: r.Header.Get("Who")}, nil
		}})
		ask := func(who, tool string, read <-chan struct{}) string {
			r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+
				tool+`","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
			for name, value := range map[string]string{"Who": who, "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28",
				"Mcp-Method": "tools/call", "Mcp-Name": tool} {
				r.Header.Set(name, value)
			}
			w := slowWriter{httptest.NewRecorder(), read}
			h.ServeHTTP(w, r)
			return w.Body.String()
		}
		read, at := make(chan struct{}), make(chan struct{})
		close(at)
		var silent sync.WaitGroup
		var whole atomic.Int64
		if answer := ask("other", "large", at); !strings.Contains(answer, large) { // and so the size is known
			t.Fatalf("the first answer is %.300s", answer)
		}
		for range 60 {
			silent.Go(func() {
				if answer := ask("silent", "large", read); strings.Contains(answer, large) {
					whole.Add(1)
				}
			})
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := countCalls(one, "large"); n > 21 {
			t.Errorf("%d of 60 calls were sent for a principal that reads nothing", n-1)
		}
		if answer := ask("other", "small", at); !strings.Contains(answer, `"result"`) {
			t.Errorf("another principal got %s", answer)
		}
		close(read)
		silent.Wait()
		if n := whole.Load(); n != 60 {
			t.Errorf("%d of 60 answers were whole", n)
		}
		if n := g.Held().Windows; n != 0 {
			t.Errorf("when everything is read, %d windows are held", n)
		}
	})
}
