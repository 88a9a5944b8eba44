package gateway_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

const (
	slowTask   = `{"name":"slow","task":{"ttl":60000}}`
	taskResult = `{"content":[{"type":"text","text":"done é  "}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"server-task-1"},"x":1}}`
	canTask    = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

func taskID(id string) string { return `{"taskId":"` + id + `"}` }

// An agent that says nothing of its capabilities may have a task as well, and what its server asks about the task is refused at once.
func TestAnAgentWithoutCapabilitiesHasATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startTasks(t, false, nil)
		a := &agent{endpoint: e, token: "a", path: "/mcp"}
		a.id = e.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a"},
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`).Header().Get("Mcp-Session-Id")
		id, status := taskOf(t, a.ask("tools/call", slowTask))
		if status != "working" {
			t.Errorf("the task is %s", status)
		}
		s.ask("q", "elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{}},`+
			`"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"server-task-1"}}}`)
		time.Sleep(time.Second)
		contains(t, "the server's question", s.gotAnswer(`"q"`), `"code":-32`)
		contains(t, "its state", a.ask("tasks/get", taskID(id)), `"status":"working"`)
		s.complete(taskResult)
		contains(t, "the result", a.ask("tasks/result", taskID(id)), "done é")
		if h := g.Held(); h.Kept != 0 || s.count("tools/call") != 1 {
			t.Errorf("%+v, and %d calls", h, s.count("tools/call"))
		}
	})
}

// The arguments of tasks that run are bounded in bytes, for each principal. Before, 64 tasks kept whatever their agent had sent.
func TestTasksAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startTasks(t, false, nil)
		g.KeepAtMost(100_000)
		a := e.agent("a", "/mcp", "{}")
		large := `{"name":"slow","arguments":{"text":"` + strings.Repeat("x", 40_000) + `"},"task":{"ttl":60000}}`
		taskOf(t, a.ask("tools/call", large))
		contains(t, "what is too much", a.ask("tools/call", large), `"code":-32000`, "or large ones", "nothing was sent")
		s.complete(taskResult)
		time.Sleep(10 * time.Second)
		taskOf(t, a.ask("tools/call", large))
		if n := s.count("tools/call"); n != 2 {
			t.Errorf("the server got %d calls", n)
		}
	})
}

