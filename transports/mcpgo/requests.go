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

	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// clientRequests are the requests of the server that wait for the client's answer. Handlers call it from their own goroutines.
type clientRequests struct {
	peer inprocess.Peer
	done <-chan struct{} // closed at the end of the connection

	// mu guards lastID and pending.
	mu     sync.Mutex
	lastID int64
	// pending has for each id, as JSON, the channel of the handler that waits. Each channel has room for its answer, so that
	// completeRequest never blocks.
	pending map[string]chan reply
}

// reply is the client's answer: a result or an error.
type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// errConnEnded means that the connection has ended before the client answered.
var errConnEnded = errors.New("the connection has ended")

// callClient sends a request and decodes the client's result into result. When ctx ends first, it sends notifications/cancelled,
// so that the client can stop working on it.
func (r *clientRequests) callClient(ctx context.Context, method mcp.MCPMethod, params, result any) error {
	r.mu.Lock()
	r.lastID++
	id := strconv.FormatInt(r.lastID, 10)
	// The request is registered before it is written, because the answer may come at once.
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
	// Marshalling may fail on the params of the embedding program, so that nothing is sent before it.
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
	// A client that is gone will not answer, and the handler may ignore its context.
	case <-r.done:
		return fmt.Errorf("%s: %w", method, errConnEnded)
	case <-ctx.Done():
		note := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
		_ = r.peer.Write(context.WithoutCancel(ctx), note) // an error means only that the connection has ended
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// decodeInto decodes the result, or returns the client's error as one for the handler.
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

// completeRequest gives a response of the client to the handler that waits for it. It ignores one for which no handler waits,
// because a cancelled request may still be answered.
func (r *clientRequests) completeRequest(id json.RawMessage, msg []byte) {
	r.mu.Lock()
	waiting := r.pending[string(id)]
	// The id is removed with the answer, so that a second answer to it finds no request.
	delete(r.pending, string(id))
	r.mu.Unlock()
	if waiting == nil {
		return
	}
	var got reply
	_ = json.Unmarshal(msg, &got) // decodeInto reports what is missing
	waiting <- got
}

var (
	_ server.SessionWithSampling    = (*session)(nil)
	_ server.SessionWithElicitation = (*session)(nil)
	_ server.SessionWithRoots       = (*session)(nil)
)

// undeclaredError refuses a request for which the client has not declared a capability.
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
	// The library decodes the content into a map; its handlers expect one of its types.
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
