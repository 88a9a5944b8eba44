package conntest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

const (
	// Bound is the longest time that anything which must end may take.
	Bound = time.Minute
	// Canary stands in every credential of these tests, and must stand in no error.
	Canary = "canary5ba04e7d11c9"
)

// Client is a connection under test with its sink.
type Client struct {
	transports.Conn
	*transporttest.Recorder
	T      testing.TB
	NextID atomic.Int64
}

// Dial opens a connection that is closed at the end of the test.
func Dial(t testing.TB, tr transports.Transport) *Client {
	t.Helper()
	c := &Client{Recorder: &transporttest.Recorder{}, T: t}
	ctx, cancel := context.WithTimeout(context.Background(), Bound)
	defer cancel()
	conn, err := tr.Dial(ctx, c.Recorder)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	c.Conn = conn
	t.Cleanup(c.CloseChecked)
	return c
}

// CloseChecked closes the connection and fails the test unless its sink was called as the contract says.
func (c *Client) CloseChecked() {
	ctx, cancel := context.WithTimeout(context.Background(), Bound)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		c.T.Errorf("Close: %v", err)
	}
	if err := c.Check(); err != nil {
		c.T.Error(err)
	}
	if n := len(c.Downs()); n != 1 {
		c.T.Errorf("Down was called %d times", n)
	}
}

// TrySend sends a request and returns what Send returned. The error, if any, has been looked at.
func (c *Client) TrySend(ctx context.Context, method, params string) (int64, transports.Delivery, *transports.Error) {
	c.T.Helper()
	id := c.NextID.Add(1)
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	d, err := c.Send(ctx, transports.Message{ID: id, Method: method, Body: body})
	if err == nil {
		return id, d, nil
	}
	return id, d, BoundaryError(c.T, err)
}

// TryModern sends a request of the modern era. The server may end the wait through ctx.
func (c *Client) TryModern(ctx context.Context, m transports.Message) (int64, transports.Delivery, *transports.Error) {
	c.T.Helper()
	m.ID, m.Version = c.NextID.Add(1), "2026-07-28"
	m.Body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"_meta":{}}}`, m.ID, m.Method)
	d, err := c.Send(ctx, m)
	if err == nil {
		return m.ID, d, nil
	}
	return m.ID, d, BoundaryError(c.T, err)
}

// BoundaryError is err as the error of the boundary. It holds no canary.
func BoundaryError(t testing.TB, err error) *transports.Error {
	t.Helper()
	var e *transports.Error
	if !errors.As(err, &e) {
		t.Fatalf("a %T, not a *transports.Error: %v", err, err)
	}
	for err := error(e); err != nil; err = errors.Unwrap(err) {
		if all := fmt.Sprintf("%v %+v %s", err, err, e.Body); strings.Contains(all, Canary) {
			t.Errorf("an error holds a secret: %s", all)
		}
	}
	if e.Challenge != nil && strings.Contains(fmt.Sprintf("%+v", *e.Challenge), Canary) {
		t.Errorf("a challenge holds a secret: %+v", *e.Challenge)
	}
	return e
}

// Call sends a request and returns the result; the test fails if there is none.
func (c *Client) Call(method, params string) string {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Bound)
	defer cancel()
	id, d, err := c.TrySend(ctx, method, params)
	if err != nil || d != transports.Written {
		c.T.Fatalf("%s: %v, %v", method, d, err)
	}
	return string(c.Answer(c.T, Bound, id))
}

// Notify sends a notification; the test fails if it was not written.
func (c *Client) Notify(method string) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Bound)
	defer cancel()
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q}`, method)
	d, err := c.Send(ctx, transports.Message{Method: method, Body: body})
	if err != nil || d != transports.Written {
		c.T.Fatalf("%s: %v, %v", method, d, err)
	}
}

// InitializeParams are the parameters of initialize.
const InitializeParams = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`

// Handshake does what a session does.
func (c *Client) Handshake() string {
	c.T.Helper()
	got := c.Call("initialize", InitializeParams)
	var result struct{ ProtocolVersion string }
	if err := json.Unmarshal([]byte(got), &result); err != nil || result.ProtocolVersion == "" {
		c.T.Fatalf("initialize: %s", got)
	}
	c.Negotiated(result.ProtocolVersion)
	c.Notify("notifications/initialized")
	return result.ProtocolVersion
}

// WaitFor waits until n messages hold the text.
func (c *Client) WaitFor(n int, text string) {
	c.T.Helper()
	c.Wait(c.T, Bound, fmt.Sprintf("%d messages with %s", n, text), func() bool {
		found := 0
		for _, m := range c.Messages() {
			if strings.Contains(string(m), text) {
				found++
			}
		}
		return found >= n
	})
}

// DroppingSink is a sink that forgets.
type DroppingSink struct{}

// Message implements transports.Sink.
func (*DroppingSink) Message([]byte) {}

// Oversized implements transports.Sink.
func (*DroppingSink) Oversized(_, _ []byte, _ int64) {}

// Noise implements transports.Sink.
func (*DroppingSink) Noise([]byte) {}

// Down implements transports.Sink.
func (*DroppingSink) Down(error) {}