// An agent of the legacy era takes over a task of a legacy server: status, result and list are of this hop, and the bytes of the result pass.
func TestAnAgentTakesOverATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startTasks(t, false, nil)
		a := e.agent("a", "/mcp", "{}")
		contains(t, "the handshake", a.opening, `"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
		heard := a.readStream()
		answer := a.ask("tools/call", slowTask)
		id, status := taskOf(t, answer)
		contains(t, "the task", answer, `"ttl":600000`, `"pollInterval":500`, `"createdAt":"`, `"lastUpdatedAt":"`)
		if status != "working" || strings.Contains(answer, "server-task") {
			t.Errorf("the task: %s", answer)
		}
		contains(t, "its state", a.ask("tasks/get", taskID(id)), `"status":"working"`)
		s.change(func(t *scriptedTask) { t.message = "half" })
		time.Sleep(time.Second)
		synctest.Wait()
		contains(t, "its state", a.ask("tasks/get", taskID(id)), `"status":"working"`, `"statusMessage":"half"`)
		contains(t, "the notice", heard(), `notifications/tasks/status`, id, `"statusMessage":"half"`)
		contains(t, "the list", a.ask("tasks/list", "{}"), `{"tasks":[{"taskId":"`+id+`"`)
		result := make(chan string, 1)
		go func() { result <- a.ask("tasks/result", taskID(id)) }()
		time.Sleep(time.Second)
		s.complete(taskResult)
		want := strings.Replace(taskResult, "server-task-1", id, 1)
		contains(t, "the result", <-result, `"result":`+want+`}`)
		contains(t, "the result again", a.ask("tasks/result", taskID(id)), `"result":`+want+`}`)
		contains(t, "the end", a.ask("tasks/get", taskID(id)), `"status":"completed"`)
		synctest.Wait() // it is written beside the answers
		contains(t, "the end by a notice", heard(), `"status":"completed"`)
		contains(t, "cancelling what has ended", a.ask("tasks/cancel", taskID(id)), `"code":-32602`)
		if n := s.count("tools/call"); n != 1 || strings.Contains(heard(), "server-task") {
			t.Errorf("%d calls; %s", n, heard())
		}
	})
}

// What an agent may want as a task is what its tool allows; agents without tasks wait for the result, as before.
func TestWhatRunsAsATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startTasks(t, false, nil)
		a := e.agent("a", "/mcp", "{}")
		contains(t, "a tool without tasks", a.ask("tools/call", `{"name":"plain","task":{}}`), `"code":-32601`)
		contains(t, "a wish that is none", a.ask("tools/call", `{"name":"slow","task":5}`), `"code":-32602`)
		contains(t, "a choice not taken", a.ask("tools/call", `{"name":"maybe"}`), "at once")
		if n := s.count("tools/call"); n != 1 {
			t.Errorf("%d calls", n)
		}
		if id, _ := taskOf(t, a.ask("tools/call", `{"name":"maybe","task":{}}`)); id == "" {
			t.Error("there is no task")
		}
		s.complete(taskResult)
		time.Sleep(time.Second)
		go func() {
			time.Sleep(time.Second)
			s.complete(taskResult)
		}()
		contains(t, "an agent that does not wish", a.ask("tools/call", `{"name":"slow"}`), "done é")
		for name, answer := range map[string]string{
			"no id": a.ask("tasks/get", "{}"), "an unknown id": a.ask("tasks/get", taskID("x")), "the server's id": a.ask("tasks/get", taskID("server-task-1")),
			"a cursor": a.ask("tasks/list", `{"cursor":"x"}`),
		} {
			contains(t, name, answer, `"code":-32602`)
		}
		contains(t, "a method of the other era", a.ask("tasks/update", taskID("x")), `"code":-32601`)
		w := e.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a"},
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
		if strings.Contains(w.Body.String(), `"tasks"`) {
			t.Errorf("an older version: %s", w.Body)
		}
	})
}

// A task belongs to its principal: another one neither reads nor cancels nor lists it; the same one does so in another session, and in the
// other era.
func TestTasksBelongToTheirPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startTasks(t, false, nil)
		a, b := e.agent("a", "/mcp", "{}"), e.agent("b", "/mcp", "{}")
		heard := b.readStream()
		id, _ := taskOf(t, a.ask("tools/call", slowTask))
		stranger := modernAgent{e, "b", "/mcp", canTask}
		for name, answer := range map[string]string{
			"get": b.ask("tasks/get", taskID(id)), "result": b.ask("tasks/result", taskID(id)), "cancel": b.ask("tasks/cancel", taskID(id)),
			"modern get":    stranger.send(t.Context(), "tasks/get", id, `"taskId":"`+id+`",`),
			"modern cancel": stranger.send(t.Context(), "tasks/cancel", id, `"taskId":"`+id+`",`),
			"modern update": stranger.send(t.Context(), "tasks/update", id, `"taskId":"`+id+`","inputResponses":{},`),
		} {
			contains(t, name, answer, `"code":-32602`, "Task not found", "may have run")
		}
		contains(t, "the list", b.ask("tasks/list", "{}"), `"tasks":[]`)
		nameless := e.agent("none", "/mcp", "{}")
		contains(t, "the list of those without a name", nameless.ask("tasks/list", "{}"), `"code":-32601`)
		if strings.Contains(nameless.opening, `"list":{}`) || !strings.Contains(nameless.opening, `"tasks":{"cancel"`) {
			t.Errorf("the handshake: %s", nameless.opening)
		}
		contains(t, "a task of those without a name", nameless.ask("tasks/get", taskID(id)), `"code":-32602`)
		s.change(func(t *scriptedTask) { t.message = "half" })
		time.Sleep(time.Second)
		synctest.Wait()
		if heard() != "" && strings.Contains(heard(), "tasks/status") {
			t.Errorf("a stranger heard %s", heard())
		}
		a.leave()
		second := e.agent("a", "/mcp", "{}")
		contains(t, "another session", second.ask("tasks/get", taskID(id)), `"status":"working"`)
		contains(t, "another session's list", second.ask("tasks/list", "{}"), id)
		s.complete(taskResult)
		time.Sleep(time.Second)
		contains(t, "its result", second.ask("tasks/result", taskID(id)), "done é")
		mine := modernAgent{e, "a", "/mcp", canTask}
		contains(t, "the other era", mine.send(t.Context(), "tasks/get", id, `"taskId":"`+id+`",`), `"status":"completed"`, `"ttlMs":`, "done é")
		if n := s.count("tasks/cancel") + s.count("tools/call") - 1; n != 0 {
			t.Errorf("%d requests too many", n)
		}
	})
}

// A cancelled task stays so, its server is told, and its answer says that it may have run.
func TestCancellingATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startTasks(t, false, nil)
		a := e.agent("a", "/mcp", "{}")
		id, _ := taskOf(t, a.ask("tools/call", slowTask))
		time.Sleep(time.Second)
		_, status := taskOf(t, a.ask("tasks/cancel", taskID(id)))
		time.Sleep(time.Second)
		if status != "cancelled" || s.count("tasks/cancel server-task-1") != 1 {
			t.Errorf("%s; the server got %d", status, s.count("tasks/cancel"))
		}
		contains(t, "its answer", a.ask("tasks/result", taskID(id)), `"mcpvisor/outcome":"unknown"`, `may have run`, `"isError":true`)
		contains(t, "its state", a.ask("tasks/get", taskID(id)), `"status":"cancelled"`)
		contains(t, "once more", a.ask("tasks/cancel", taskID(id)), `"code":-32602`)
		if n := s.count("tools/call"); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

// A task whose server dies is told as unknown, and never run again; one that its server still knows is followed further.
func TestATaskWhoseServerDies(t *testing.T) {
	for _, remembers := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, _, s := startTasks(t, false, nil)
			s.remembers = remembers
			a := e.agent("a", "/mcp", "{}")
			id, _ := taskOf(t, a.ask("tools/call", slowTask))
			s.change(func(t *scriptedTask) { t.message = "half" })
			time.Sleep(time.Second)
			s.kill()
			time.Sleep(10 * time.Second)
			if remembers {
				contains(t, "its state", a.ask("tasks/get", taskID(id)), `"status":"working"`)
				s.complete(taskResult)
				contains(t, "its result", a.ask("tasks/result", taskID(id)), "done é")
			} else {
				// The server's last words stood beside the end, and looked like its reason.
				contains(t, "its state", a.ask("tasks/get", taskID(id)), `"status":"failed"`, `"statusMessage":"`, "may have run")
				contains(t, "its answer", a.ask("tasks/result", taskID(id)), `"mcpvisor/outcome":"unknown"`, "may have run")
			}
			if n := s.count("tools/call"); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// When a call has taken as long as it may, the gateway cancels its task at the server, tells the agent at once, and does not ask the server
// for the task again.
func TestATaskThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{}
		cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK, MaxCallTimeout: messages.Duration(time.Minute)}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": s.serveConnection}}
		e, _ := startEndpoint(t, cfg, nil, map[string]serve.Principal{"a": {Name: "a"}})
		a := e.agent("a", "/mcp", "{}")
		id, _ := taskOf(t, a.ask("tools/call", slowTask))
		time.Sleep(time.Minute + 100*time.Millisecond)
		asked := s.count("tasks/get")
		contains(t, "its state", a.ask("tasks/get", taskID(id)), `"status":"failed"`)
		contains(t, "its answer", a.ask("tasks/result", taskID(id)), `"mcpvisor/outcome":"unknown"`, "the deadline passed")
		time.Sleep(time.Minute)
		if n := s.count("tasks/get"); n != asked || s.count("tasks/cancel") != 1 {
			t.Errorf("%d requests about a task that was cancelled, and %d cancellations", n-asked, s.count("tasks/cancel"))
		}
	})
}

