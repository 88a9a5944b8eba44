package supervisor

import (
	"net/http"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// httpClients send the requests of a manager's remote servers. They are the manager's own, so that Close can release their
// idle connections. Servers without a TLS configuration share one; those with one share a client per configuration and
// origin, because a certificate of ours is for the servers it was configured for, and a pool must not lend a connection
// that was made with it. It is safe for concurrent use.
type httpClients struct {
	shared *http.Client

	mu         sync.Mutex
	tlsClients map[clientKey]ownClient
}

type clientKey struct {
	tls    messages.TLS
	origin string
}

type ownClient struct {
	*http.Client
	content string // of the files that it was made from
}

// maxOwnClients bounds what servers that are gone leave behind: a forgotten client is made again when it is needed.
const maxOwnClients = 256

func newClients() *httpClients {
	return &httpClients{shared: transports.NewClient(), tlsClients: map[clientKey]ownClient{}}
}

// clientFor is the client for one attempt of a server. It reads the files of a TLS configuration, and makes a new client when
// they are not what they were; the connections of the old one end as they become idle.
func (c *httpClients) clientFor(t *messages.TLS, origin string) (*http.Client, error) {
	if t == nil || *t == (messages.TLS{}) {
		return c.shared, nil
	}
	cfg, content, err := transports.LoadTLS(*t)
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
	if known {
		c.dropClient(key)
	}
	for old := range c.tlsClients {
		if len(c.tlsClients) < maxOwnClients {
			break
		}
		c.dropClient(old)
	}
	made := transports.NewTLSClient(cfg)
	c.tlsClients[key] = ownClient{made, content}
	return made, nil
}

func (c *httpClients) dropClient(key clientKey) {
	c.tlsClients[key].CloseIdleConnections()
	delete(c.tlsClients, key)
}

// close releases what is idle. Connections that are in use are their servers' to close, before.
func (c *httpClients) close() {
	c.shared.CloseIdleConnections()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.tlsClients {
		c.dropClient(key)
	}
}
