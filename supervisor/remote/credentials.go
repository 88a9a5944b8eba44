package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// Connections come in here, each with the identity of its certificate.

// peerInfo is what a stream knows of its connection.
type peerInfo struct {
	credentials.TLSInfo
	identity string
	cert     *x509.Certificate
	conn     *meteredConn
}

var (
	errFull    = errors.New("too many connections")
	errDialled = errors.New("the address shows the certificate of another identity")
)

// doorman bounds the connections of peers, and of those that are no peers yet.
type doorman struct {
	handshakes chan struct{}

	mu      sync.Mutex
	open    map[*meteredConn]struct{}
	by      map[string]int
	partial atomic.Int64
}

func newDoorman() *doorman {
	return &doorman{handshakes: make(chan struct{}, maxHandshakes), open: map[*meteredConn]struct{}{}, by: map[string]int{}}
}

func (d *doorman) admit(conn net.Conn, identity string) (*meteredConn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by[identity] >= maxConnections || len(d.open) >= maxAllConnections {
		return nil, errFull
	}
	c := &meteredConn{Conn: conn, doorman: d, identity: identity}
	d.by[identity]++
	d.open[c] = struct{}{}
	return c, nil
}

func (d *doorman) leave(c *meteredConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, open := d.open[c]; !open {
		return
	}
	delete(d.open, c)
	if d.by[c.identity]--; d.by[c.identity] == 0 {
		delete(d.by, c.identity)
	}
}

// greediest is the connection that holds the most bytes of a frame that has not ended.
func (d *doorman) greediest() (most *meteredConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		if most == nil || c.holds() > most.holds() {
			most = c
		}
	}
	return most
}

// meteredConn counts the bytes that came since the last frame was whole.
type meteredConn struct {
	net.Conn
	doorman  *doorman
	identity string

	mu      sync.Mutex
	partial int64
	closed  bool
}

// Read implements net.Conn.
func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.count(int64(n)) > maxPartial {
		if most := c.doorman.greediest(); most != nil {
			_ = most.Close()
		}
	}
	return n, err
}

// count adds to what the connection holds, and returns what all hold.
func (c *meteredConn) count(n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0
	}
	c.partial += n
	return c.doorman.partial.Add(n)
}

func (c *meteredConn) holds() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.partial
}

// whole says that a frame has been read.
func (c *meteredConn) whole() { c.count(-c.holds()) }

// Close implements net.Conn.
func (c *meteredConn) Close() error {
	c.doorman.leave(c)
	c.whole()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}

// serverCredentials is TLS, and lets in who has an identity.
type serverCredentials struct {
	credentials.TransportCredentials
	doorman *doorman
}

// ServerHandshake implements credentials.TransportCredentials.
func (s serverCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	select {
	case s.doorman.handshakes <- struct{}{}:
		defer func() { <-s.doorman.handshakes }()
	default:
		_ = raw.Close()
		return nil, nil, errFull
	}
	conn, auth, err := s.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	info, identity, err := named(auth)
	if err == nil {
		var metered *meteredConn
		if metered, err = s.doorman.admit(conn, identity); err == nil {
			return metered, peerInfo{info, identity, info.State.PeerCertificates[0], metered}, nil
		}
	}
	_ = conn.Close()
	return nil, nil, err
}

// Clone implements credentials.TransportCredentials.
func (s serverCredentials) Clone() credentials.TransportCredentials {
	return serverCredentials{s.TransportCredentials.Clone(), s.doorman}
}

// clientCredentials is TLS, and hands over the certificate that an address shows before anything is sent there.
type clientCredentials struct {
	credentials.TransportCredentials
	shown func(address, identity string, until time.Time) error
}

// ClientHandshake implements credentials.TransportCredentials.
func (c clientCredentials) ClientHandshake(
	ctx context.Context, address string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	conn, auth, err := c.TransportCredentials.ClientHandshake(ctx, address, raw)
	if err != nil {
		return nil, nil, err
	}
	info, identity, err := named(auth)
	if err == nil {
		err = c.shown(address, identity, info.State.PeerCertificates[0].NotAfter)
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, info, nil
}

// Clone implements credentials.TransportCredentials.
func (c clientCredentials) Clone() credentials.TransportCredentials {
	return clientCredentials{c.TransportCredentials.Clone(), c.shown}
}

func named(auth credentials.AuthInfo) (credentials.TLSInfo, string, error) {
	info, ok := auth.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return info, "", errDialled
	}
	identity, err := Identity(info.State.PeerCertificates[0])
	return info, identity, err
}

// probe dials an address and says which identity answers there.
func probe(ctx context.Context, address string, cfg *tls.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cfg.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	return Identity(conn.(*tls.Conn).ConnectionState().PeerCertificates[0])
}
