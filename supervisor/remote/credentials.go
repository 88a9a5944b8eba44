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
	errFull          = errors.New("too many connections")
	errWrongIdentity = errors.New("the address shows the certificate of another identity")
)

// connLimiter bounds the connections of peers, and of those that are no peers yet.
type connLimiter struct {
	handshakes chan struct{}

	mu          sync.Mutex
	conns       map[*meteredConn]struct{}
	perIdentity map[string]int
	partial     atomic.Int64
}

func newConnLimiter() *connLimiter {
	return &connLimiter{handshakes: make(chan struct{}, maxHandshakes), conns: map[*meteredConn]struct{}{}, perIdentity: map[string]int{}}
}

func (d *connLimiter) admitConn(conn net.Conn, identity string) (*meteredConn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.perIdentity[identity] >= maxConnections || len(d.conns) >= maxAllConnections {
		return nil, errFull
	}
	c := &meteredConn{Conn: conn, limiter: d, identity: identity}
	d.perIdentity[identity]++
	d.conns[c] = struct{}{}
	return c, nil
}

func (d *connLimiter) removeConn(c *meteredConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, open := d.conns[c]; !open {
		return
	}
	delete(d.conns, c)
	if d.perIdentity[c.identity]--; d.perIdentity[c.identity] == 0 {
		delete(d.perIdentity, c.identity)
	}
}

// largestHolder is the connection that holds the most bytes of a frame that has not ended.
func (d *connLimiter) largestHolder() (largest *meteredConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		if largest == nil || c.partialBytes() > largest.partialBytes() {
			largest = c
		}
	}
	return largest
}

// meteredConn counts the bytes that came since the last frame was whole.
type meteredConn struct {
	net.Conn
	limiter  *connLimiter
	identity string

	mu      sync.Mutex
	partial int64
	closed  bool
}

// Read implements net.Conn.
func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.addPartial(int64(n)) > maxPartial {
		if largest := c.limiter.largestHolder(); largest != nil {
			_ = largest.Close()
		}
	}
	return n, err
}

// addPartial adds to what the connection holds, and returns what all hold.
func (c *meteredConn) addPartial(n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0
	}
	c.partial += n
	return c.limiter.partial.Add(n)
}

func (c *meteredConn) partialBytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.partial
}

// resetPartial says that a frame has been read.
func (c *meteredConn) resetPartial() { c.addPartial(-c.partialBytes()) }

// Close implements net.Conn.
func (c *meteredConn) Close() error {
	c.limiter.removeConn(c)
	c.resetPartial()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}

// serverCredentials is TLS, and lets in who has an identity.
type serverCredentials struct {
	credentials.TransportCredentials
	limiter *connLimiter
}

// ServerHandshake implements credentials.TransportCredentials.
func (s serverCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	select {
	case s.limiter.handshakes <- struct{}{}:
		defer func() { <-s.limiter.handshakes }()
	default:
		_ = raw.Close()
		return nil, nil, errFull
	}
	conn, auth, err := s.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	info, identity, err := identityOf(auth)
	if err == nil {
		var metered *meteredConn
		if metered, err = s.limiter.admitConn(conn, identity); err == nil {
			return metered, peerInfo{info, identity, info.State.PeerCertificates[0], metered}, nil
		}
	}
	_ = conn.Close()
	return nil, nil, err
}

// Clone implements credentials.TransportCredentials.
func (s serverCredentials) Clone() credentials.TransportCredentials {
	return serverCredentials{s.TransportCredentials.Clone(), s.limiter}
}

// clientCredentials is TLS, and hands over the certificate that an address shows before anything is sent there.
type clientCredentials struct {
	credentials.TransportCredentials
	checkPeer func(address, identity string, until time.Time) error
}

// ClientHandshake implements credentials.TransportCredentials.
func (c clientCredentials) ClientHandshake(
	ctx context.Context, address string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	conn, auth, err := c.TransportCredentials.ClientHandshake(ctx, address, raw)
	if err != nil {
		return nil, nil, err
	}
	info, identity, err := identityOf(auth)
	if err == nil {
		err = c.checkPeer(address, identity, info.State.PeerCertificates[0].NotAfter)
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, info, nil
}

// Clone implements credentials.TransportCredentials.
func (c clientCredentials) Clone() credentials.TransportCredentials {
	return clientCredentials{c.TransportCredentials.Clone(), c.checkPeer}
}

func identityOf(auth credentials.AuthInfo) (credentials.TLSInfo, string, error) {
	info, ok := auth.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return info, "", errWrongIdentity
	}
	identity, err := Identity(info.State.PeerCertificates[0])
	return info, identity, err
}

// probeIdentity dials an address and says which identity answers there.
func probeIdentity(ctx context.Context, address string, cfg *tls.Config) (string, error) {
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
