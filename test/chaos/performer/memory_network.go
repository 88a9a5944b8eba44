package performer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// memoryNetwork is the network between a client and a server over HTTP in memory: connections are pipes of package net, which know
// deadlines and no bytes on their way.
type memoryNetwork struct {
	// mu guards listener, which is nil while connections are refused.
	mu       sync.Mutex
	listener *memoryListener
}

// errRefused is the error of a dial that nobody takes.
var errRefused = errors.New("connection refused")

// HTTPClient returns a client whose requests reach this server alone, whatever their address. The group must be in memory and the
// server one over a network. Whoever takes it closes its idle connections at the end.
func (s *Server) HTTPClient() *http.Client {
	network := s.endpoint.(*webEndpoint).memory
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return network.dial(ctx) },
	}}
}

// listen opens the network for connections.
func (n *memoryNetwork) listen() net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listener = &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	return n.listener
}

// dial connects to the server, or is refused.
func (n *memoryNetwork) dial(ctx context.Context) (net.Conn, error) {
	n.mu.Lock()
	l := n.listener
	n.mu.Unlock()
	client, server := net.Pipe()
	select {
	case <-l.closed:
	default:
		select {
		case l.conns <- server:
			return client, nil
		case <-l.closed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: l.Addr(), Err: errRefused}
}

// memoryListener implements net.Listener.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
}