// A task of which its server says what cannot be used is cancelled there. Its agent is told why, at once, and nobody looks for the task as
// for one whose connection is gone. Seed 20393758.
func TestATaskThatCannotBeFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startTasks(t, true, nil)
		a := e.agent("a", "/mcp", "{}")
		id, _ := taskOf(t, a.ask("tools/call", slowTask))
		s.change(func(t *scriptedTask) { t.status = "dancing" })
		time.Sleep(time.Second)
		asked := s.count("tasks/get")
		contains(t, "its state", a.ask("tasks/get", taskID(id)), `"status":"failed"`)
		contains(t, "its answer", a.ask("tasks/result", taskID(id)), `"mcpvisor/outcome":"unknown"`, "dancing")
		time.Sleep(time.Minute)
		if n := s.count("tasks/get"); n != asked || s.count("tasks/cancel") != 1 {
			t.Errorf("%d requests about a task that was cancelled, and %d cancellations", n-asked, s.count("tasks/cancel"))
		}
	})
}

// A task is forgotten when its time to live has passed; one that still runs is cancelled then.
func TestTasksExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startTasks(t, false, nil)
		a := e.agent("a", "/mcp", "{}")
		ended, _ := taskOf(t, a.ask("tools/call", slowTask))
		s.complete(taskResult)
		time.Sleep(time.Minute)
		running, _ := taskOf(t, a.ask("tools/call", slowTask))
		time.Sleep(9*time.Minute - time.Second)
		contains(t, "an ended task", a.ask("tasks/get", taskID(ended)), `"status":"completed"`)
		time.Sleep(2 * time.Second)
		contains(t, "a late request", a.ask("tasks/get", taskID(ended)), `"code":-32602`)
		contains(t, "a running task", a.ask("tasks/get", taskID(running)), `"status":"working"`)
		time.Sleep(time.Minute)
		contains(t, "a late request", a.ask("tasks/get", taskID(running)), `"code":-32602`)
		if g.Held().Tasks != 0 || s.count("tasks/cancel server-task-2") != 1 {
			t.Errorf("%+v; %d cancellations", g.Held(), s.count("tasks/cancel"))
		}
	})
}

