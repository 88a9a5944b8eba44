// Package mcpgo makes clients of mark3labs/mcp-go for package chaos.
//
//	chaos.TestClient(t, mcpgo.Dial())
//	chaos.TestClient(t, chaos.RedialHTTP(func(ctx context.Context, url string, c *http.Client) (chaos.Client, error) {
//		own, err := connect(ctx, url, c)   // as the program connects its *client.Client, Initialize included
//		return mcpgo.Client(own), err
//	}), chaos.Over(messages.HTTP))
//
// The package is part of a harness for tests: what it exports may change without notice.
package mcpgo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	chaos "github.com/mcpvisor/mcpvisor/test/chaos/client"
)

// Dial connects a new client, with these options, to the server of each day, and again when its connection is lost, as the library's
// documentation shows ("Connection Recovery") without the retry of the call.
func Dial(options ...client.ClientOption) chaos.Dial {
	overStream := chaos.Redial(func(ctx context.Context, stream io.ReadWriteCloser) (chaos.Client, error) {
		return connect(ctx, transport.NewIO(stream, stream, io.NopCloser(strings.NewReader(""))), options)
	})
	overHTTP := chaos.RedialHTTP(func(ctx context.Context, url string, c *http.Client) (chaos.Client, error) {
		t, err := transport.NewStreamableHTTP(url, transport.WithHTTPBasicClient(c))
		if err != nil {
			return nil, err
		}
		return connect(ctx, t, options)
	})
	return func(ctx context.Context, s *chaos.Server) (chaos.Client, error) {
		if s.URL != "" {
			return overHTTP(ctx, s)
		}
		return overStream(ctx, s)
	}
}

// Client returns a client that the program has made, and has connected or is about to. It handles the loss of the connection
// (OnConnectionLost) from now on.
func Client(own *client.Client) chaos.Client {
	return newConnection(own)
}

func newConnection(own *client.Client) *connection {
	c := &connection{Client: own}
	c.OnConnectionLost(func(error) { c.lost.Store(true) })
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method == "notifications/progress" {
			message, _ := n.Params.AdditionalFields["message"].(string)
			c.progress.Tell(n.Params.AdditionalFields["progressToken"], message)
		}
	})
	return c
}

func connect(ctx context.Context, t transport.Interface, options []client.ClientOption) (chaos.Client, error) {
	c := newConnection(client.NewClient(t, options...))
	// The context of Start is the lifetime of the transport, which only Close may end.
	if err := c.Start(context.Background()); err != nil {
		return nil, err
	}
	var r mcp.InitializeRequest
	r.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	r.Params.ClientInfo = mcp.Implementation{Name: "mcpvisor-chaos", Version: "1"}
	if _, err := c.Initialize(ctx, r); err != nil {
		_ = c.Close() // the first error counts
		return nil, err
	}
	return c, nil
}

// connection implements chaos.Client.
type connection struct {
	*client.Client
	lost     atomic.Bool
	progress chaos.ProgressCalls
}

// Lost reports whether the library has said that the connection is lost.
func (c *connection) Lost() bool { return c.lost.Load() }

// noteLoss marks the connection as lost if the error means that, and returns the error.
func (c *connection) noteLoss(err error) error {
	if errors.Is(err, transport.ErrTransportClosed) || errors.Is(err, transport.ErrSessionTerminated) {
		c.lost.Store(true)
	}
	return err
}

// Tools implements chaos.Client: it asks the server each time, as a program does that keeps no list of its own.
func (c *connection) Tools(ctx context.Context) (names []string, err error) {
	r, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, c.noteLoss(err)
	}
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names, nil
}

// Call implements chaos.Client.
func (c *connection) Call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	return c.call(ctx, tool, arguments, nil)
}

// CallWithProgress implements chaos.ProgressCaller.
func (c *connection) CallWithProgress(ctx context.Context, tool string, arguments map[string]any, progress func(string)) (string, error) {
	token, done := c.progress.Begin(progress)
	defer done()
	return c.call(ctx, tool, arguments, &mcp.Meta{ProgressToken: token})
}

func (c *connection) call(ctx context.Context, tool string, arguments map[string]any, meta *mcp.Meta) (string, error) {
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments, r.Params.Meta = tool, arguments, meta
	result, err := c.CallTool(ctx, r)
	if err != nil {
		return "", c.noteLoss(err)
	}
	for _, content := range result.Content {
		if text, ok := content.(mcp.TextContent); ok {
			return text.Text, nil
		}
	}
	return "", fmt.Errorf("the result holds no text")
}
