// Package gosdk serves a server that was written with the official SDK (github.com/modelcontextprotocol/go-sdk) on an in-process
// connection:
//
//	supervisor.Config{
//		Servers:   map[string]supervisor.Spec{"clock": {Type: supervisor.SDK}},
//		InProcess: map[string]func(context.Context, inprocess.Peer) error{"clock": gosdk.Serve(server)},
//	}
//
// # How it fits
//
// The manager makes an inprocess.Transport of it, and its session is the client. For each connection inprocess.Transport runs the
// function that [Serve] returns, which connects the SDK's server to the Peer and waits for the end of the SDK's session. The SDK
// owns the goroutines; this package owns the connection between the two.
//
// Guarantees:
//
//   - Every connection has a session of its own.
//   - A panic of a handler becomes the JSON-RPC error of that one request. Without this package it would end the program.
//   - Requests of the server (sampling, elicitation, roots) reach the client, and its answers the handlers.
//   - The context of a request's handler names the caller on whose behalf the request came (messages.CallerOf).
//   - When the connection ends, the contexts of all handlers end, and serving returns when the handlers have.
//
// Both eras work, tried with v1.8.0: the legacy one with every request and notification of the server, the modern one
// (2026-07-28) with server/discover, answers that ask for input, cancellation, and subscriptions/listen with changes of the lists
// and of resources. In it the SDK keeps one subscription of each kind for a connection: a second request subscriptions/listen
// replaces the first one, and the end of either is the end of both. So a client should have one open at a time.
//
// Not promised: that a notification arrives before the result of the call that sent it. A panic in a goroutine that a
// handler has started ends the program.
package gosdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// Serve makes the serve function of an in-process transport. It may be used for many connections at once.
//
// It adds a receiving middleware to s, which turns panics into errors, also those of middleware that was added to s before.
// Middleware that is added later runs outside of it and is not protected.
func Serve(s *mcp.Server) func(context.Context, inprocess.Peer) error {
	s.AddReceivingMiddleware(recoverPanics)
	return func(ctx context.Context, peer inprocess.Peer) error {
		c := &conn{peer: peer}
		c.ctx, c.cancel = context.WithCancel(ctx)
		defer c.cancel()
		session, err := s.Connect(ctx, connector{c}, nil)
		if err != nil {
			return fmt.Errorf("the go-sdk server did not take the connection: %w", err)
		}
		// When the connection ends, Read fails, which ends the SDK's session: it cancels its handlers and waits for them.
		if err := session.Wait(); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
			return err
		}
		return nil
	}
}

// callerHeader is the key of the caller in the headers that the SDK's requests carry beside their message. No header of HTTP has
// this form, so that no request from elsewhere can name a caller.
const callerHeader = "mcpvisor caller"

// recoverPanics returns the panic of a handler as the error of its request, and gives the handler a context that names the caller.
func recoverPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		// The caller came beside the message: see conn.Read.
		if extra := req.GetExtra(); extra != nil {
			if caller := extra.Header[callerHeader]; len(caller) == 1 {
				ctx = messages.WithCaller(ctx, caller[0])
			}
		}
		defer func() {
			if v := recover(); v != nil {
				result, err = nil, fmt.Errorf("the server panicked: %v", v)
			}
		}()
		return next(ctx, method, req)
	}
}

// connector is an mcp.Transport whose connection exists already.
type connector struct{ c *conn }

// Connect implements mcp.Transport.
func (t connector) Connect(context.Context) (mcp.Connection, error) { return t.c, nil }

// conn is an mcp.Connection on a Peer.
type conn struct {
	peer   inprocess.Peer
	ctx    context.Context // ends with the connection, and with Close
	cancel context.CancelFunc
}

var _ mcp.Connection = (*conn)(nil)

// Read implements mcp.Connection. The SDK passes a context that never ends and stops a Read by Close, so that conn's own context
// counts.
func (c *conn) Read(context.Context) (jsonrpc.Message, error) {
	var m transports.Message
	var err error
	if direct, ok := c.peer.(inprocess.DirectPeer); ok {
		m, err = direct.ReadMessage(c.ctx)
	} else {
		m.Body, err = c.peer.Read(c.ctx)
	}
	if err != nil {
		return nil, io.EOF
	}
	msg, err := jsonrpc.DecodeMessage(m.Body)
	if request, ok := msg.(*jsonrpc.Request); ok && m.Caller != "" {
		request.Extra = &mcp.RequestExtra{Header: http.Header{callerHeader: {m.Caller}}}
	}
	return msg, err
}

// Write implements mcp.Connection.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	body, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return c.peer.Write(ctx, body)
}

// Close implements mcp.Connection. It ends a Read in progress; the Peer itself belongs to the transport.
func (c *conn) Close() error {
	c.cancel()
	return nil
}

// SessionID implements mcp.Connection. A connection in memory has none.
func (c *conn) SessionID() string { return "" }
