package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/transports"
)

// clientRequests are the requests of the server that wait for the client's answer.
type clientRequests struct {
	peer transports.Peer
	done <-chan struct{} // the end of the connection

	mu      sync.Mutex
	lastID  int64
	pending map[string]chan reply // by their ids, as JSON
}

// reply is the client's answer.
type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// errConnEnded says that the connection has ended before the client answered.
var errConnEnded = errors.New("the connection has ended")

// callClient sends a request and decodes the client's result into result. When ctx ends first, the client is told that the
// server waits no more.
func (r *clientRequests) callClient(ctx context.Context, method mcp.MCPMethod, params, result any) error {
	r.mu.Lock()
	r.lastID++
	id := strconv.FormatInt(r.lastID, 10)
	answer := make(chan reply, 1)
	if r.pending == nil {
		r.pending = make(map[string]chan reply)
	}
	r.pending[id] = answer
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.pending, id)
		r.mu.Unlock()
	}()
	body, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  mcp.MCPMethod   `json:"method"`
		Params  any             `json:"params,omitempty"`
	}{"2.0", json.RawMessage(id), method, params})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if err := r.peer.Write(ctx, body); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case got := <-answer:
		return got.decodeInto(method, result)
	case <-r.done:
		return fmt.Errorf("%s: %w", method, errConnEnded)
	case <-ctx.Done():
		note := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
		_ = r.peer.Write(context.WithoutCancel(ctx), note) // it fails only when the connection has ended
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

func (got reply) decodeInto(method mcp.MCPMethod, result any) error {
	switch {
	case got.Error != nil:
		return fmt.Errorf("the client refused %s: %s (code %d)", method, got.Error.Message, got.Error.Code)
	case got.Result == nil:
		return fmt.Errorf("the client answered %s with neither a result nor an error", method)
	}
	if err := json.Unmarshal(got.Result, result); err != nil {
		return fmt.Errorf("the client's answer to %s cannot be read: %w", method, err)
	}
	return nil
}

// completeRequest gives a response of the client to the request that waits for it. One for which none waits is ignored, as a late one
// must be.
func (r *clientRequests) completeRequest(id json.RawMessage, msg []byte) {
	r.mu.Lock()
	waiting := r.pending[string(id)]
	delete(r.pending, string(id))
	r.mu.Unlock()
	if waiting == nil {
		return
	}
	var got reply
	_ = json.Unmarshal(msg, &got) // what is missing then, into says
	waiting <- got
}

var (
	_ server.SessionWithSampling    = (*session)(nil)
	_ server.SessionWithElicitation = (*session)(nil)
	_ server.SessionWithRoots       = (*session)(nil)
)

// undeclaredError says that the client did not say that it can do this.
//
// 2025-11-25: "Both parties MUST: Respect the negotiated protocol version; Only use capabilities that were successfully
// negotiated".
func undeclaredError(what string) error {
	return fmt.Errorf("the client has not declared that it supports %s", what)
}

// RequestSampling implements server.SessionWithSampling.
func (s *session) RequestSampling(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	if s.GetClientCapabilities().Sampling == nil {
		return nil, undeclaredError("sampling")
	}
	var result mcp.CreateMessageResult
	if err := s.requests.callClient(ctx, mcp.MethodSamplingCreateMessage, r.CreateMessageParams, &result); err != nil {
		return nil, err
	}
	content, err := mcp.ParseSamplingContent(result.Content)
	if err != nil {
		return nil, fmt.Errorf("the client's answer to sampling cannot be read: %w", err)
	}
	result.Content = content
	return &result, nil
}

// RequestElicitation implements server.SessionWithElicitation.
func (s *session) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	if s.GetClientCapabilities().Elicitation == nil {
		return nil, undeclaredError("elicitation")
	}
	var result mcp.ElicitationResult
	if err := s.requests.callClient(ctx, mcp.MethodElicitationCreate, r.Params, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// ListRoots implements server.SessionWithRoots.
func (s *session) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	if s.GetClientCapabilities().Roots == nil {
		return nil, undeclaredError("roots")
	}
	var result mcp.ListRootsResult
	if err := s.requests.callClient(ctx, mcp.MethodListRoots, nil, &result); err != nil {
		return nil, err
	}
	return &result, nil
}