// 64 tasks of a principal have a place; one more waits for the end of one, and another principal is not concerned.
func TestTasksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startTasks(t, false, nil)
		a, b := e.agent("a", "/mcp", "{}"), e.agent("b", "/mcp", "{}")
		first, _ := taskOf(t, a.ask("tools/call", slowTask))
		for range 63 {
			a.ask("tools/call", slowTask)
		}
		// What a refused call would have kept was counted for good.
		before := g.Held().Kept
		contains(t, "one too many", a.ask("tools/call", `{"name":"slow","arguments":{"text":"x"},"task":{"ttl":60000}}`), `"code":-32000`, "nothing was sent")
		if kept := g.Held().Kept; kept != before {
			t.Errorf("%d bytes are kept after a task was refused, and %d were before", kept, before)
		}
		if n := s.count("tools/call"); n != 64 || g.Held().Tasks != 64 {
			t.Errorf("%d calls, %d tasks", n, g.Held().Tasks)
		}
		taskOf(t, b.ask("tools/call", slowTask))
		s.complete(taskResult)
		time.Sleep(time.Second)
		contains(t, "the first", a.ask("tasks/get", taskID(first)), "completed")
		taskOf(t, a.ask("tools/call", slowTask))
		contains(t, "the first, whose place was taken", a.ask("tasks/get", taskID(first)), `"code":-32602`)
		// The results of a principal are bounded, too.
		big := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 7<<20) + `"}]}`
		for range 6 {
			s.complete(big)
			time.Sleep(time.Second)
		}
		if n := strings.Count(a.ask("tasks/list", "{}"), `"status":"completed"`); n != 4 {
			t.Errorf("%d results of 7 MiB are kept", n)
		}
	})
}

