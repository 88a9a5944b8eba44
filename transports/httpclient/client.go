package httpclient

import (
	"crypto/tls"
	"net/http"
	"time"
)

// New makes a client with the settings that HTTP and SSE need. One is enough for any number of servers: those behind one host
// share its idle connections, and it keeps nothing of one server's requests, because it has no cookies. A program calls
// CloseIdleConnections after it has closed the last connection that uses the client.
func New() *http.Client { return NewTLS(nil) }

// NewTLS makes a client like New's that secures its connections as cfg says; [LoadTLS] makes a cfg, which belongs to the client
// from then on. Every server that the client is used for sees the certificate in it: use one client per origin and configuration.
func NewTLS(cfg *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     cfg,
		DialContext:         newDialer(DefaultDeadAfter).DialContext,
		TLSHandshakeTimeout: 15 * time.Second,
		ForceAttemptHTTP2:   true,
		HTTP2:               pingConfig(DefaultDeadAfter),
		// A thousand callers of one server find their connections again. With fewer, each caller beyond them would open a
		// connection for every call, which over TLS costs many times the call. A connection that is not used is closed after 90
		// s.
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     90 * time.Second,
		// There is no ResponseHeaderTimeout: a tool may take as long as its caller waits, and a stream may begin with silence.
		MaxResponseHeaderBytes: 64 << 10,
	}}
}
