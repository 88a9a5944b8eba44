package opener

import (
	"net/http"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
)

// httpClients holds the HTTP clients of a manager's remote servers. They belong to the manager, so that Close can release their
// idle connections. Servers without a TLS configuration share one. The others share a client per configuration and origin,
// because a client certificate is for the servers that it was configured for, and a connection pool must not lend a connection
// that was made with it to another server. It is safe for concurrent use.
type httpClients struct {
	shared *http.Client

	// mu guards tlsClients; it is never held while files are read or a connection is made.
	mu         sync.Mutex
	tlsClients map[clientKey]ownClient
}

// clientKey names the servers that may share a pool of connections.
type clientKey struct {
	tls    messages.TLS
	origin string
}

// ownClient is a client with a TLS configuration of its own.
type ownClient struct {
	*http.Client
	content string // of the certificate and key files, to notice that they were renewed
}

// maxOwnClients bounds the clients of servers that are gone. Above it some client is dropped and made again when it is needed.
const maxOwnClients = 256

// newClients makes the shared client, and no other before a spec needs one.
func newClients() *httpClients {
	return &httpClients{shared: httpclient.New(), tlsClients: map[clientKey]ownClient{}}
}

// clientFor returns the client for one attempt of a server. It reads the files of a TLS configuration, and makes a new client if
// they have changed; the connections of the old one end as they become idle. The error says which file cannot be used.
func (c *httpClients) clientFor(t *messages.TLS, origin string) (*http.Client, error) {
	if t == nil || *t == (messages.TLS{}) {
		return c.shared, nil
	}
	// The content of the files is the only reliable sign of a renewed certificate: times may go back.
	cfg, content, err := httpclient.LoadTLS(*t)
	if err != nil {
		return nil, err
	}
	key := clientKey{*t, origin}
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.tlsClients[key]
	if known && was.content == content {
		return was.Client, nil
	}
	// A renewed certificate: connections under the old one serve their sessions to the end, but take no new ones.
	if known {
		c.dropClient(key)
	}
	// Maps have no order, so any client may go: it costs one handshake if it is needed again.
	for old := range c.tlsClients {
		if len(c.tlsClients) < maxOwnClients {
			break
		}
		c.dropClient(old)
	}
	made := httpclient.NewTLS(cfg)
	c.tlsClients[key] = ownClient{made, content}
	return made, nil
}

// dropClient forgets a client. Requests that use it end normally: only idle connections are closed. The caller holds mu.
func (c *httpClients) dropClient(key clientKey) {
	c.tlsClients[key].CloseIdleConnections()
	delete(c.tlsClients, key)
}

// close releases idle connections. Those in use belong to sessions, which have ended before shutDown calls this.
func (c *httpClients) close() {
	c.shared.CloseIdleConnections()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.tlsClients {
		c.dropClient(key)
	}
}
