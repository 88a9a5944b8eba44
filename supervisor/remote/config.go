package remote

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	"google.golang.org/grpc/keepalive"

	"github.com/mcpvisor/mcpvisor/messages"
)

// DefaultMaxMessage is the largest command or reply, in bytes.
const DefaultMaxMessage = 4 << 20

// frameSlack is what the transport accepts beyond MaxMessage, so that a message that is somewhat too large is answered
// rather than cutting the connection.
const frameSlack = 28 << 20

// Config says where to listen, who may come in, and what they may ask.
type Config struct {
	// Host and Port to listen on; 127.0.0.1 and a free port if zero. AdvertisedHost ("host:port") is how others reach
	// this machine, if that differs: its host must be a name or an address of the certificate.
	Host           string
	Port           int
	AdvertisedHost string
	// Certificate is shown to peers, both as server and as client; CA signs theirs. Both are required. Who a peer is its
	// certificate says: see Identity.
	Certificate tls.Certificate
	CA          *x509.CertPool
	// Rights are what peers may ask of a served manager, by identity. A key is an identity, the beginning of identities with
	// "/*" behind it, or Anybody; the most exact key counts alone. A peer that no key means may ask nothing. Serve requires
	// at least one; Join has no use for them.
	Rights map[string]Rights
	// Templates are the servers of this machine that peers may add, by name; none if empty.
	Templates map[string]Template
	// MaxMessage bounds one command or reply in bytes; DefaultMaxMessage if 0. Beyond it by 28 MiB the connection is cut.
	MaxMessage int

	compiledTemplates map[string]*compiledTemplate
	// keepaliveParams is how dead connections are found: silence and keepaliveTimeout if it is zero. The library takes no less than 10 s of
	// silence on the side that has dialled.
	keepaliveParams keepalive.ClientParameters
}

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

// servedConfig is the configuration of a manager's side.
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

func (c Config) serverTLS() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{c.Certificate}, ClientCAs: c.CA,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}
}

func (c Config) clientTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.Certificate}, RootCAs: c.CA, MinVersion: tls.VersionTLS13}
}

func (c Config) listenAddress() string { return net.JoinHostPort(c.Host, fmt.Sprint(c.Port)) }

func invalidError(text, fix string) error {
	return &messages.Error{Op: "remote", Class: messages.ClassInvalid, Text: text, Fix: fix}
}