// A call for whose task there was no place stays a call, also if there is one a moment later: its agent was told then of a task that began at that
// time, while the server's had begun long before.
func TestACallWithoutAPlaceForItsTaskStaysACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startTasks(t, true, nil)
		a := modernAgent{e, "a", "/mcp", canTask}
		for range 64 {
			taskOf(t, a.call("slow", ""))
		}
		answer := make(chan string, 1)
		go func() { answer <- a.call("slow", "") }()
		time.Sleep(time.Second)
		s.complete(taskResult)
		time.Sleep(10 * time.Second)
		select {
		case got := <-answer:
			t.Fatalf("the call was answered with %s", got)
		default:
		}
		for range 64 {
			s.complete(taskResult)
		}
		if got := <-answer; !strings.Contains(got, `"resultType":"complete"`) || g.Held().Tasks != 64 {
			t.Errorf("%d tasks, and the call was answered with %s", g.Held().Tasks, got)
		}
	})
}

// askAboutTask lets the server ask a person about its only task, and waits until the gateway has the question.
func (s *taskServer) askAboutTask() {
	s.change(func(t *scriptedTask) { t.status = "input_required" })
	s.ask("q", "elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}},`+
		`"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"server-task-1"}}}`)
	time.Sleep(time.Second)
}

// What a server asks about a task reaches the agent that waits for its result; if that goes away, the next one is asked.
func TestATaskAsksAnAgentOfTheLegacyEra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startTasks(t, false, nil)
		a := e.agent("a", "/mcp", `{"elicitation":{}}`)
		id, _ := taskOf(t, a.ask("tools/call", slowTask))
		time.Sleep(time.Second)
		s.askAboutTask()
		contains(t, "its state", a.ask("tasks/get", taskID(id)), `"status":"input_required"`)
		left := make(chan string, 1)
		go func() { left <- a.ask("tasks/result", taskID(id)) }()
		time.Sleep(time.Second) // the agent has the question
		a.leave()
		<-left
		second := e.agent("a", "/mcp", `{"elicitation":{}}`)
		go func() {
			time.Sleep(time.Second)
			second.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": second.id},
				`{"jsonrpc":"2.0","id":"1","result":`+anna+`}`)
			second.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": second.id},
				`{"jsonrpc":"2.0","id":1,"result":`+anna+`}`)
			time.Sleep(time.Second)
			s.complete(taskResult)
		}()
		w := second.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": second.id},
			`{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":`+taskID(id)+`}`)
		contains(t, "the stream of the result", w.Body.String(), `elicitation/create`, `"io.modelcontextprotocol/related-task":{"taskId":"`+id+`"}`, "done é")
		if strings.Contains(w.Body.String(), "server-task") {
			t.Error("the server's id is in " + w.Body.String())
		}
		contains(t, "what the server got", s.gotAnswer(`"q"`), "anna")
	})
}

// The answer of an agent of the legacy era to a question about its task reaches the server as it is: a refusal as an error, and a message without
// an answer as one as well.
func TestTheAnswerOfAnAgentReachesTheServerOfItsTask(t *testing.T) {
	for answer, want := range map[string]string{
		`"result":` + anna:                          "anna",
		`"error":{"code":-32000,"message":"never"}`: `"message":"never"`,
		`"result":5`:                                `"code":`,
	} {
		synctest.Test(t, func(t *testing.T) {
			e, _, s := startTasks(t, false, nil)
			a := e.agent("a", "/mcp", `{"elicitation":{}}`)
			id, _ := taskOf(t, a.ask("tools/call", slowTask))
			time.Sleep(time.Second)
			s.askAboutTask()
			post := func(body string) string {
				return a.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": a.id}, body).Body.String()
			}
			heard := make(chan string, 1)
			go func() { heard <- post(`{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":` + taskID(id) + `}`) }()
			time.Sleep(time.Second)
			post(`{"jsonrpc":"2.0","id":1,` + answer + `}`)
			time.Sleep(time.Second)
			contains(t, "what the server got for "+answer, s.gotAnswer(`"q"`), want)
			s.change(func(t *scriptedTask) { t.status = "working" })
			s.complete(taskResult)
			contains(t, "the stream of the result", <-heard, "elicitation/create", "done é")
		})
	}
}

