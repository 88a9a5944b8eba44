package remote

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	"github.com/mcpvisor/mcpvisor/messages"
)

// DefaultMaxMessage is the largest command or reply, in bytes.
const DefaultMaxMessage = 4 << 20

// frameSlack is what the transport accepts beyond MaxMessage, so that a message that is somewhat too large is answered
// rather than cutting the connection.
const frameSlack = 28 << 20

// Config says where to listen, who may come in, and what they may start.
type Config struct {
	// Host and Port to listen on; 127.0.0.1 and a free port if zero. AdvertisedHost ("host:port") is how others reach
	// this machine, if that differs.
	Host           string
	Port           int
	AdvertisedHost string
	// Certificate is shown to peers, both as server and as client; CA signs theirs. Both are required.
	Certificate tls.Certificate
	CA          *x509.CertPool
	// MaxMessage bounds one command or reply in bytes; DefaultMaxMessage if 0. Beyond it by 28 MiB the connection is cut.
	MaxMessage int
	// AllowCommands lists the commands, exactly as a spec writes them, that a stdio server added from afar may run; none
	// if empty. AllowHosts lists the hosts ("example.com" or "example.com:8443") that a remote server's URL may name;
	// nil allows every host.
	AllowCommands []string
	AllowHosts    []string
}

func (c Config) validated() (Config, error) {
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.MaxMessage <= 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if len(c.Certificate.Certificate) == 0 || c.CA == nil {
		return c, invalid("a certificate and the authority of the peers are required", "give Config.Certificate and Config.CA")
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

func (c Config) address() string { return net.JoinHostPort(c.Host, fmt.Sprint(c.Port)) }

func invalid(text, fix string) error {
	return &messages.Error{Op: "remote", Class: messages.ClassInvalid, Text: text, Fix: fix}
}
