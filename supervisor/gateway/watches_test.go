package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A watchedServer has one resource, and answers a request about watches when a value comes from answer.
type watchedServer struct {
	answer chan struct{}
	mu     sync.Mutex
	asked  []string
}

func (s *watchedServer) serveConnection(ctx context.Context, peer inprocess.Peer) error {
	return serveRequests(ctx, peer, func(r heardRequest) string {
		if strings.HasSuffix(r.method, "subscribe") {
			s.mu.Lock()
			s.asked = append(s.asked, strings.TrimPrefix(r.method, "resources/"))
			s.mu.Unlock()
			go func() {
				select {
				case <-s.answer:
					_ = writeResult(ctx, peer, r.id, "{}")
				case <-ctx.Done():
				}
			}()
			return answeredLater
		}
		return map[string]string{
			"initialize":               `{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"n","version":"1"}}`,
			"resources/list":           `{"resources":[{"uri":"x://1","name":"x"}]}`,
			"resources/templates/list": `{"resourceTemplates":[]}`,
		}[r.method]
	})
}

func (s *watchedServer) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func startWatched(t *testing.T) (*endpoint, *gateway.Gateway, *watchedServer) {
	s := &watchedServer{answer: make(chan struct{}, 100)}
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": s.serveConnection}}
	e, g := startEndpoint(t, cfg, nil, map[string]serve.Principal{"a": {Name: "a"}, "b": {Name: "b"}})
	return e, g, s
}

// leave ends the session.
func (a *agent) leave() {
	r := httptest.NewRequestWithContext(a.t.Context(), http.MethodDelete, "http://localhost"+a.path, nil)
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Mcp-Session-Id", a.id)
	a.h.ServeHTTP(httptest.NewRecorder(), r)
}

const watchX = `{"uri":"x://1"}`

// An agent that stops to listen while its resource is being subscribed to gets no acknowledgement: it named the resource or not, by chance, so that
// the day of seed 49 had seven histories.
func TestAnAgentThatHasGoneGetsNoAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g, s := startWatched(t)
		a := lineAgentOf(t, g)
		defer a.leave()
		const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		a.say(`{"jsonrpc":"2.0","id":8,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["x://1"]},` + modern + `}}`)
		synctest.Wait()
		if heard := s.heard(); len(heard) != 1 {
			t.Fatalf("the server was asked for %v", heard)
		}
		a.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
		synctest.Wait()
		a.say(`{"jsonrpc":"2.0","id":9,"method":"server/discover","params":{` + modern + `}}`)
		for got := a.read(); !strings.Contains(got, `"id":9`); got = a.read() {
			t.Errorf("the agent was told: %s", got)
		}
		s.answer <- struct{}{}
		time.Sleep(time.Minute)
		if n := g.Held().Watches; n != 0 {
			t.Errorf("%d resources are watched", n)
		}
	})
}

// An agent that goes away while the server is silent about the end of an earlier watch waits for nobody; a watch that begins in that
// time has its subscription afterwards.
func TestWatchAfterTheEndOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startWatched(t)
		a, b := e.agent("a", "/mcp", "{}"), e.agent("a", "/mcp", "{}")
		s.answer <- struct{}{}
		contains(t, "the first watch", a.ask("resources/subscribe", watchX), `"result":{}`)
		begin := time.Now()
		contains(t, "its end", a.ask("resources/unsubscribe", watchX), `"result":{}`)
		synctest.Wait() // the server has the request and does not answer
		second := make(chan string, 1)
		go func() { second <- b.ask("resources/subscribe", watchX) }()
		third, left := &serve.Session{Principal: serve.Principal{Name: "a"}}, make(chan struct{})
		if _, e := g.Describe(third); e != nil {
			t.Fatal(e)
		}
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			defer close(left)
			_, _ = g.Handle(ctx, &serve.Request{Session: third, Method: "resources/subscribe", Params: []byte(watchX)})
		}()
		synctest.Wait()
		leave()
		g.Closed(third)
		synctest.Wait()
		select {
		case <-left:
		default:
			t.Error("who leaves waits for the server")
		}
		if got := fmt.Sprint(s.heard()); got != "[subscribe unsubscribe]" {
			t.Errorf("while the server is silent it has %s", got)
		}
		close(s.answer)
		contains(t, "the second watch", <-second, `"result":{}`)
		synctest.Wait()
		if got := fmt.Sprint(s.heard()); got != "[subscribe unsubscribe subscribe]" || time.Since(begin) != 0 || g.Held().Watches != 1 {
			t.Errorf("after %v the server has %s, and %d resources are watched", time.Since(begin), got, g.Held().Watches)
		}
		b.leave()
		synctest.Wait()
		if got := fmt.Sprint(s.heard()); got != "[subscribe unsubscribe subscribe unsubscribe]" || g.Held().Watches != 0 {
			t.Errorf("at the end the server has %s, and %d resources are watched", got, g.Held().Watches)
		}
	})
}