// Of two agents that wait for the result of a task one is asked; when that goes away, the other is, which has waited all the while.
func TestAQuestionIsPassedOnToWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startTasks(t, false, nil)
		a, second := e.agent("a", "/mcp", `{"elicitation":{}}`), e.agent("a", "/mcp", `{"elicitation":{}}`)
		id, _ := taskOf(t, a.ask("tools/call", slowTask))
		time.Sleep(time.Second)
		s.change(func(t *scriptedTask) { t.status = "input_required" })
		s.ask("q", "elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}},`+
			`"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"server-task-1"}}}`)
		time.Sleep(time.Second)
		left, heard := make(chan string, 1), make(chan string, 1)
		go func() { left <- a.ask("tasks/result", taskID(id)) }()
		time.Sleep(time.Second) // the first agent has the question
		post := func(body string) string {
			return second.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": second.id}, body).Body.String()
		}
		go func() { heard <- post(`{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":` + taskID(id) + `}`) }()
		time.Sleep(time.Second)
		a.leave()
		<-left
		time.Sleep(time.Second)
		post(`{"jsonrpc":"2.0","id":1,"result":` + anna + `}`)
		time.Sleep(time.Second)
		s.complete(taskResult)
		contains(t, "the stream of the one that has waited", <-heard, `elicitation/create`, "done é")
	})
}

