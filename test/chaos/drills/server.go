package drills

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// server is a scripted server in the same process, of the legacy era. Its methods may be called from any goroutine.
type server struct {
	name string
	spec supervisor.Spec
	// handle answers the calls of tools, in a goroutine of its own for each: nil answers with the arguments. read answers the reads of resources.
	handle func(ctx context.Context, c *toolCall) (result any, err error)

	// declared are further capabilities, and others answers what is asked by other methods; it reports false for one that it does not know.
	declared map[string]any
	others   func(c *conn, m message) bool
	// instead answers a request in the place of the server, if it reports true.
	instead func(c *conn, m message) bool
	// transport is how the manager reaches the server; nil in the same process.
	transport func() transports.Transport

	mu      sync.Mutex
	tools   []map[string]any
	offers  map[string][]map[string]any // resources, resourceTemplates and prompts
	refusal error
	conns   []*conn     // those that are open
	opened  []time.Time // when each connection was opened
	dials   []time.Time
	// heard are the requests and notifications that have come, in order.
	heard []heardMessage
}

// heardMessage is one message that a server has got.
type heardMessage struct {
	method, caller string
	params         json.RawMessage
}

// toolCall is one call that a server answers.
type toolCall struct {
	tool, caller string
	arguments    json.RawMessage
	conn         *conn
	// token is the token of progress as it was written, nil if there is none.
	token json.RawMessage
}

// newServer makes a server with these tools.
func newServer(name string, tools ...string) *server {
	s := &server{name: name, spec: supervisor.Spec{Type: messages.SDK, Name: name}, offers: map[string][]map[string]any{}}
	s.setTools(tools...)
	return s
}

// toolNamed returns the definition of a tool.
func toolNamed(name string) map[string]any {
	return map[string]any{"name": name, "inputSchema": map[string]any{"type": "object"}}
}

// setTools replaces the tools, and announces that.
func (s *server) setTools(names ...string) {
	s.mu.Lock()
	s.tools = nil
	for _, name := range names {
		s.tools = append(s.tools, toolNamed(name))
	}
	s.mu.Unlock()
	s.notifyClients("notifications/tools/list_changed", nil)
}

// refuseDials lets every further attempt to connect end with an error; nil accepts them.
func (s *server) refuseDials(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = err
}

// endConns ends the open connections.
func (s *server) endConns() {
	for _, c := range s.openConns() {
		c.end(errors.New("the server crashed"))
	}
}

// openConns returns the open connections, the oldest first.
func (s *server) openConns() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.conns)
}

// countOpened returns how many connections were opened until now.
func (s *server) countOpened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.opened)
}

// openedAt returns when a connection was opened; the first has the number 0.
func (s *server) openedAt(n int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened[n]
}

// countDials returns how many attempts to connect there were until now.
func (s *server) countDials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.dials)
}

// lastDial returns when the newest attempt to connect began.
func (s *server) lastDial() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials[len(s.dials)-1]
}

// heardOf returns the messages of a method that have come.
func (s *server) heardOf(method string) (list []heardMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.heard {
		if m.method == method {
			list = append(list, m)
		}
	}
	return list
}

// forgetHeard forgets the messages that have come.
func (s *server) forgetHeard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = nil
}

// notifyClients sends a notification on each open connection.
func (s *server) notifyClients(method string, params any) {
	for _, c := range s.openConns() {
		c.sendMessage(map[string]any{"method": method, "params": orEmpty(params)})
	}
}

func orEmpty(params any) any {
	if params == nil {
		return struct{}{}
	}
	return params
}

// refusing is the transport of a server that may refuse to be connected.
type refusing struct {
	transports.Transport
	server *server
}

// Dial implements transports.Transport.
func (t refusing) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	t.server.mu.Lock()
	err := t.server.refusal
	t.server.dials = append(t.server.dials, time.Now())
	t.server.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return t.Transport.Dial(ctx, sink)
}

// conn is one connection of a server.
type conn struct {
	server *server
	peer   inprocess.Peer
	ctx    context.Context //nolint:containedctx // it is that of the connection
	end    context.CancelCauseFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	lastID    int
	questions map[int]chan reply
	running   map[string]context.CancelFunc
}

// reply is the client's answer to a question.
type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// message is any message of the client.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	reply
}

// serveConn plays the server on one connection, for Config.InProcess.
func (s *server) serveConn(ctx context.Context, peer inprocess.Peer) error {
	c := &conn{server: s, peer: peer, questions: map[int]chan reply{}, running: map[string]context.CancelFunc{}}
	c.ctx, c.end = context.WithCancelCause(ctx)
	s.mu.Lock()
	s.opened = append(s.opened, time.Now())
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.conns = slices.DeleteFunc(s.conns, func(other *conn) bool { return other == c })
		s.mu.Unlock()
		c.end(nil)
		c.work.Wait()
	}()
	for {
		m, err := peer.(inprocess.DirectPeer).ReadMessage(c.ctx)
		if err != nil {
			return err
		}
		var in message
		if json.Unmarshal(m.Body, &in) == nil {
			c.handleMessage(in, m.Caller)
		}
	}
}

// handleMessage handles one message of the client.
func (c *conn) handleMessage(m message, caller string) {
	s := c.server
	if m.Method != "" {
		s.mu.Lock()
		s.heard = append(s.heard, heardMessage{m.Method, caller, m.Params})
		s.mu.Unlock()
	}
	if s.instead == nil || !s.instead(c, m) {
		c.answerMessage(m, caller)
	}
}