// A server is silent about a resource that several agents ask to watch, and none waits for more than the time of one other and its own. Before, each
// waited for the call timeouts of all that had asked before it (seed 20993967).
func TestNoAgentWaitsForTheTimeoutsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, _ := startWatched(t)
		var all sync.WaitGroup
		for n := range 4 {
			agent := e.agent("a", "/mcp", "{}")
			all.Go(func() {
				time.Sleep(time.Duration(n) * time.Second)
				begin := time.Now()
				answer, want := agent.ask("resources/subscribe", watchX), "not sent"
				if n < 2 {
					want = "outcome unknown" // it has had its turn
				}
				contains(t, fmt.Sprintf("the answer to the agent %d", n), answer, `"error"`, want)
				if took := time.Since(begin); took > 2*time.Minute {
					t.Errorf("the agent %d has waited for %v", n, took)
				}
			})
		}
		all.Wait()
		time.Sleep(2 * time.Minute)
		if n := g.Held().Watches; n != 0 {
			t.Errorf("%d resources are watched", n)
		}
	})
}

// A watch whose session ends before the server has answered is ended after the answer, and does not end the one that began meanwhile.
func TestTheEndOfAWatchDoesNotEndTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startWatched(t)
		first, second := &serve.Session{Principal: serve.Principal{Name: "a"}}, e.agent("a", "/mcp", "{}")
		if _, e := g.Describe(first); e != nil {
			t.Fatal(e)
		}
		var both sync.WaitGroup
		both.Go(func() {
			_, _ = g.Handle(t.Context(), &serve.Request{Session: first, Method: "resources/subscribe", Params: []byte(watchX)})
		})
		synctest.Wait()
		g.Closed(first)
		synctest.Wait()
		both.Go(func() { contains(t, "the second watch", second.ask("resources/subscribe", watchX), `"result":{}`) })
		synctest.Wait()
		if got := fmt.Sprint(s.heard()); got != "[subscribe]" {
			t.Errorf("before its answer the server is asked %s", got)
		}
		close(s.answer)
		both.Wait()
		synctest.Wait()
		// An update between an end and a new begin would reach no agent.
		if heard := s.heard(); slices.Contains(heard, "unsubscribe") || g.Held().Watches != 1 {
			t.Errorf("one watches, and the server was asked %s", heard)
		}
	})
}

// A session that ends while its watch begins leaves none, whatever the server answers.
func TestNoWatchOutlivesItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g, s := startWatched(t)
		st := &serve.Session{Principal: serve.Principal{Name: "a"}}
		if _, e := g.Describe(st); e != nil {
			t.Fatal(e)
		}
		g.Closed(st) // its request is still on its way
		s.answer <- struct{}{}
		s.answer <- struct{}{}
		_, _ = g.Handle(context.WithoutCancel(t.Context()), &serve.Request{Session: st, Method: "resources/subscribe", Params: []byte(watchX)})
		synctest.Wait()
		if h := g.Held(); h.Watches != 0 {
			t.Errorf("%d resources are watched for nobody; the server has %s", h.Watches, s.heard())
		}
	})
}