// An agent of the modern era takes over the tasks of servers of either era; their questions are in tasks/get, their answers in tasks/update.
func TestModernAgentsTakeOverTasks(t *testing.T) {
	for _, modern := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, g, s := startTasks(t, modern, nil)
			a := modernAgent{e, "a", "/mcp", canTask}
			about := func(method, id, members string) string {
				return a.send(t.Context(), method, id, `"taskId":"`+id+`",`+members)
			}
			contains(t, "discovery", a.send(t.Context(), "server/discover", "", ""), `"extensions":{"io.modelcontextprotocol/tasks":{}}`)
			answer := a.call("slow", "")
			id, status := taskOf(t, answer)
			contains(t, "the task", answer, `"resultType":"task"`, `"ttlMs":600000`, `"pollIntervalMs":500`)
			if status != "working" || strings.Contains(answer, "server-task") {
				t.Errorf("the task: %s", answer)
			}
			contains(t, "its state", about("tasks/get", id, ""), `"status":"working"`, `"resultType":"complete"`)
			const params = `{"message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}},` +
				`"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"server-task-1"}}}`
			s.change(func(t *scriptedTask) {
				t.status, t.input = "input_required", `{"k":{"method":"elicitation/create","params":`+params+`}}`
			})
			if !modern {
				s.ask("q", "elicitation/create", params)
			}
			time.Sleep(2 * time.Second)
			answer = about("tasks/get", id, "")
			contains(t, "its question", answer, `"status":"input_required"`, `"inputRequests":{"question_1":{"method":"elicitation/create"`, "who?")
			if strings.Contains(answer, "server-task") {
				t.Errorf("the server's id is in %s", answer)
			}
			contains(t, "an answer of no shape", about("tasks/update", id, `"inputResponses":{"question_1":5},`), `"code":-32602`)
			contains(t, "the answer", about("tasks/update", id, `"inputResponses":{"question_9":{},"question_1":`+anna+`},`), `"resultType":"complete"`)
			for range 3 { // an answer to a question that has one is ignored, however often it comes
				contains(t, "the answer again", about("tasks/update", id, `"inputResponses":{"question_1":`+anna+`},`), `"resultType":"complete"`)
			}
			s.change(func(t *scriptedTask) { t.status = "working" })
			time.Sleep(time.Second)
			got := s.gotAnswer(`"q"`) + s.gotAnswer("input")
			contains(t, "what the server got", got, "anna")
			contains(t, "its state", about("tasks/get", id, ""), `"status":"working"`)
			s.complete(`{"content":[],"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"server-task-1"}}}`)
			time.Sleep(time.Second)
			answer = about("tasks/get", id, "")
			contains(t, "the end", answer, `"status":"completed"`, `"isError":true`)
			if strings.Contains(answer, "server-task") {
				t.Errorf("the server's id is in %s", answer)
			}
			contains(t, "a late cancellation", about("tasks/cancel", id, ""), `"resultType":"complete"`)
			s.mu.Lock()
			calls := len(s.heard)
			s.mu.Unlock()
			if n := s.count("tools/call"); n != 1 || s.count("tasks/cancel") != 0 {
				t.Errorf("%d calls of %d requests", n, calls)
			}
			second, _ := taskOf(t, a.call("slow", ""))
			contains(t, "a cancellation", about("tasks/cancel", second, ""), `"resultType":"complete"`)
			time.Sleep(time.Second)
			contains(t, "its state", about("tasks/get", second, ""), `"status":"cancelled"`)
			third, _ := taskOf(t, a.call("slow", ""))
			s.change(func(t *scriptedTask) { t.status, t.problem = "failed", `{"code":-32050,"message":"broken"}` })
			time.Sleep(time.Second)
			contains(t, "an error", about("tasks/get", third, ""), `"status":"failed"`, `"statusMessage":"broken"`, `"error":{"code":-32050,"message":"broken"}`)
			if n := g.Held().Tasks; n != 3 || s.count("tasks/cancel server-task-2") != 1 {
				t.Errorf("%d tasks, %d cancellations", n, s.count("tasks/cancel"))
			}
			none := modernAgent{e, "a", "/mcp", canAll}
			contains(t, "an agent that does not declare it", none.send(t.Context(), "tasks/get", id, `"taskId":"`+id+`",`), `"code":-32021`, "requiredCapabilities")
			contains(t, "a method of the other era", a.send(t.Context(), "tasks/list", "", ""), `"code":-32601`)
			contains(t, "another header", a.send(t.Context(), "tasks/get", "x", `"taskId":"`+id+`",`), `"code":-32020`)
			if !modern { // a server of the modern era sees that its agent takes no tasks
				go func() {
					time.Sleep(time.Second)
					s.complete(`{"content":[{"type":"text","text":"waited"}]}`)
				}()
				contains(t, "the call of an agent without tasks", none.call("slow", ""), "waited")
			}
		})
	}
}

// A tool that a view does not show any more takes its tasks with it, and brings them back; no path shows a task of another server.
func TestTasksOfToolsThatAreNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := map[string]config.View{"v": viewOf(nil, access.Allow)}
		e, g, s := startTasks(t, false, all)
		a := e.agent("a", "/mcp/v/v", "{}")
		heard := a.readStream()
		id, _ := taskOf(t, a.ask("tools/call", slowTask))
		g.SetViews(map[string]config.View{"v": viewOf(nil, access.Allow, "deny mcp__one__slow")})
		s.change(func(t *scriptedTask) { t.message = "hidden" })
		time.Sleep(time.Second)
		synctest.Wait()
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			contains(t, method, a.ask(method, taskID(id)), `"code":-32602`, "Task not found")
		}
		contains(t, "the list", a.ask("tasks/list", "{}"), `"tasks":[]`)
		contains(t, "a path that shows it", e.agent("a", "/mcp", "{}").ask("tasks/get", taskID(id)), `"status":"working"`)
		if strings.Contains(heard(), "hidden") {
			t.Errorf("the agent heard %s", heard())
		}
		g.SetViews(all)
		contains(t, "shown again", a.ask("tasks/get", taskID(id)), `"status":"working"`)
	})
}

