package e2e_test

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// socketServer is the good server behind a WebSocket. No server for this transport can be had, so it is put together
// from two libraries of which the client uses neither: mcp-go speaks MCP, gorilla speaks WebSocket.
type socketServer struct {
	serve func(context.Context, peer) error

	mu   sync.Mutex
	open map[*websocket.Conn]bool
	wait sync.WaitGroup
}

type peer = interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, msg []byte) error
}

func newSocketServer() *socketServer {
	serve := mcpgo.Serve(web.Server("socket"))
	return &socketServer{open: map[*websocket.Conn]bool{},
		serve: func(ctx context.Context, p peer) error { return serve(ctx, p) }}
}

// ServeHTTP implements http.Handler.
func (s *socketServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{"mcp"}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s.wait.Add(1)
	defer s.wait.Done()
	s.mu.Lock()
	s.open[conn] = true
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background()) // the request's ends with the upgrade
	p := &socketPeer{conn: conn, ctx: ctx, incoming: make(chan []byte)}
	go func() {
		defer cancel()
		p.readMessages()
	}()
	_ = s.serve(ctx, p)
	cancel()
	_ = conn.Close()
	s.mu.Lock()
	delete(s.open, conn)
	s.mu.Unlock()
}

// cutConnections cuts every connection, as a crash would.
func (s *socketServer) cutConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		_ = conn.Close()
	}
}

// socketPeer is one connection, as mcpgo serves it.
type socketPeer struct {
	conn     *websocket.Conn
	ctx      context.Context
	incoming chan []byte
	mu       sync.Mutex
}

func (p *socketPeer) readMessages() {
	for {
		_, msg, err := p.conn.ReadMessage()
		if err != nil {
			return
		}
		select {
		case p.incoming <- msg:
		case <-p.ctx.Done():
			return
		}
	}
}

func (p *socketPeer) Read(context.Context) ([]byte, error) {
	select {
	case msg := <-p.incoming:
		return msg, nil
	case <-p.ctx.Done():
		return nil, io.EOF
	}
}

func (p *socketPeer) Write(_ context.Context, msg []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn.WriteMessage(websocket.TextMessage, msg)
}
