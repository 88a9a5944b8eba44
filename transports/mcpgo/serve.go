// Package mcpgo serves a server that was written with github.com/mark3labs/mcp-go on an in-process connection:
//
//	supervisor.Config{
//		Servers:   map[string]supervisor.Spec{"clock": {Type: supervisor.SDK}},
//		InProcess: map[string]func(context.Context, inprocess.Peer) error{"clock": mcpgo.Serve(server)},
//	}
//
// # How it fits
//
// The manager makes an inprocess.Transport of it, and its session is the client. For each connection inprocess.Transport runs the
// function that [Serve] returns; it calls mcp-go's HandleMessage for each message, and mcp-go calls the session here to send
// notifications and requests. This package owns one session and the handlers' goroutines per connection, and ends them with it.
//
//	client ── Answer, Receive ──> conn ── HandleMessage ──> mcp-go ──> handler
//	   ^                                                       │
//	   └── Peer.Write ── forwardNotifications <── session <────┘
//
// Guarantees:
//
//   - Every connection has a session of its own, with its own log level, client information and session tools.
//   - Requests run concurrently, each in a goroutine of its own. Notifications are handled one after the other, in the
//     order in which they came, before anything that came later is looked at.
//   - A panic of a handler becomes the JSON-RPC error of that one request.
//   - No notification of the server is dropped: its sender blocks while 16 of them wait to be written. Before a subscription
//     is acknowledged, the latest about each list and each resource is kept, and those that say the same are left out.
//   - Requests of the server (sampling, elicitation, roots) reach the client, if it declared that it can answer them,
//     and its answers the handlers. When a handler's context ends first, the client gets notifications/cancelled.
//   - The context of a request's handler names the caller on whose behalf the request came (messages.CallerOf).
//   - When the connection ends, the contexts of all handlers end, and serving returns when the handlers have.
//
// Both eras work, tried with v1.2.1. In the modern one (2026-07-28): server/discover, answers that ask for input, cancellation,
// and any number of requests subscriptions/listen at once; each gets the changes of the lists that it asked for, and the
// resources/updated that the server sends to the session (SendNotificationToClient or …ToSpecificClient: mcp-go does not
// broadcast it to sessions with subscriptions). mcp-go refuses requests of the server to a client of the modern era, as the
// specification demands; a handler returns what it needs as an input request instead.
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

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// Serve makes the serve function of an in-process transport. It may be used for many connections at once. s may gain and lose
// tools while it is served, and may be served by other transports at the same time.
func Serve(s *server.MCPServer) func(context.Context, inprocess.Peer) error {
	return func(ctx context.Context, peer inprocess.Peer) error {
		// The context of the handlers ends also when serving ends by itself.
		ctx, cancel := context.WithCancel(ctx)
		c := &conn{server: s, peer: peer, session: newSession(ctx, peer)}
		if err := s.RegisterSession(ctx, c.session); err != nil {
			cancel()
			return fmt.Errorf("mcp-go did not take the session: %w", err)
		}
		// The order of the ends: unregister the session, cancel the handlers, then wait for them.
		defer c.handlers.Wait()
		defer cancel()
		defer s.UnregisterSession(context.WithoutCancel(ctx), c.session.id)
		c.ctx = s.WithContext(ctx, c.session)
		if direct, ok := peer.(inprocess.DirectPeer); ok {
			// The peer calls back for each message, so that this goroutine only forwards notifications, with a small stack.
			direct.Answer(c.answerDirect)
			direct.Receive(c.handleMessage)
			c.forwardNotifications()
			return nil
		}
		c.handlers.Go(c.forwardNotifications)
		return c.readMessages()
	}
}

// conn is one connection being served. Its methods run on the connection's goroutines.
type conn struct {
	server  *server.MCPServer
	peer    inprocess.Peer
	session *session
	ctx     context.Context // ends with the connection; mcp-go finds the session in it
	// handlers counts the goroutines of requests, for which Serve's function waits.
	handlers sync.WaitGroup
}

