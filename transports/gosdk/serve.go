// Package gosdk serves a server that was written with the official SDK (github.com/modelcontextprotocol/go-sdk) on an
// in-process connection:
//
//	t := transports.NewInProcess(gosdk.Serve(server))
//
// Guarantees:
//
//   - Every connection has a session of its own.
//   - A panic of a handler is the JSON-RPC error of that one request. The SDK itself would end the program.
//   - Requests of the server (sampling, elicitation, roots) reach the client, and its answers the handlers.
//   - When the connection ends, the contexts of all handlers end, and serving returns when the handlers have.
//
// Both eras work, tried with v1.8.0: the legacy one with every request and notification of the server, the modern one
// (2026-07-28) with server/discover, answers that ask for input, cancellation, and subscriptions/listen with changes of
// the lists and of resources. In it the SDK keeps one subscription of each kind for a connection: a second request
// subscriptions/listen takes the place of the first one, and the end of either is the end of both. A client has one
// open at a time therefore.
//
// Not promised: that a notification arrives before the result of the call that sent it. A panic in a goroutine that a
// handler has started ends the program.
package gosdk

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/transports"
)

// Serve makes the serve function of an in-process transport. It may be used for many connections at once.
//
// It adds a receiving middleware to s, which turns panics into errors. It protects what was added to s before;
// middleware that is added later runs outside of it.
func Serve(s *mcp.Server) func(context.Context, transports.Peer) error {
	s.AddReceivingMiddleware(recoverPanics)
	return func(ctx context.Context, peer transports.Peer) error {
		c := &conn{peer: peer}
		c.ctx, c.cancel = context.WithCancel(ctx)
		defer c.cancel()
		session, err := s.Connect(ctx, connector{c}, nil)
		if err != nil {
			return fmt.Errorf("the go-sdk server did not take the connection: %w", err)
		}
		// The end of the connection is the end of Read, which ends the session: it cancels its handlers and waits for
		// them.
		if err := session.Wait(); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
			return err
		}
		return nil
	}
}

func recoverPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				result, err = nil, fmt.Errorf("the server panicked: %v", v)
			}
		}()
		return next(ctx, method, req)
	}
}

// connector is an mcp.Transport that is connected already.
type connector struct{ c *conn }

func (t connector) Connect(context.Context) (mcp.Connection, error) { return t.c, nil }

// conn is an mcp.Connection on a Peer.
type conn struct {
	peer   transports.Peer
	ctx    context.Context // ends with Close too
	cancel context.CancelFunc
}

var _ mcp.Connection = (*conn)(nil)

// Read implements mcp.Connection. The SDK's context never ends: Close is how it stops a Read.
func (c *conn) Read(context.Context) (jsonrpc.Message, error) {
	msg, err := c.peer.Read(c.ctx)
	if err != nil {
		return nil, io.EOF
	}
	return jsonrpc.DecodeMessage(msg)
}

// Write implements mcp.Connection.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	body, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return c.peer.Write(ctx, body)
}

// Close implements mcp.Connection.
func (c *conn) Close() error {
	c.cancel()
	return nil
}

// SessionID implements mcp.Connection.
func (c *conn) SessionID() string { return "" }
