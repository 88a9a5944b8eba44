package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// rawClient is one connection over which any bytes can be sent, also those that no proper client sends. It matches answers to
// requests by id, answers the server's questions, and counts what came unasked. It is the Sink of its transport, which calls it
// from its own goroutine.
type rawClient struct {
	conn transports.Conn
	// modern is the version that every request carries in the modern era; empty in the legacy one.
	kind messages.TransportKind
	// modern is the version that every request carries in the modern era, empty in the legacy one.
	modern string

	// mu guards everything below. next is the last id given out, waiting maps the ids of open requests to their channels.
	mu      sync.Mutex
	next    int64
	waiting map[int64]chan reply
	// answered counts the answers by id, so that checkParallel sees ids that were answered twice.
	answered map[int64]int
	// largest is the length of the largest message in bytes, noise the first three lines that were no messages.
	largest    int
	noise      []string
	noiseCount int
	oversize   int
	// down is closed when the connection has ended, for reason.
	down   chan struct{}
	reason error
}

// reply is the answer to one request: a result or an error.
type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// noAnswerError describes why a request got no answer, in words that follow "it".
type noAnswerError struct {
	text string
	// ended is set if the connection has ended. status is the HTTP status with which the server refused the message, 0 if it
	// did not.
	ended  bool
	status int
}

func (e *noAnswerError) Error() string { return e.text }

// openRawClient dials the server; it does not shake hands.
func openRawClient(ctx context.Context, t transports.Transport) (*rawClient, error) {
	c := &rawClient{
		kind: t.Kind(), waiting: map[int64]chan reply{}, answered: map[int64]int{}, down: make(chan struct{}),
	}
	conn, err := t.Dial(ctx, c)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	return c, nil
}

// close ends the connection and waits until nothing is left of it, at most 20 s.
func (c *rawClient) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	// The transport kills what does not end within its own limits.
	_ = c.conn.Close(ctx)
}

// Message implements transports.Sink. It accepts batches, which older servers may send.
func (c *rawClient) Message(body []byte) {
	c.mu.Lock()
	c.largest = max(c.largest, len(body))
	c.mu.Unlock()
	if len(body) > 0 && body[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(body, &batch) == nil {
			for _, m := range batch {
				c.handleMessage(m)
			}
		}
		return
	}
	c.handleMessage(body)
}

// handleMessage handles one message: noise, a request of the server, or an answer.
func (c *rawClient) handleMessage(body []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		reply
	}
	if json.Unmarshal(body, &m) != nil {
		c.Noise(body)
		return
	}
	if m.Method != "" {
		if len(m.ID) > 0 {
			// Send may block, and the Sink must not.
			go c.answerServer(m.ID, m.Method)
		}
		return
	}
	// This client uses numbers as ids, so that a response with another id answers nothing and is dropped.
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	// Answers are counted even if the request is no longer open: a check that cancelled it looks whether one came all the same.
	c.answered[id]++
	waiting := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if waiting != nil {
		waiting <- m.reply
	}
}

