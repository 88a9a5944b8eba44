package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A taskServer is a scripted server of either era, whose calls of "slow" and "maybe" run as tasks until the test ends them.
type taskServer struct {
	modern bool
	// remembers says that tasks outlive a connection; silent that calls get no answer.
	remembers, silent bool

	mu    sync.Mutex
	peer  inprocess.Peer
	crash context.CancelFunc
	tasks map[string]*scriptedTask
	heard []string
	token string            // the progress token of the last call
	got   map[string]string // the answers of agents, by the ids of the questions
}

type scriptedTask struct {
	status, message, result, problem, input string
	waiting                                 []json.RawMessage // the ids of tasks/result
}

type taskMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name, TaskID   string
		Task           json.RawMessage
		InputResponses json.RawMessage
		Meta           struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
	Result, Error json.RawMessage
}

const taskTools = `{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},` +
	`{"name":"maybe","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},{"name":"plain","inputSchema":{"type":"object"}}`

func (s *taskServer) serveConnection(ctx context.Context, peer inprocess.Peer) error {
	ctx, crash := context.WithCancel(ctx)
	defer crash()
	s.mu.Lock()
	s.peer, s.crash = peer, crash
	if s.tasks == nil || !s.remembers {
		s.tasks = map[string]*scriptedTask{}
	}
	if s.got == nil {
		s.got = map[string]string{}
	}
	s.mu.Unlock()
	for {
		body, err := peer.Read(ctx)
		if err != nil {
			return err
		}
		var m taskMessage
		if json.Unmarshal(body, &m) != nil {
			return errors.New("the message is none")
		}
		s.mu.Lock()
		s.answer(ctx, &m)
		s.mu.Unlock()
	}
}

func (s *taskServer) send(ctx context.Context, format string, args ...any) {
	_ = s.peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0",`+format+`}`, args...))
}

func (s *taskServer) answer(ctx context.Context, m *taskMessage) {
	if m.Method == "" {
		s.got[string(m.ID)] = string(m.Result) + string(m.Error)
		return
	}
	if strings.HasPrefix(m.Method, "tasks/") || m.Method == "tools/call" {
		s.heard = append(s.heard, strings.TrimSuffix(m.Method+" "+m.Params.Name+m.Params.TaskID, " "))
	}
	if m.ID == nil {
		return
	}
	switch m.Method {
	case "server/discover":
		if !s.modern {
			s.send(ctx, `"id":%s,"error":{"code":-32601,"message":"no"}`, m.ID)
			return
		}
		s.send(ctx, `"id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"1"}}}`, m.ID)
	case "initialize":
		s.send(ctx, `"id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"n","version":"1"}}`, m.ID)
	case "tools/list":
		s.send(ctx, `"id":%s,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[`+taskTools+`]}`, m.ID)
	case "tools/call":
		if s.silent {
			return
		}
		if m.Params.Name == "plain" || !s.modern && m.Params.Task == nil {
			s.send(ctx, `"id":%s,"result":{"content":[{"type":"text","text":"at once"}]}`, m.ID)
			return
		}
		s.token = string(m.Params.Meta.ProgressToken)
		id := fmt.Sprintf("server-task-%d", len(s.tasks)+1)
		s.tasks[id] = &scriptedTask{status: "working"}
		if s.modern {
			s.send(ctx, `"id":%s,"result":{"resultType":"task",%s}`, m.ID, s.status(id))
			return
		}
		s.send(ctx, `"id":%s,"result":{"task":{%s}}`, m.ID, s.status(id))
	case "tasks/get", "tasks/result", "tasks/cancel", "tasks/update":
		t := s.tasks[m.Params.TaskID]
		if t == nil {
			s.send(ctx, `"id":%s,"error":{"code":-32602,"message":"there is no task"}`, m.ID)
			return
		}
		switch m.Method {
		case "tasks/cancel":
			t.status = "cancelled"
		case "tasks/update":
			t.status, t.input = "working", ""
			s.got["input"] = string(m.Params.InputResponses)
		case "tasks/result":
			t.waiting = append(t.waiting, m.ID)
			s.giveResult(ctx, m.Params.TaskID)
			return
		}
		s.send(ctx, `"id":%s,"result":{"resultType":"complete",%s}`, m.ID, s.status(m.Params.TaskID))
	default:
		s.send(ctx, `"id":%s,"result":{}`, m.ID)
	}
}

func (s *taskServer) status(id string) string {
	t := s.tasks[id]
	ttl, poll, more := "ttl", "pollInterval", ""
	if s.modern {
		ttl, poll = "ttlMs", "pollIntervalMs"
		switch {
		case t.status == "completed":
			more = `,"result":` + t.result
		case t.status == "failed":
			more = `,"error":` + t.problem
		case t.input != "":
			more = `,"inputRequests":` + t.input
		}
	}
	return fmt.Sprintf(`"taskId":%q,"status":%q,"statusMessage":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","%s":600000,"%s":500%s`,
		id, t.status, t.message, ttl, poll, more)
}

func (s *taskServer) giveResult(ctx context.Context, id string) {
	t := s.tasks[id]
	if t.result == "" && t.problem == "" {
		return
	}
	for _, request := range t.waiting {
		if t.problem != "" {
			s.send(ctx, `"id":%s,"error":%s`, request, t.problem)
		} else {
			s.send(ctx, `"id":%s,"result":%s`, request, t.result)
		}
	}
	t.waiting = nil
}

// change changes the only task that runs.
func (s *taskServer) change(f func(t *scriptedTask)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(keysOf(s.tasks)) {
		if t := s.tasks[id]; t.status == "working" || t.status == "input_required" {
			f(t)
			s.giveResult(context.Background(), id)
			return
		}
	}
}

func keysOf(m map[string]*scriptedTask) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (s *taskServer) complete(result string) {
	s.change(func(t *scriptedTask) { t.status, t.result = "completed", result })
}

// ask asks a question about the only task, as servers of the legacy era do.
func (s *taskServer) ask(id, method, params string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send(context.Background(), `"id":%q,"method":%q,"params":%s`, id, method, params)
}

// count returns how many requests of this beginning the server got.
func (s *taskServer) count(prefix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, heard := range s.heard {
		if strings.HasPrefix(heard, prefix) {
			n++
		}
	}
	return n
}

// progress says how far the last call has got.
func (s *taskServer) progress(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send(context.Background(), `"method":"notifications/progress","params":{"progressToken":%s,"progress":%d}`, s.token, n)
}

func (s *taskServer) gotAnswer(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[id]
}

func (s *taskServer) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crash()
}

// startTasks serves one scripted server with tasks.
func startTasks(t *testing.T, modern bool, views map[string]config.View) (*endpoint, *gateway.Gateway, *taskServer) {
	s := &taskServer{modern: modern}
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK, CallTimeout: messages.Duration(time.Minute)}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": s.serveConnection}}
	e, g := startEndpoint(t, cfg, views, map[string]serve.Principal{"a": {Name: "a"}, "b": {Name: "b"}, "none": {}})
	return e, g, s
}

// taskOf returns what an answer says of a task.
func taskOf(t *testing.T, answer string) (id, status string) {
	t.Helper()
	var got struct {
		Result struct {
			TaskID, Status string
			Task           struct{ TaskID, Status string }
		}
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	r := got.Result
	if r.TaskID+r.Task.TaskID == "" {
		t.Fatalf("there is no task in %s", answer)
	}
	return r.TaskID + r.Task.TaskID, r.Status + r.Task.Status
}
