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

// rawClient is one connection on which anything can be said, also what no client should say. It waits for answers by
// id, answers what the server asks, and counts what came unasked.
type rawClient struct {
	conn transports.Conn
	kind messages.TransportKind
	// modern is the version that every request carries in the modern era, empty in the legacy one.
	modern string

	mu      sync.Mutex
	next    int64
	waiting map[int64]chan reply
	// answered are the ids of answers that came, with how often.
	answered   map[int64]int
	largest    int // bytes of the largest message
	noise      []string
	noiseCount int
	oversize   int
	down       chan struct{}
	reason     error
}

// reply is an answer to one request.
type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// noAnswerError is why a request was not answered, in words that follow "it".
type noAnswerError struct {
	text string
	// ended says that the connection is gone; status is the HTTP status with which the server refused the message.
	ended  bool
	status int
}

func (e *noAnswerError) Error() string { return e.text }

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

// close ends the connection and waits until nothing is left of it.
func (c *rawClient) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_ = c.conn.Close(ctx) // what does not end in time is ended by the transport's own bounds
}

// Message implements transports.Sink.
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
			go c.answerServer(m.ID, m.Method)
		}
		return
	}
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	c.answered[id]++
	waiting := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if waiting != nil {
		waiting <- m.reply
	}
}

// answerServer answers what the server asks of its client: it is alive, and can do nothing else.
func (c *rawClient) answerServer(id json.RawMessage, method string) {
	body := `{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32601,"message":"Method not found"}}`
	if method == "ping" {
		body = `{"jsonrpc":"2.0","id":` + string(id) + `,"result":{}}`
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = c.conn.Send(ctx, transports.Message{Body: []byte(body), Version: c.modern}) // the server may be gone
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

// endText says how the connection ended, empty while it stands.
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

// requestBody makes the body of a request of this era.
func (c *rawClient) requestBody(id int64, method string, params map[string]any) []byte {
	if c.modern != "" {
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
	if err != nil { // what we say is made of texts, numbers and JSON that was checked
		panic(err)
	}
	return body
}

var clientInfo = map[string]any{"name": "mcpvisor-check", "version": "1"}

// pendingRequest is a request on its way.
type pendingRequest struct {
	id     int64
	c      *rawClient
	answer chan reply
	failed chan error
	// cancel ends the exchange that carries it: over HTTP in the modern era this is what cancels it.
	cancel context.CancelFunc
}

// sendRequest sends a request and does not wait.
func (c *rawClient) sendRequest(ctx context.Context, method, name string, params map[string]any) *pendingRequest {
	c.mu.Lock()
	c.next++
	f := &pendingRequest{id: c.next, c: c, answer: make(chan reply, 1), failed: make(chan error, 1)}
	c.waiting[f.id] = f.answer
	c.mu.Unlock()
	m := transports.Message{ID: f.id, Method: method, Name: name, Body: c.requestBody(f.id, method, params), Version: c.modern}
	ctx, f.cancel = context.WithCancel(ctx)
	go func() { // it ends with the exchange, or with ctx
		if _, err := c.conn.Send(ctx, m); err != nil {
			f.failed <- err
		}
	}()
	return f
}

// awaitReply waits for the answer. The error is a *noAnswerError.
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

// inBody is a JSON-RPC error that came as the body of an HTTP refusal.
func inBody(err error) (r reply, ok bool) {
	var e *transports.Error
	ok = errors.As(err, &e) && json.Unmarshal(e.Body, &r) == nil && r.Error != nil
	return r, ok
}

// refusedBy is what the failure of a Send says about the server.
func refusedBy(err error) *noAnswerError {
	var e *transports.Error
	if errors.As(err, &e) && e.Status != 0 {
		return &noAnswerError{text: fmt.Sprintf("refused with HTTP %d", e.Status), status: e.Status}
	}
	return &noAnswerError{text: "could not be reached (" + messages.Line(err.Error(), 160) + ")"}
}

// callMethod sends a request and waits for its answer for at most within.
func (c *rawClient) callMethod(ctx context.Context, within time.Duration, method string, params map[string]any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return c.sendRequest(ctx, method, "", params).awaitReply(ctx)
}

// sendMessage sends a notification, or any other bytes that expect no answer.
func (c *rawClient) sendMessage(ctx context.Context, within time.Duration, method string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := c.conn.Send(ctx, transports.Message{Method: method, Body: body, Version: c.modern})
	return err
}

// handshakeResult is what a server answered to the handshake.
type handshakeResult struct {
	ProtocolVersion string `json:"protocolVersion"`
	Capabilities    struct {
		Tools *struct{} `json:"tools"`
	} `json:"capabilities"`
}

// shakeHands does the handshake of a known era.
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

// checkAlive asks for a sign of life: a ping, or in the modern era, which has none, server/discover. Any answer is one.
func (c *rawClient) checkAlive(ctx context.Context, within time.Duration) error {
	method := "ping"
	if c.modern != "" {
		method = "server/discover"
	}
	_, err := c.callMethod(ctx, within, method, nil)
	return err
}