// A task goes on when a token takes the place of that with which it was begun, and ends when its principal has none any more.
func TestTasksAndTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskServer{}
		cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": s.serveConnection}}
		e, g := startEndpoint(t, cfg, nil, nil)
		tokens := serve.NewTokens(map[string]serve.Principal{"old": {Name: "a"}})
		e.h = serve.NewHandler(serve.Options{Service: g, Authenticate: tokens.Authenticate})
		t.Cleanup(func() { _ = e.h.Close(t.Context()) })
		a := e.agent("old", "/mcp", "{}")
		id, _ := taskOf(t, a.ask("tools/call", slowTask))
		tokens.Set(map[string]serve.Principal{"new": {Name: "a"}})
		time.Sleep(time.Second)
		contains(t, "with the new token", e.agent("new", "/mcp", "{}").ask("tasks/get", taskID(id)), `"status":"working"`)
		tokens.Set(map[string]serve.Principal{"other": {Name: "b"}})
		time.Sleep(time.Second)
		if g.Held().Tasks != 0 || s.count("tasks/cancel") != 1 {
			t.Errorf("%+v, %d cancellations", g.Held(), s.count("tasks/cancel"))
		}
	})
}

// Progress of a task reaches the session that began it, with its own token; an agent of the modern era listens to the states of its tasks,
// and of no others.
func TestNewsOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startTasks(t, false, nil)
		a := e.agent("a", "/mcp", "{}")
		heard := a.readStream()
		id, _ := taskOf(t, a.ask("tools/call", `{"name":"slow","task":{},"_meta":{"progressToken":"mine"}}`))
		s.progress(7)
		time.Sleep(time.Second)
		synctest.Wait()
		contains(t, "the progress", heard(), `notifications/progress`, `"progressToken":"mine","progress":7`, `"taskId":"`+id+`"`)
		listen := func(token string, capabilities string) (said func() string) {
			w := &lockedRecorder{ResponseRecorder: httptest.NewRecorder()}
			ctx, cancel := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen",`+
				`"params":{"notifications":{"taskIds":["`+id+`","x"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
				`"io.modelcontextprotocol/clientCapabilities":`+capabilities+`}}}`))
			for name, value := range map[string]string{"Authorization": "Bearer " + token, "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen", "Content-Type": "application/json"} {
				r.Header.Set(name, value)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				e.h.ServeHTTP(w, r)
			}()
			t.Cleanup(func() {
				cancel()
				<-ended
			})
			time.Sleep(time.Second)
			return func() string {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.Body.String()
			}
		}
		mine, stranger := listen("a", canTask), listen("b", canTask)
		contains(t, "the acknowledgement", mine(), `"taskIds":["`+id+`"]`)
		contains(t, "that of a stranger", stranger(), `"taskIds":[]`)
		contains(t, "that of an agent without tasks", listen("a", "{}")(), `"code":-32021`)
		s.complete(taskResult)
		time.Sleep(time.Second)
		contains(t, "the end", mine(), `"method":"notifications/tasks"`, `"status":"completed"`, "done é", `"io.modelcontextprotocol/subscriptionId":1`)
		contains(t, "the end, told late", listen("a", canTask)(), `"method":"notifications/tasks"`, `"status":"completed"`)
		if strings.Contains(stranger(), "notifications/tasks") || strings.Contains(mine(), "server-task") {
			t.Errorf("a stranger heard %s; %s", stranger(), mine())
		}
	})
}

// A request that is taken back before its server has made a task leaves none, and its call is cancelled.
func TestARequestIsTakenBackBeforeItIsATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g, s := startTasks(t, false, nil)
		a := e.agent("a", "/mcp", "{}")
		s.silent = true
		ended := make(chan string, 1)
		go func() { ended <- a.ask("tools/call", slowTask) }()
		synctest.Wait()
		if n := g.Held().Tasks; n != 1 {
			t.Errorf("%d tasks have a place", n)
		}
		go a.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": a.id},
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		if answer := <-ended; answer != "" {
			t.Errorf("what was taken back is answered: %s", answer)
		}
		if n := g.Held().Tasks; n != 0 || s.count("tools/call") != 1 {
			t.Errorf("%d tasks, %d calls", n, s.count("tools/call"))
		}
	})
}
