package supervisortest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// A Tool is one tool of a [Server].
type Tool struct {
	Name, Description string
	// InputSchema is the schema of its arguments in JSON; empty is an object of any form.
	InputSchema string
	// ReadOnly and Destructive are its annotations.
	ReadOnly, Destructive bool
	// Handle answers a call with a text; nil answers "ok". Its error is the tool's own (Result.IsError). ctx ends with the
	// connection, and when the call is cancelled: Handle must return then. It is called concurrently.
	Handle func(ctx context.Context, call Call) (text string, err error)
}

// Text is a tool that always answers with the same text.
func Text(name, text string) Tool {
	return Tool{Name: name, Handle: func(context.Context, Call) (string, error) { return text, nil }}
}

// Func is a tool that a function answers.
func Func(name string, handle func(ctx context.Context, call Call) (string, error)) Tool {
	return Tool{Name: name, Handle: handle}
}

// Echo is a tool that answers with its arguments, as they came.
func Echo(name string) Tool {
	return Func(name, func(_ context.Context, c Call) (string, error) { return string(c.Arguments), nil })
}

// A Call is one call that a server got.
type Call struct {
	Tool      string
	Arguments json.RawMessage
	// Meta is the _meta of the request: what supervisor.WithMeta or an interceptor sent, beside what the protocol puts there. Empty if
	// there is none.
	Meta json.RawMessage
	// Caller is the name that the test gave to supervisor.WithCaller, empty if it gave none. The tool's function gets it, too, by
	// supervisor.CallerOf of its context.
	Caller string
	// Ask asks the client a question about this call, over its connection: see [Server.Ask].
	Ask func(ctx context.Context, method string, params any) (json.RawMessage, error)
}

// ErrNotConnected is returned by [Server.Ask] of a server that has no connection.
var ErrNotConnected = errors.New("supervisortest: the server is not connected")

// Server is a scripted server. All methods are safe for concurrent use.
type Server struct {
	// Spec is the spec of the server, for example with a limit or trust; its Type does not count. It is read by Start.
	Spec supervisor.Spec

	name string
	// mu guards what follows.
	mu     sync.Mutex
	tools  []Tool
	refuse error
	silent bool
	hung   map[string]chan struct{} // closed when the tool is released
	calls  []Call
	opened int
	open   map[*connection]bool
}

// NewServer makes a server with these tools.
func NewServer(name string, tools ...Tool) *Server {
	return &Server{name: name, tools: tools, hung: map[string]chan struct{}{}, open: map[*connection]bool{}}
}

// Name returns the id under which the manager has the server.
func (s *Server) Name() string { return s.name }

// errCrashed ends the connections of a server that crashes.
var errCrashed = errors.New("the server crashed")

// Crash ends every open connection at once, as the death of a process does: calls under way end as outcome unknown. The manager
// connects the server again, unless it is told to refuse.
func (s *Server) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.end(errCrashed)
	}
}

// Refuse makes every attempt to connect fail with err, until Refuse(nil). It does not end an open connection.
func (s *Server) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

// SetSilent says whether the server answers nothing: no handshake, no call, no ping. It reads on. A connection that stands goes on
// standing, because only servers on other machines are pinged; Crash ends it.
func (s *Server) SetSilent(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

func (s *Server) isSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent
}

// Hang makes calls of a tool wait until release is called, or their connection ends. Calls that wait then go on.
func (s *Server) Hang(tool string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate, ok := s.hung[tool]
	if !ok {
		gate = make(chan struct{})
		s.hung[tool] = gate
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.hung[tool] == gate {
			delete(s.hung, tool)
			close(gate)
		}
	}
}

// SetTools replaces the tools and announces that the list has changed. The manager lists them again, so that its catalog follows a
// moment later.
func (s *Server) SetTools(tools ...Tool) {
	s.mu.Lock()
	s.tools = slices.Clone(tools)
	open := s.listConnections()
	s.mu.Unlock()
	for _, c := range open {
		c.sendNotification("notifications/tools/list_changed")
	}
}

// Ask asks the client a question, as a server does with "elicitation/create", "sampling/createMessage" or "roots/list", and
// returns its result. An answer that is an error is an error here, and so is the end of the connection.
func (s *Server) Ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	s.mu.Lock()
	open := s.listConnections()
	s.mu.Unlock()
	if len(open) == 0 {
		return nil, ErrNotConnected
	}
	return open[0].askClient(ctx, method, params)
}

// Calls returns the calls that the server got, in the order in which they came.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Connections returns how many connections were opened until now, refused ones not counted.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// listConnections returns the open connections. The caller holds mu.
func (s *Server) listConnections() []*connection {
	open := make([]*connection, 0, len(s.open))
	for c := range s.open {
		open = append(open, c)
	}
	return open
}

// Serve plays the server on one connection, for a Config.InProcess of one's own: Start and AddTo set it.
func (s *Server) Serve(ctx context.Context, peer inprocess.Peer) error {
	c, err := s.newConnection(ctx, peer)
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		delete(s.open, c)
		s.mu.Unlock()
		c.end(nil)
		c.handlers.Wait()
	}()
	return c.readLoop()
}

// newConnection begins a connection, or returns the error with which the server refuses it.
func (s *Server) newConnection(ctx context.Context, peer inprocess.Peer) (*connection, error) {
	c := &connection{server: s, peer: peer, questions: map[int64]chan answer{}, running: map[string]context.CancelFunc{}}
	c.ctx, c.end = context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		c.end(s.refuse)
		return nil, s.refuse
	}
	s.opened++
	s.open[c] = true
	return c, nil
}

// beginCall records a call and returns its tool, and the channel that it waits for, nil if it need not.
func (s *Server) beginCall(call Call) (tool Tool, gate <-chan struct{}, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.Name == call.Tool })
	if i < 0 {
		return Tool{}, nil, false
	}
	return s.tools[i], s.hung[call.Tool], true
}

// listTools returns the tools as tools/list names them.
func (s *Server) listTools() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]map[string]any, 0, len(s.tools))
	for _, t := range s.tools {
		schema := json.RawMessage(`{"type":"object"}`)
		if t.InputSchema != "" {
			schema = json.RawMessage(t.InputSchema)
		}
		list = append(list, map[string]any{"name": t.Name, "description": t.Description, "inputSchema": schema,
			"annotations": map[string]any{"readOnlyHint": t.ReadOnly, "destructiveHint": t.Destructive}})
	}
	return list
}
