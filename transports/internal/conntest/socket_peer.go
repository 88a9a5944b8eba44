package conntest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// SocketPeer is the suite's peer behind a WebSocket, built on another library than the transport.
type SocketPeer struct {
	Server *httptest.Server
	script transporttest.Script
	ctx    context.Context
	// upgrader says how the handshake is answered.
	upgrader websocket.Upgrader
}

// NewSocketPeer starts a peer that ends with the test.
func NewSocketPeer(t *testing.T) *SocketPeer {
	p := &SocketPeer{upgrader: websocket.Upgrader{Subprotocols: []string{"mcp"}}}
	ctx, cancel := context.WithCancel(context.Background())
	p.ctx = ctx
	var serving sync.WaitGroup
	p.Server = SilenceErrorLog(httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		p.serve(w, r)
	})))
	p.Server.Start()
	t.Cleanup(func() {
		cancel()
		p.Server.Close() // hijacked connections are not its own any more
		serving.Wait()
	})
	return p
}

func (p *SocketPeer) serve(w http.ResponseWriter, r *http.Request) {
	conn, err := p.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if tcp, ok := conn.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(64 << 10) // so that a peer that does not read is noticed soon
	}
	port := &socketPort{conn: conn}
	_ = p.script.Serve(ctx, port, func() ([]byte, error) {
		_, msg, err := conn.ReadMessage()
		return msg, err
	})
}

// socketPort is the peer's end of a connection.
type socketPort struct {
	mu   sync.Mutex
	conn *websocket.Conn
}

func (o *socketPort) send(kind int, msg []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.conn.WriteMessage(kind, msg)
}

func (o *socketPort) Write(msg []byte) error { return o.send(websocket.TextMessage, msg) }

func (o *socketPort) Push(msg []byte) error { return o.send(websocket.TextMessage, msg) }

func (o *socketPort) Noise(line []byte) error { return o.send(websocket.TextMessage, line) }

func (o *socketPort) Die() { _ = o.conn.Close() }
