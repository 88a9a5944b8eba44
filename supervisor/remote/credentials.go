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

// The TLS handshakes of both directions: each connection gets the identity of its certificate.

// peerInfo is the authentication info of an incoming connection, which its stream finds in its context.
type peerInfo struct {
	credentials.TLSInfo
	identity string
	cert     *x509.Certificate
	conn     *meteredConn // counts the bytes of the frame that is being read
}

// The peer only sees a closed connection; the texts are for the log of this side.
var (
	errFull          = errors.New("too many connections")
	errWrongIdentity = errors.New("the address shows the certificate of another identity")
)

// connLimiter bounds the connections of peers, and of clients that have not shown a certificate yet. It is safe for
// concurrent use.
type connLimiter struct {
	handshakes chan struct{} // a slot for each handshake; capacity maxHandshakes

	// mu guards conns and perIdentity. It is taken before meteredConn.mu.
	mu          sync.Mutex
	conns       map[*meteredConn]struct{}
	perIdentity map[string]int
	partial     atomic.Int64 // bytes of unfinished frames, of all connections
}

// newConnLimiter returns a limiter without connections.
func newConnLimiter() *connLimiter {
	return &connLimiter{handshakes: make(chan struct{}, maxHandshakes), conns: map[*meteredConn]struct{}{}, perIdentity: map[string]int{}}
}

// admitConn registers a connection of an identity, or returns errFull.
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

// removeConn forgets a connection; a second call does nothing.
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

// largestHolder returns the connection that holds the most bytes of an unfinished frame, nil if there is no
// connection.
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

// A meteredConn counts the bytes that came since its last complete frame, because grpc collects a frame in memory
// before this package can refuse it.
type meteredConn struct {
	net.Conn
	limiter  *connLimiter
	identity string

	// mu guards partial and closed.
	mu      sync.Mutex
	partial int64 // bytes since the last complete frame
	closed  bool
}

// Read implements net.Conn. If the unfinished frames of all connections exceed maxPartial, it closes the connection
// that holds the most, which need not be this one.
func (c *meteredConn) Read(b []byte) (int, error) {
	// The bytes are counted after they were read: what the kernel buffers is not ours.
	n, err := c.Conn.Read(b)
	if c.addPartial(int64(n)) > maxPartial {
		if largest := c.limiter.largestHolder(); largest != nil {
			_ = largest.Close()
		}
	}
	return n, err
}

// addPartial adds n bytes to the connection's unfinished frame, and returns the sum of all connections; 0 after the
// end.
func (c *meteredConn) addPartial(n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0
	}
	c.partial += n
	return c.limiter.partial.Add(n)
}

// partialBytes returns the bytes of the unfinished frame.
func (c *meteredConn) partialBytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.partial
}

// resetPartial counts the frame as complete. It is not exact: bytes of the next frame that came with it are
// forgotten, which only favours the peer.
func (c *meteredConn) resetPartial() { c.addPartial(-c.partialBytes()) }

// Close implements net.Conn. It gives the connection's place and bytes back first.
func (c *meteredConn) Close() error {
	c.limiter.removeConn(c)
	c.resetPartial()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}

// serverCredentials is TLS that admits only connections whose certificate has an identity, within the bounds of a
// connLimiter.
type serverCredentials struct {
	credentials.TransportCredentials
	limiter *connLimiter
}

// ServerHandshake implements credentials.TransportCredentials. It closes the connection if too many handshakes are
// under way, instead of letting it wait: waiting costs memory, too.
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
	// The certificate is valid by now; it also needs an identity, and room.
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

// clientCredentials is TLS that lets checkPeer judge the certificate of an address before anything is sent there.
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

// identityOf returns the TLS info of a handshake and the identity of its certificate.
func identityOf(auth credentials.AuthInfo) (credentials.TLSInfo, string, error) {
	info, ok := auth.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return info, "", errWrongIdentity
	}
	identity, err := Identity(info.State.PeerCertificates[0])
	return info, identity, err
}

// probeIdentity dials an address and returns the identity that answers there, within probeTime. It sends nothing
// after the handshake.
func probeIdentity(ctx context.Context, address string, cfg *tls.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cfg.NextProtos = []string{"h2"} // a server with HTTP/2 refuses a handshake without it
	conn, err := (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	return Identity(conn.(*tls.Conn).ConnectionState().PeerCertificates[0])
}
