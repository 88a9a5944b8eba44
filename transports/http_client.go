package transports

import (
	"crypto/tls"
	"net/http"
	"sync"
	"time"
)

// sharedClient is used by HTTP and SSE if the configuration names no client. Its idle connections outlive the last
// user's Close by up to 90 s: who must not leave any behind uses a client of its own.
var sharedClient = sync.OnceValue(NewClient)

// NewClient makes a client with the settings that HTTP and SSE need. One is enough for any number of servers: those
// behind one host share its idle connections, and nothing of one server's requests is kept in it, for it has no
// cookies. When the last connection that uses it is closed, CloseIdleConnections releases what is left.
func NewClient() *http.Client { return NewTLSClient(nil) }

// NewTLSClient makes a client like NewClient's that makes its connections safe as cfg says; LoadTLS makes one. cfg is the
// client's from then on. A certificate in it is shown to every server that the client is used for: use one client per
// origin and configuration.
func NewTLSClient(cfg *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     cfg,
		DialContext:         newDialer(DefaultDeadAfter).DialContext,
		TLSHandshakeTimeout: 15 * time.Second,
		ForceAttemptHTTP2:   true,
		HTTP2:               pingConfig(DefaultDeadAfter),
		// 64 callers of one server find their connections again. A connection that is not used goes after 90 s.
		// A thousand callers of one server find their connections again; a connection that is not used goes after 90 s. With fewer, each
		// caller beyond them opens a connection for every call, which over TLS costs many times the call.
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     90 * time.Second,
		// No ResponseHeaderTimeout: a tool may think for as long as its caller waits, and a stream may begin with
		// silence.
		MaxResponseHeaderBytes: 64 << 10,
	}}
}