// answerMessage does what the server does about a message, where nothing is done instead.
func (c *conn) answerMessage(m message, caller string) {
	s := c.server
	switch m.Method {
	case "":
		c.deliverReply(m)
	case "notifications/cancelled":
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &p)
		c.mu.Lock()
		if cancel := c.running[string(p.RequestID)]; cancel != nil {
			cancel()
		}
		c.mu.Unlock()
	case "initialize":
		c.sendResult(m, map[string]any{"protocolVersion": "2025-11-25", "serverInfo": map[string]any{"name": s.name, "version": "1"}, "capabilities": s.capabilities()})
	case "tools/list":
		s.mu.Lock()
		tools := slices.Clone(s.tools)
		s.mu.Unlock()
		c.sendResult(m, map[string]any{"tools": orNone(tools)})
	case "resources/list", "resources/templates/list", "prompts/list":
		kind := map[string]string{"resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts"}[m.Method]
		s.mu.Lock()
		items := slices.Clone(s.offers[kind])
		s.mu.Unlock()
		c.sendResult(m, map[string]any{kind: orNone(items)})
	case "resources/read":
		var p struct{ URI string }
		_ = json.Unmarshal(m.Params, &p)
		if !s.hasResource(p.URI) {
			c.sendMessage(map[string]any{"id": m.ID, "error": map[string]any{"code": -32002, "message": "Resource not found"}})
			return
		}
		c.sendResult(m, map[string]any{"contents": []any{map[string]any{"uri": p.URI, "text": s.name}}})
	case "prompts/get":
		var p struct{ Name string }
		_ = json.Unmarshal(m.Params, &p)
		c.sendResult(m, map[string]any{"messages": []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": s.name + " " + p.Name}}}})
	case "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		c.sendResult(m, struct{}{})
	case "tools/call":
		c.startCall(m, caller)
	default:
		if len(m.ID) > 0 && (s.others == nil || !s.others(c, m)) {
			c.sendMessage(map[string]any{"id": m.ID, "error": map[string]any{"code": -32601, "message": "method not found"}})
		}
	}
}

// hasResource reports whether the server has a resource: it lists it, or has a template that all URIs of another scheme fit.
func (s *server) hasResource(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.offers["resources"], func(r map[string]any) bool { return r["uri"] == uri }) ||
		len(s.offers["resourceTemplates"]) > 0 && strings.HasPrefix(uri, "state://"+s.name+"/")
}

func orNone(items []map[string]any) []map[string]any {
	if items == nil {
		return []map[string]any{}
	}
	return items
}

// capabilities are those that the server declares: resources and prompts only if it has some.
func (s *server) capabilities() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]any{"tools": map[string]any{"listChanged": true}, "logging": struct{}{}}
	if len(s.offers["resources"])+len(s.offers["resourceTemplates"]) > 0 {
		all["resources"] = map[string]any{"subscribe": true, "listChanged": true}
	}
	if len(s.offers["prompts"]) > 0 {
		all["prompts"] = map[string]any{"listChanged": true}
	}
	maps.Copy(all, s.declared)
	return all
}

// startCall runs a tool in a goroutine of its own.
func (c *conn) startCall(m message, caller string) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p)
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	c.running[string(m.ID)] = cancel
	c.mu.Unlock()
	c.work.Go(func() {
		defer cancel()
		var result any = textResult(string(p.Arguments))
		if c.server.handle != nil {
			var err error
			result, err = c.server.handle(ctx, &toolCall{tool: p.Name, caller: caller, arguments: p.Arguments, conn: c, token: p.Meta.ProgressToken})
			if err != nil {
				result = map[string]any{"content": textResult(err.Error())["content"], "isError": true}
			}
		}
		if ctx.Err() == nil {
			c.sendResult(m, result)
		}
	})
}

// textResult is a result that holds a text.
func textResult(t string) map[string]any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": t}}}
}

// askClient asks the client a question. An error of the client is one here.
func (c *conn) askClient(ctx context.Context, method string, params any) (json.RawMessage, error) {
	waiting := make(chan reply, 1)
	c.mu.Lock()
	c.lastID++
	id := c.lastID
	c.questions[id] = waiting
	c.mu.Unlock()
	c.sendMessage(map[string]any{"id": id, "method": method, "params": orEmpty(params)})
	select {
	case r := <-waiting:
		if r.Error != nil {
			return nil, errors.New(r.Error.Message)
		}
		return r.Result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	}
}

// deliverReply gives an answer to the question that waits for it.
func (c *conn) deliverReply(m message) {
	var id int
	if json.Unmarshal(m.ID, &id) != nil {
		return
	}
	c.mu.Lock()
	waiting := c.questions[id]
	delete(c.questions, id)
	c.mu.Unlock()
	if waiting != nil {
		waiting <- m.reply
	}
}

func (c *conn) sendResult(m message, result any) {
	c.sendMessage(map[string]any{"id": m.ID, "result": result})
}

// sendMessage writes one message; its error is that the connection is gone, which its reader learns.
func (c *conn) sendMessage(m map[string]any) {
	m["jsonrpc"] = "2.0"
	b, err := json.Marshal(m)
	if err == nil {
		_ = c.peer.Write(c.ctx, b)
	}
}