// An agent that ends a watch while the gateway still looks for the server of the resource watches nothing afterwards: the end found no watch then, and
// the watch began after it, for as long as the session lived (days, seed 30326535).
func TestAWatchThatIsEndedWhileItsServerIsSoughtIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, peer inprocess.Peer) error {
			return serveRequests(ctx, peer, func(r heardRequest) string {
				if r.method == "resources/list" {
					time.Sleep(time.Second)
				}
				return map[string]string{
					"initialize":               `{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"n","version":"1"}}`,
					"resources/list":           `{"resources":[{"uri":"x://1","name":"x"}]}`,
					"resources/templates/list": `{"resourceTemplates":[]}`,
					"resources/subscribe":      "{}", "resources/unsubscribe": "{}",
				}[r.method]
			})
		}
		_, g := startEndpoint(t, supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": slow}}, nil, map[string]serve.Principal{"a": {Name: "a"}})
		agent := &serve.Session{Principal: serve.Principal{Name: "a"}}
		if _, e := g.Describe(agent); e != nil {
			t.Fatal(e)
		}
		var both sync.WaitGroup
		for _, method := range []string{"resources/subscribe", "resources/unsubscribe"} {
			both.Go(func() {
				if result, e := g.Handle(t.Context(), &serve.Request{Session: agent, Method: method, Params: []byte(watchX)}); e != nil || string(result) != "{}" {
					t.Error(method, string(result), e)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		both.Wait()
		synctest.Wait()
		if h := g.Held(); h.Watches != 0 {
			t.Errorf("%d resources are watched after the end", h.Watches)
		}
	})
}

// Where notices of updates were lost, because more happened than the gateway could read, who watches a resource is told that it may have
// changed. Before, an agent that missed the last update of a resource was told of none.
func TestMissedUpdatesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startWatched(t)
		close(s.answer)
		watching, other := e.agent("a", "/mcp", "{}"), e.agent("a", "/mcp", "{}")
		contains(t, "the watch", watching.ask("resources/subscribe", watchX), `"result":{}`)
		heard, heardByOther := watching.readStream(), other.readStream()
		synctest.Wait()
		g.MissEvents(t.Context())
		synctest.Wait()
		if text := heard(); strings.Count(text, `"method":"notifications/resources/updated","params":{"uri":"x://1"}`) != 1 {
			t.Errorf("who watches hears %s", text)
		}
		if text := heardByOther(); strings.Contains(text, "updated") {
			t.Errorf("who does not watch hears %s", text)
		}
	})
}

// A gateway needs no events about the calls of its agents, so that these publish none. A second watcher without calls shows that: it would
// get what the gateway's watcher gets.
func TestCallsTellTheGatewayNothing(t *testing.T) {
	e := start(t, gateway.PrefixNever, supervisortest.NewServer("one", text("read")))
	w := e.m.Watch(0).WithoutCalls()
	a := e.agent("a", "/mcp", "{}")
	contains(t, "the call", a.ask("tools/call", `{"name":"read"}`), "it is read")
	w.Close()
	for got := range w.Events(t.Context()) {
		if got.Kind == messages.EventCallStarted || got.Kind == messages.EventCallEnded {
			t.Errorf("a call published %s", got.Kind)
		}
	}
}

// An agent that watches a resource and asks for it once more while its server is disabled gets an error, and watches on.
func TestARefusedSecondWatchEndsNoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startWatched(t)
		a := e.agent("a", "/mcp", "{}")
		close(s.answer)
		contains(t, "the first watch", a.ask("resources/subscribe", watchX), `"result":{}`)
		if err := e.m.Toggle(t.Context(), "one", false); err != nil {
			t.Fatal(err)
		}
		contains(t, "the second watch", a.ask("resources/subscribe", watchX), `"error"`)
		synctest.Wait()
		if n := g.Held().Watches; n != 1 {
			t.Errorf("%d resources are watched", n)
		}
		b := e.agent("a", "/mcp", "{}")
		contains(t, "the watch of an agent that had none", b.ask("resources/subscribe", watchX), `"error"`)
		a.leave()
		synctest.Wait()
		if n := g.Held().Watches; n != 0 {
			t.Errorf("%d resources are watched when the one who watched has gone", n)
		}
	})
}

// A watch that is given up while its server is disabled is ended at the connection that was kept, when the server is enabled. Before, the
// server went on to send updates that nobody wanted for as long as the connection stood.
func TestAWatchGivenUpWhileDisabledIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startWatched(t)
		close(s.answer)
		staying, leaving := e.agent("a", "/mcp", "{}"), e.agent("a", "/mcp", "{}")
		contains(t, "the watch of the one that leaves", leaving.ask("resources/subscribe", watchX), `"result":{}`)
		toggle := func(on bool) {
			if err := e.m.Toggle(t.Context(), "one", on); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		toggle(false)
		leaving.leave()
		synctest.Wait()
		if got := fmt.Sprint(s.heard()); got != "[subscribe]" || g.Held().Watches != 0 {
			t.Errorf("while it is disabled the server has %s, and %d resources are watched", got, g.Held().Watches)
		}
		toggle(true)
		if got := fmt.Sprint(s.heard()); got != "[subscribe unsubscribe]" {
			t.Errorf("enabled again, the server has %s", got)
		}
		contains(t, "the watch of the one that stays", staying.ask("resources/subscribe", watchX), `"result":{}`)
		toggle(false)
		toggle(true)
		if got := fmt.Sprint(s.heard()); got != "[subscribe unsubscribe subscribe]" {
			t.Errorf("enabled while somebody watches, the server has %s", got)
		}
	})
}

