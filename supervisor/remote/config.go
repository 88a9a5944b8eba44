package remote

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	"google.golang.org/grpc/keepalive"

	"github.com/mcpvisor/mcpvisor/messages"
)

// DefaultMaxMessage is the default of Config.MaxMessage, in bytes.
const DefaultMaxMessage = 4 << 20

// frameSlack is the number of bytes that the transport accepts beyond MaxMessage, so that a message that is somewhat
// too large is answered and does not close the connection.
const frameSlack = 28 << 20

// Config is the configuration of [Serve] and [Join]: where to listen, who may connect, and what they may ask.
type Config struct {
	// Host and Port are the address to listen on; 127.0.0.1 and a free port if zero. AdvertisedHost ("host:port") is
	// the address at which others reach this machine, if it differs: its host must be a name or an address of the
	// certificate.
	Host           string
	Port           int
	AdvertisedHost string
	// Certificate is shown to peers, both as server and as client; CA has signed theirs. Both are required. The
	// identity of a peer is that of its certificate: see [Identity].
	Certificate tls.Certificate
	CA          *x509.CertPool
	// Rights are the rights of peers at a served manager, by identity. A key is an identity, the beginning of
	// identities with "/*" behind it, or [Anybody]; only the most exact key counts. A peer without a matching key has
	// no rights. Serve requires at least one key; Join does not use them.
	Rights map[string]Rights
	// Templates are the servers of this machine that peers may add, by name; none if empty.
	Templates map[string]Template
	// MaxMessage bounds one command or reply in bytes; DefaultMaxMessage if 0. A message that exceeds it by 28 MiB
	// closes the connection.
	MaxMessage int

	// compiledTemplates are made of Templates by servedConfig; nil on the side of Join.
	compiledTemplates map[string]*compiledTemplate
	// keepaliveParams decide when a silent connection counts as dead; keepaliveTime and keepaliveTimeout if zero.
	// Tests shorten them. The library accepts no less than 10 s of silence on the side that has dialled.
	keepaliveParams keepalive.ClientParameters
}

// validatedConfig returns c with its defaults, or the error of a configuration that neither side can use.
func (c Config) validatedConfig() (Config, error) {
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.MaxMessage <= 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.keepaliveParams.Time <= 0 {
		c.keepaliveParams = keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}
	}
	if len(c.Certificate.Certificate) == 0 || c.CA == nil {
		return c, invalidError("a certificate and the authority of the peers are required", "give Config.Certificate and Config.CA")
	}
	return c, nil
}

// servedConfig returns c as Serve needs it, with compiled templates, or the error of rights or templates that cannot
// be used.
func (c Config) servedConfig() (Config, error) {
	c, err := c.validatedConfig()
	if err != nil {
		return c, err
	}
	if len(c.Rights) == 0 {
		return c, invalidError("no peer has rights",
			`give Config.Rights; map[string]remote.Rights{remote.Anybody: remote.Everything()} lets each certificate of the authority do everything`)
	}
	c.compiledTemplates = map[string]*compiledTemplate{}
	for name, t := range c.Templates {
		if c.compiledTemplates[name], err = t.compile(name); err != nil {
			return c, err
		}
	}
	for key, r := range c.Rights {
		if err := r.validate(key, c.Templates); err != nil {
			return c, err
		}
	}
	return c, nil
}

// serverTLS returns the TLS configuration of the listening side: it requires a certificate of the authority.
func (c Config) serverTLS() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{c.Certificate}, ClientCAs: c.CA,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}
}

// clientTLS returns the TLS configuration of the dialling side.
func (c Config) clientTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.Certificate}, RootCAs: c.CA, MinVersion: tls.VersionTLS13}
}

func (c Config) listenAddress() string { return net.JoinHostPort(c.Host, fmt.Sprint(c.Port)) }

// invalidError returns the error of a configuration, a certificate or rights that cannot be used.
func invalidError(text, fix string) error {
	return &messages.Error{Op: "remote", Class: messages.ClassInvalid, Text: text, Fix: fix}
}
