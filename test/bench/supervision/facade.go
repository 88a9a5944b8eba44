// Package supervision measures what a call costs that goes through everything (the facade's name resolution, the time that
// its server allows, the admission, the status) beside one that goes straight to a session, on the same server in this
// program, which does nothing: so that what is measured is ours.
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
	"github.com/mcpvisor/mcpvisor/transports/session"
)

const (
	hello = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"nothing","version":"1"}}`
	list  = `{"tools":[{"name":"nothing","inputSchema":{"type":"object"}}]}`
	done  = `{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}]}`
	// Tool is the qualified name of the only tool.
	Tool = "mcp__s__nothing"
)

// serveEmpty is a server that answers at once, and with one allocation: the answer, which belongs to who gets it.
func serveEmpty(ctx context.Context, peer transports.Peer) error {
	peer.(transports.DirectPeer).Answer(answerMessage)
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
			_ = peer.Write(ctx, answerMessage(transports.Message{ID: m.ID, Method: m.Method})) // it fails at the end only
		}
	}
}

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

var args = json.RawMessage(`{"path":"/etc/hosts","lines":[1,20]}`)

// DirectSession is a session of its own.
type DirectSession struct {
	session *session.Session
	gate    *session.Gate
}

// OpenSession connects a session.
func OpenSession(ctx context.Context) (*DirectSession, error) {
	s, err := session.Dial(ctx, transports.NewInProcess(serveEmpty), session.Config{Era: messages.EraLegacy})
	if err != nil {
		return nil, err
	}
	if _, err := s.Handshake(ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return &DirectSession{s, s.OpenGate()}, nil
}

// Call makes one call.
func (b *DirectSession) Call(ctx context.Context) error {
	_, err := b.gate.Call(ctx, "nothing", args)
	return err
}

// EnterGate enters the session's gate and leaves it.
func (b *DirectSession) EnterGate() error {
	return b.gate.Do(func(*session.Session) error { return nil })
}

// Close ends it.
func (b *DirectSession) Close(ctx context.Context) error { return b.session.Close(ctx) }

// Facade is a manager with one server.
type Facade struct{ Manager *supervisor.Manager }

// OpenFacade connects a manager.
func OpenFacade(ctx context.Context, cfg supervisor.Config) (*Facade, error) {
	cfg.InProcess = map[string]func(context.Context, transports.Peer) error{"s": serveEmpty}
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

// Call makes one call.
func (w *Facade) Call(ctx context.Context) error {
	_, err := w.Manager.CallTool(ctx, Tool, args)
	return err
}

// Close ends it.
func (w *Facade) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return w.Manager.Close(ctx)
}
