// Package mcpgo serves a server that was written with github.com/mark3labs/mcp-go on an in-process connection:
//
//	t := transports.NewInProcess(mcpgo.Serve(server))
//
// Guarantees:
//
//   - Every connection has a session of its own, with its own log level, client information and session tools.
//   - Requests run concurrently, each in a goroutine of its own. Notifications are handled one after the other, in the
//     order in which they came, before anything that came later is looked at.
//   - A panic of a handler is the JSON-RPC error of that one request.
//   - No notification of the server is dropped: its sender waits while 16 of them wait to be handed over.
//   - Requests of the server (sampling, elicitation, roots) reach the client, if it declared that it can answer them,
//     and its answers the handlers. When a handler's context ends first, the client is told.
//   - When the connection ends, the contexts of all handlers end, and serving returns when the handlers have.
//
// Both eras work, tried with v1.2.1. In the modern one (2026-07-28): server/discover, answers that ask for input,
// cancellation, and any number of requests subscriptions/listen at once; each gets the changes of the lists that it
// asked for, and the resources/updated that the server sends to the session (SendNotificationToClient or
// …ToSpecificClient: mcp-go keeps a broadcast of it from sessions with subscriptions). mcp-go refuses requests of the
// server to a client of the modern era, as the specification wants it; a handler returns what it needs as an input
// request instead.
//
// Not promised: that a notification arrives before the result of the call that sent it. A panic in a goroutine that a
// handler has started ends the program.
package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/transports"
)

// Serve makes the serve function of an in-process transport. It may be used for many connections at once. s may gain
// and lose tools while it is served, and may be served by other means beside it.
func Serve(s *server.MCPServer) func(context.Context, transports.Peer) error {
	return func(ctx context.Context, peer transports.Peer) error {
		ctx, cancel := context.WithCancel(ctx)
		c := &conn{server: s, peer: peer, session: newSession(ctx, peer)}
		if err := s.RegisterSession(ctx, c.session); err != nil {
			cancel()
			return fmt.Errorf("mcp-go did not take the session: %w", err)
		}
		defer c.handlers.Wait()
		defer cancel()
		defer s.UnregisterSession(context.WithoutCancel(ctx), c.session.id)
		c.ctx = s.WithContext(ctx, c.session)
		if direct, ok := peer.(transports.DirectPeer); ok {
			direct.Answer(c.answerDirect)
			direct.Receive(c.handleMessage)
			c.forwardNotifications()
			return nil
		}
		c.handlers.Go(c.forwardNotifications)
		return c.readMessages()
	}
}

// conn is one connection being served.
type conn struct {
	server   *server.MCPServer
	peer     transports.Peer
	session  *session
	ctx      context.Context // ends with the connection, and knows the session
	handlers sync.WaitGroup
}

// readMessages takes messages until the connection ends.
func (c *conn) readMessages() error {
	for {
		msg, err := c.peer.Read(c.ctx)
		switch {
		case errors.Is(err, io.EOF), err != nil && c.ctx.Err() != nil:
			return nil //nolint:nilerr // the end of the connection is the normal end of a conversation
		case err != nil:
			return err
		}
		c.handleMessage(msg)
	}
}

// handleMessage handles one message. A request is answered on a goroutine of its own.
func (c *conn) handleMessage(msg []byte) {
	var h messageHead
	_ = json.Unmarshal(msg, &h) // what is wrong with a message, HandleMessage says in its answer
	switch {
	case h.ID != nil && h.Method == "" && (h.Result != nil || h.Error != nil):
		c.session.requests.completeRequest(h.ID, msg)
	case h.ID == nil || h.Method == "":
		c.writeBody(c.answerMessage(c.ctx, h.ID, msg))
	default:
		c.handlers.Go(func() { c.writeBody(c.answerRequest(h.ID, h.Method, h.Params.Meta.Version, msg)) })
	}
}

func (c *conn) writeBody(body []byte) {
	if body != nil {
		_ = c.peer.Write(context.WithoutCancel(c.ctx), body) // it fails only when the connection has ended
	}
}

// answerDirect is request for a message whose head is known.
func (c *conn) answerDirect(m transports.Message) []byte {
	return c.answerRequest(strconv.AppendInt(nil, m.ID, 10), m.Method, m.Version, m.Body)
}

// messageHead holds the members of a message that tell whose it is.
type messageHead struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Params struct {
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// answerRequest is the answer to a request. A subscription has a session of its own for as long as it lasts.
func (c *conn) answerRequest(id json.RawMessage, method, version string, msg []byte) []byte {
	if version != "" {
		c.session.becomeModern()
	}
	ctx := c.ctx
	if method == string(mcp.MethodSubscriptionsListen) {
		sub := c.session.addSubscription(id)
		defer c.session.removeSubscription(sub)
		ctx = c.server.WithContext(ctx, sub)
	}
	return c.answerMessage(ctx, id, msg)
}

// answerMessage is the answer to a message, nil if it wants none.
func (c *conn) answerMessage(ctx context.Context, id json.RawMessage, msg []byte) []byte {
	body, err := encodeAnswer(id, func() mcp.JSONRPCMessage { return c.server.HandleMessage(ctx, msg) })
	if err != nil && id != nil {
		body, _ = json.Marshal(mcp.NewJSONRPCError(mcp.NewRequestId(id), mcp.INTERNAL_ERROR, err.Error(), nil))
	}
	return body
}

// forwardNotifications hands the server's notifications over until the connection ends.
func (c *conn) forwardNotifications() {
	for {
		select {
		case n := <-c.session.notifications:
			<-c.session.slots
			for _, n := range c.session.subscriptionCopies(n) {
				if body, err := encodeAnswer(nil, func() mcp.JSONRPCMessage { return n }); err == nil {
					_ = c.peer.Write(c.ctx, body)
				}
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// encodeAnswer returns the result of f as JSON; nil for nothing. A panic in a handler, or in the encoding of what it returned, is
// an error. id is that of the request which f answers, if it answers one.
func encodeAnswer(id json.RawMessage, f func() mcp.JSONRPCMessage) (body []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			body, err = nil, fmt.Errorf("the server panicked: %v", v)
		}
	}()
	switch message := f().(type) {
	case nil:
		return nil, nil
	case mcp.JSONRPCResponse:
		if r, ok := message.Result.(*mcp.CallToolResult); ok && r != nil && id != nil {
			return answerOf(id, r)
		}
		return json.Marshal(message)
	default:
		return json.Marshal(message)
	}
}