// readMessages reads messages until the connection ends, for a peer that is no DirectPeer.
func (c *conn) readMessages() error {
	for {
		msg, err := c.peer.Read(c.ctx)
		switch {
		case errors.Is(err, io.EOF), err != nil && c.ctx.Err() != nil:
			return nil //nolint:nilerr // the end of the connection is the normal end of a conversation
		case err != nil:
			return err
		}
		c.handleMessage(transports.Message{Body: msg})
	}
}

// handleMessage handles one message. A notification is handled before it returns, which keeps the order; a request gets a
// goroutine of its own.
func (c *conn) handleMessage(m transports.Message) {
	var h messageHead
	msg := m.Body
	_ = json.Unmarshal(msg, &h) // HandleMessage answers a message that cannot be read
	switch {
	case h.ID != nil && h.Method == "" && (h.Result != nil || h.Error != nil):
		c.session.requests.completeRequest(h.ID, msg)
	case h.ID == nil || h.Method == "":
		c.writeBody(c.answerMessage(c.ctx, h.ID, msg))
	default:
		c.handlers.Go(func() { c.writeBody(c.answerRequest(h.ID, h.Method, h.Params.Meta.Version, m.Caller, msg)) })
	}
}

// writeBody sends an answer, also if the handler's context has ended.
func (c *conn) writeBody(body []byte) {
	if body != nil {
		_ = c.peer.Write(context.WithoutCancel(c.ctx), body) // an error means only that the connection has ended
	}
}

// answerDirect answers a request whose head the transport knows already, so that it need not be parsed.
func (c *conn) answerDirect(m transports.Message) []byte {
	return c.answerRequest(strconv.AppendInt(nil, m.ID, 10), m.Method, m.Version, m.Caller, m.Body)
}

// messageHead has the members of a message that show what it is: a request, a response or a notification.
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

// answerRequest returns the answer to a request. A subscription gets a session of its own for as long as its request lasts.
// A handler's context names the caller (messages.CallerOf).
func (c *conn) answerRequest(id json.RawMessage, method, version, caller string, msg []byte) []byte {
	// Only messages of the modern era name their version.
	if version != "" {
		c.session.becomeModern()
	}
	ctx := c.ctx
	if method == string(mcp.MethodSubscriptionsListen) {
		sub := c.session.addSubscription(id)
		defer c.session.removeSubscription(sub)
		ctx = c.server.WithContext(ctx, sub)
	}
	if caller != "" {
		ctx = messages.WithCaller(ctx, caller)
	}
	return c.answerMessage(ctx, id, msg)
}

// answerMessage returns the answer to a message, nil if it needs none.
func (c *conn) answerMessage(ctx context.Context, id json.RawMessage, msg []byte) []byte {
	body, err := encodeAnswer(id, func() mcp.JSONRPCMessage { return c.server.HandleMessage(ctx, msg) })
	// A notification gets no answer, not even about a panic.
	if err != nil && id != nil {
		body, _ = json.Marshal(mcp.NewJSONRPCError(mcp.NewRequestId(id), mcp.INTERNAL_ERROR, err.Error(), nil))
	}
	return body
}

// forwardNotifications writes the server's notifications to the client until the connection ends.
func (c *conn) forwardNotifications() {
	for {
		select {
		case n := <-c.session.notifications:
			// The slot is free as soon as the channel has room again; see NotificationChannel.
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

// encodeAnswer returns the result of f as JSON; nil for nothing. It returns a panic in a handler, or in encoding its result, as
// an error. id is that of the request which f answers, nil for a notification.
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
		// Answers to calls are by far the largest and the most frequent.
		if r, ok := message.Result.(*mcp.CallToolResult); ok && r != nil && id != nil {
			return answerOf(id, r)
		}
		return json.Marshal(message)
	default:
		return json.Marshal(message)
	}
}
