// Package supervision measures the cost of a call that goes through everything (the facade's resolution of names, the timeout,
// the admission, the status) beside one that goes straight to a session. Both use the same server in this program, which does
// nothing, so that the difference is supervision's own cost.
//
// How it fits: facade.go makes the two ways, section.go measures them in turns for command run, and the tests hold the allocations
// of a call and the stack that a waiting one needs.
//
// Not promised: what a call costs in a program. The server here answers at once and in the same process, which no real one does.
package supervision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// The answers of the server.
const (
	hello = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"nothing","version":"1"}}`
	list  = `{"tools":[{"name":"nothing","inputSchema":{"type":"object"}}]}`
	done  = `{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}]}`
	// Tool is the qualified name of the only tool.
	Tool = "mcp__s__nothing"
)

// serveEmpty is a server that answers at once with one allocation: the answer, which the receiver owns.
func serveEmpty(ctx context.Context, peer inprocess.Peer) error {
	peer.(inprocess.DirectPeer).Answer(answerMessage)
	for {
		msg, err := peer.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the end of the connection is how it ends
		}
		var m struct {
			ID     int64
			Method string
		}
		if json.Unmarshal(msg, &m) == nil && m.ID != 0 {
			// Write fails only when the connection ends.
			_ = peer.Write(ctx, answerMessage(transports.Message{ID: m.ID, Method: m.Method}))
		}
	}
}

// answerMessage encodes the answer to a message without a JSON encoder, which would allocate.
func answerMessage(m transports.Message) []byte {
	result := done
	switch m.Method {
	case "initialize":
		result = hello
	case "tools/list":
		result = list
	}
	b := make([]byte, 0, len(result)+64)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, m.ID, 10)
	b = append(append(b, `,"result":`...), result...)
	return append(b, '}')
}

// args are the arguments of each call.
var args = json.RawMessage(`{"path":"/etc/hosts","lines":[1,20]}`)

// DirectSession is a session without a manager.
type DirectSession struct {
	session *session.Session
	gate    *session.Gate
}

// OpenSession connects a session to the empty server.
func OpenSession(ctx context.Context) (*DirectSession, error) {
	s, err := session.Dial(ctx, inprocess.New(serveEmpty), session.Config{Era: messages.EraLegacy})
	if err != nil {
		return nil, err
	}
	if _, err := s.Handshake(ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return &DirectSession{s, s.OpenGate()}, nil
}

// Call makes one call through the session's gate.
func (b *DirectSession) Call(ctx context.Context) error {
	_, err := b.gate.Call(ctx, "nothing", args)
	return err
}

// EnterGate enters the session's gate and leaves it.
func (b *DirectSession) EnterGate() error {
	return b.gate.Do(func(*session.Session) error { return nil })
}

// Close ends the session.
func (b *DirectSession) Close(ctx context.Context) error { return b.session.Close(ctx) }

// Facade is a manager with one server.
type Facade struct{ Manager *supervisor.Manager }

// OpenFacade starts a manager with the empty server.
func OpenFacade(ctx context.Context, cfg supervisor.Config) (*Facade, error) {
	cfg.InProcess = map[string]func(context.Context, inprocess.Peer) error{"s": serveEmpty}
	cfg.Servers = map[string]supervisor.Spec{"s": {Type: messages.SDK, Era: messages.EraLegacy}}
	m, err := supervisor.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	w := &Facade{m}
	if err := m.Settled(ctx); err != nil || !m.Server("s").IsConnected() {
		return nil, errors.Join(fmt.Errorf("the server is not connected: %w", err), w.Close())
	}
	return w, nil
}

// Call makes one call by the qualified name.
func (w *Facade) Call(ctx context.Context) error {
	_, err := w.Manager.CallTool(ctx, Tool, args)
	return err
}

// Close closes the manager.
func (w *Facade) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return w.Manager.Close(ctx)
}