// Who watches is told in the order in which the watches began. In the order of a map a random day had two histories: one agent's notice came
// before the answer to another one, or behind it.
func TestWatchersAreToldInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g, s := startWatched(t)
		close(s.answer)
		var want, notified []string
		for n := range 20 {
			who, uri := fmt.Sprint("agent ", n), fmt.Sprint("x://1/", n%3)
			want = append(want, who)
			if err := g.AddWatch(t.Context(), "one", uri, &who, func(string) { notified = append(notified, who) }); err != nil {
				t.Fatal(err)
			}
		}
		g.MissEvents(t.Context())
		if !slices.Equal(notified, want) {
			t.Errorf("when events were missed these were notified: %q", notified)
		}
		notified = nil
		g.NoteUpdate(t.Context(), "one", "x://1/0")
		if want := []string{"agent 0", "agent 3", "agent 6", "agent 9", "agent 12", "agent 15", "agent 18"}; !slices.Equal(notified, want) {
			t.Errorf("of an update these were notified: %q", notified)
		}
	})
}

// An update of what is inside of a resource is told to who watches that, and the update of another one whose URI only begins in the same way is not.
func TestUpdatesOfWhatIsInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g, s := startWatched(t)
		close(s.answer)
		var notified []string
		for _, uri := range []string{"x://1/a", "x://1/"} {
			if err := g.AddWatch(t.Context(), "one", uri, &uri, func(updated string) { notified = append(notified, uri+" of "+updated) }); err != nil {
				t.Fatal(err)
			}
		}
		for _, uri := range []string{"x://1/a", "x://1/a/part", "x://1/ab", "x://12"} {
			g.NoteUpdate(t.Context(), "one", uri)
		}
		if want := []string{
			"x://1/a of x://1/a", "x://1/ of x://1/a", "x://1/a of x://1/a/part", "x://1/ of x://1/a/part", "x://1/ of x://1/ab",
		}; !slices.Equal(notified, want) {
			t.Errorf("notified: %q", notified)
		}
	})
}

// The sessions of one principal leave places for the resources that others watch. Before, four of them took all that a server has.
func TestOnePrincipalLeavesPlacesToWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startWatched(t)
		close(s.answer)
		take := func(token string, sessions int) (taken int, all []*agent) {
			for range sessions {
				a := e.agent(token, "/mcp", "{}")
				for n := range 256 {
					switch answer := a.ask("resources/subscribe", fmt.Sprintf(`{"uri":"x://%s/%d/%d"}`, token, len(all), n)); {
					case strings.Contains(answer, `"result":{}`):
						taken++
					default:
						contains(t, "the refusal", answer, "left for all others", "not sent")
					}
				}
				all = append(all, a)
			}
			return taken, all
		}
		const half = actors.MaxWatched / 2
		taken, sessions := take("a", 3)
		if taken != half {
			t.Errorf("one principal watches %d resources, want %d", taken, half)
		}
		if taken, _ := take("b", 2); taken != half/2 {
			t.Errorf("the next one watches %d resources, want %d", taken, half/2)
		}
		contains(t, "what others watch", sessions[2].ask("resources/subscribe", `{"uri":"x://b/0/0"}`), `"result":{}`)
		for _, a := range sessions {
			a.leave()
		}
		synctest.Wait()
		if taken, _ := take("a", 3); taken != half-half/4 {
			t.Errorf("when it has given its places back, it gets %d, want %d", taken, half-half/4)
		}
		modern := modernAgent{e, "a", "/mcp", "{}"}
		ctx, cancel := context.WithCancel(t.Context())
		acknowledged := make(chan string, 1)
		go func() {
			acknowledged <- modern.send(ctx, "subscriptions/listen", "", `"notifications":{"resourceSubscriptions":["x://none","x://b/0/1"]},`)
		}()
		synctest.Wait()
		before := g.Held().Watches
		cancel()
		<-acknowledged
		synctest.Wait()
		if before != half-half/4+half/2 {
			t.Errorf("%d resources are watched", before)
		}
	})
}