// answerServer answers a request of the server: ping with a result, everything else as unknown, because this client declares no
// capabilities.
func (c *rawClient) answerServer(id json.RawMessage, method string) {
	body := `{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32601,"message":"Method not found"}}`
	if method == "ping" {
		body = `{"jsonrpc":"2.0","id":` + string(id) + `,"result":{}}`
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// If the server is gone, the checks notice it themselves.
	_, _ = c.conn.Send(ctx, transports.Message{Body: []byte(body), Version: c.modern})
}

// Oversized implements transports.Sink.
func (c *rawClient) Oversized(_, _ []byte, _ int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.oversize++
}

// Noise implements transports.Sink.
func (c *rawClient) Noise(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noiseCount++; len(c.noise) < 3 {
		c.noise = append(c.noise, messages.Line(string(line), 80))
	}
}

// Down implements transports.Sink.
func (c *rawClient) Down(err error) {
	c.mu.Lock()
	c.reason = err
	c.mu.Unlock()
	close(c.down)
}

// endText returns how the connection ended, empty while it is open.
func (c *rawClient) endText() string {
	select {
	case <-c.down:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.reason != nil {
			return c.reason.Error()
		}
		return "the connection ended"
	default:
		return ""
	}
}

// requestBody encodes a request, or with id 0 a notification, of the connection's era. In the modern era it adds the members of
// _meta that every request must carry.
func (c *rawClient) requestBody(id int64, method string, params map[string]any) []byte {
	if c.modern != "" {
		// The caller's own members of _meta win, which lets a check send a version or capabilities that are made up.
		meta, _ := params["_meta"].(map[string]any)
		all := map[string]any{
			"io.modelcontextprotocol/protocolVersion":    c.modern,
			"io.modelcontextprotocol/clientInfo":         clientInfo,
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
		for k, v := range meta {
			all[k] = v
		}
		with := map[string]any{"_meta": all}
		for k, v := range params {
			if k != "_meta" {
				with[k] = v
			}
		}
		params = with
	}
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if id > 0 {
		m["id"] = id
	}
	if params != nil {
		m["params"] = params
	}
	body, err := json.Marshal(m)
	// The parts are strings, numbers and JSON that was checked, so Marshal cannot fail.
	if err != nil {
		panic(err)
	}
	return body
}

var clientInfo = map[string]any{"name": "mcpvisor-check", "version": "1"}

// pendingRequest is a request that was sent and not yet answered.
type pendingRequest struct {
	id int64
	c  *rawClient
	// answer and failed have room for one value each, so that neither the Sink nor the sender blocks if the caller has given
	// up.
	answer chan reply
	failed chan error
	// cancel ends the exchange that carries the request; over HTTP in the modern era that cancels the request.
	cancel context.CancelFunc
}

// sendRequest sends a request without waiting. The caller must call awaitReply, which releases it.
func (c *rawClient) sendRequest(ctx context.Context, method, name string, params map[string]any) *pendingRequest {
	c.mu.Lock()
	c.next++
	f := &pendingRequest{id: c.next, c: c, answer: make(chan reply, 1), failed: make(chan error, 1)}
	c.waiting[f.id] = f.answer
	c.mu.Unlock()
	m := transports.Message{ID: f.id, Method: method, Name: name, Body: c.requestBody(f.id, method, params), Version: c.modern}
	ctx, f.cancel = context.WithCancel(ctx)
	// The goroutine ends with the exchange, or with ctx.
	go func() {
		if _, err := c.conn.Send(ctx, m); err != nil {
			f.failed <- err
		}
	}()
	return f
}

// awaitReply waits for the answer. Its error is a *noAnswerError. An answer that arrived before the connection ended still
// counts.
func (f *pendingRequest) awaitReply(ctx context.Context) (reply, error) {
	defer func() {
		f.c.mu.Lock()
		delete(f.c.waiting, f.id)
		f.c.mu.Unlock()
		f.cancel()
	}()
	var failure *noAnswerError
	select {
	case r := <-f.answer:
		return r, nil
	// A server may send a JSON-RPC error as the body of an HTTP refusal; that is an answer.
	case err := <-f.failed:
		if r, ok := inBody(err); ok {
			return r, nil
		}
		if failure = refusedBy(err); ctx.Err() != nil {
			failure = &noAnswerError{text: "did not answer in time"}
		}
	case <-f.c.down:
		failure = &noAnswerError{text: "ended the connection instead of answering (" + f.c.endText() + ")", ended: true}
	case <-ctx.Done():
		failure = &noAnswerError{text: "did not answer in time"}
	}
	select {
	case r := <-f.answer: // it was delivered before the end
		return r, nil
	default:
		return reply{}, failure
	}
}

// inBody returns the JSON-RPC error in the body of an HTTP refusal, false if there is none.
func inBody(err error) (r reply, ok bool) {
	var e *transports.Error
	ok = errors.As(err, &e) && json.Unmarshal(e.Body, &r) == nil && r.Error != nil
	return r, ok
}

// refusedBy translates an error of Send into what it says about the server.
func refusedBy(err error) *noAnswerError {
	var e *transports.Error
	if errors.As(err, &e) && e.Status != 0 {
		return &noAnswerError{text: fmt.Sprintf("refused with HTTP %d", e.Status), status: e.Status}
	}
	return &noAnswerError{text: "could not be reached (" + messages.Line(err.Error(), 160) + ")"}
}

// callMethod sends a request and waits for the answer, at most within.
func (c *rawClient) callMethod(ctx context.Context, within time.Duration, method string, params map[string]any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return c.sendRequest(ctx, method, "", params).awaitReply(ctx)
}

// sendMessage sends a notification, or any bytes to which no answer is expected.
func (c *rawClient) sendMessage(ctx context.Context, within time.Duration, method string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := c.conn.Send(ctx, transports.Message{Method: method, Body: body, Version: c.modern})
	return err
}

// handshakeResult is the part of a handshake's answer that the checks need.
type handshakeResult struct {
	ProtocolVersion string `json:"protocolVersion"`
	Capabilities    struct {
		Tools *struct{} `json:"tools"`
	} `json:"capabilities"`
}

// shakeHands performs the handshake of a known era, with a version that may be made up.
func (c *rawClient) shakeHands(ctx context.Context, within time.Duration, era messages.Era, version string) (handshakeResult, error) {
	var g handshakeResult
	method, params := "initialize", map[string]any{
		"protocolVersion": version, "capabilities": map[string]any{}, "clientInfo": clientInfo,
	}
	if era == messages.EraModern {
		method, params, c.modern = "server/discover", nil, version
	}
	r, err := c.callMethod(ctx, within, method, params)
	switch {
	case err != nil:
		return g, err
	case r.Error != nil:
		return g, &noAnswerError{text: fmt.Sprintf("refused %s with error %d: %s", method, r.Error.Code,
			messages.Line(r.Error.Message, 120))}
	}
	if err := json.Unmarshal(r.Result, &g); err != nil {
		return g, &noAnswerError{text: "answered " + method + " with what is no result"}
	}
	if era == messages.EraModern {
		c.conn.Negotiated(version)
		return g, nil
	}
	c.conn.Negotiated(g.ProtocolVersion)
	err = c.sendMessage(ctx, within, "notifications/initialized", []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil {
		return g, refusedBy(err)
	}
	return g, nil
}

// checkAlive asks for a sign of life: a ping, or in the modern era, which has none, server/discover. Any answer counts, an
// error too.
func (c *rawClient) checkAlive(ctx context.Context, within time.Duration) error {
	method := "ping"
	if c.modern != "" {
		method = "server/discover"
	}
	_, err := c.callMethod(ctx, within, method, nil)
	return err
}
