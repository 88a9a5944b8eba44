package supervisortest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// protocolVersion is the one that a server answers the handshake with, whatever it is asked for.
const protocolVersion = "2025-11-25"

// connection is one connection of a server. Its reader owns running; handlers answer the calls, each in a goroutine of its own.
type connection struct {
	server   *Server
	peer     inprocess.Peer
	ctx      context.Context
	end      context.CancelCauseFunc
	handlers sync.WaitGroup

	// mu guards what follows.
	mu        sync.Mutex
	lastID    int64
	questions map[int64]chan answer         // of this server, by id
	running   map[string]context.CancelFunc // calls under way, by the client's id as it was written
}

// answer is the client's answer to a question.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// envelope is any message of the client.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      json.RawMessage `json:"_meta"`
	} `json:"params"`
	answer
}

// readLoop answers the client until the connection ends, and returns why it did.
func (c *connection) readLoop() error {
	for {
		msg, caller, err := c.readMessage()
		if err != nil {
			if cause := context.Cause(c.ctx); cause != nil {
				return cause
			}
			return err
		}
		var e envelope
		if json.Unmarshal(msg, &e) != nil || c.server.isSilent() {
			continue
		}
		switch {
		case e.Method == "notifications/cancelled":
			c.cancelCall(string(e.Params.RequestID))
		case e.Method == "":
			c.deliverAnswer(e)
		case e.ID != nil:
			c.handleRequest(e, caller)
		}
	}
}

// readMessage returns the next message, and for which caller it is.
func (c *connection) readMessage() (body []byte, caller string, err error) {
	direct, ok := c.peer.(inprocess.DirectPeer)
	if !ok {
		body, err = c.peer.Read(c.ctx)
		return body, "", err
	}
	m, err := direct.ReadMessage(c.ctx)
	return m.Body, m.Caller, err
}

// handleRequest answers a request of a caller.
func (c *connection) handleRequest(e envelope, caller string) {
	switch e.Method {
	case "initialize":
		c.sendResult(e.ID, map[string]any{"protocolVersion": protocolVersion, "capabilities": map[string]any{
			"tools": map[string]any{"listChanged": true}}, "serverInfo": map[string]any{"name": c.server.name, "version": "1"}})
	case "ping":
		c.sendResult(e.ID, struct{}{})
	case "tools/list":
		c.sendResult(e.ID, map[string]any{"tools": c.server.listTools()})
	case "tools/call":
		c.startCall(e, caller)
	default:
		c.sendError(e.ID, -32601, "method not found")
	}
}

// startCall runs the tool in a goroutine of its own.
func (c *connection) startCall(e envelope, caller string) {
	call := Call{Tool: e.Params.Name, Arguments: e.Params.Arguments, Meta: e.Params.Meta, Caller: caller, Ask: c.askClient}
	tool, gate, found := c.server.beginCall(call)
	if !found {
		c.sendError(e.ID, -32602, "there is no tool "+call.Tool)
		return
	}
	ctx, cancel := context.WithCancel(messages.WithCaller(c.ctx, caller))
	c.mu.Lock()
	c.running[string(e.ID)] = cancel
	c.mu.Unlock()
	c.handlers.Go(func() {
		defer c.cancelCall(string(e.ID))
		if gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
				return
			}
		}
		text, failed := "ok", false
		if tool.Handle != nil {
			var err error
			if text, err = tool.Handle(ctx, call); err != nil {
				text, failed = err.Error(), true
			}
		}
		// A call that was cancelled, or whose connection is gone, has no answer.
		if ctx.Err() == nil {
			c.sendResult(e.ID, map[string]any{"content": []map[string]any{{"type": "text", "text": text}}, "isError": failed})
		}
	})
}

// cancelCall ends the context of a call.
func (c *connection) cancelCall(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.running[id]; cancel != nil {
		cancel()
		delete(c.running, id)
	}
}

// askClient asks the client a question and waits for the answer.
func (c *connection) askClient(ctx context.Context, method string, params any) (json.RawMessage, error) {
	waiting := make(chan answer, 1)
	c.mu.Lock()
	c.lastID++
	id := c.lastID
	c.questions[id] = waiting
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.questions, id)
		c.mu.Unlock()
	}()
	if params == nil {
		params = struct{}{}
	}
	if err := c.sendMessage(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	select {
	case a := <-waiting:
		if a.Error != nil {
			return nil, fmt.Errorf("supervisortest: the client refused %s: %s (%d)", method, a.Error.Message, a.Error.Code)
		}
		return a.Result, nil
	case <-c.ctx.Done():
		return nil, ErrNotConnected
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// deliverAnswer gives an answer to the question that waits for it.
func (c *connection) deliverAnswer(e envelope) {
	var id int64
	if json.Unmarshal(e.ID, &id) != nil {
		return
	}
	c.mu.Lock()
	waiting := c.questions[id]
	delete(c.questions, id)
	c.mu.Unlock()
	if waiting != nil {
		waiting <- e.answer
	}
}

func (c *connection) sendResult(id json.RawMessage, result any) {
	_ = c.sendMessage(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

func (c *connection) sendError(id json.RawMessage, code int, text string) {
	_ = c.sendMessage(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}})
}

func (c *connection) sendNotification(method string) {
	_ = c.sendMessage(map[string]any{"jsonrpc": "2.0", "method": method})
}

// sendMessage sends one message. Its error is that the connection is gone, or that a value of the test cannot be written.
func (c *connection) sendMessage(message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return c.peer.Write(c.ctx, data)
}
