package serve

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// certificate is a certificate with its key. It is read anew when its files have changed, so that a renewal needs no restart.
type certificate struct {
	certFile, keyFile string
	// report is called with each reason why changed files do not count.
	report func(error)

	mu sync.Mutex
	// now counts; stamp is what its files were, and looked when they were last looked at.
	now    *tls.Certificate
	stamp  [2]fileStamp
	looked time.Time
	// reported is the one of which it was reported that it does not count.
	reported *tls.Certificate
}

// fileStamp tells one state of a file from another.
type fileStamp struct {
	modified time.Time
	size     int64
	mode     fs.FileMode
}

func stampOf(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.ModTime(), info.Size(), info.Mode()}
}

// lookPeriod is how long files count as unchanged without a look at them.
const lookPeriod = time.Second

// readCertificate reads the files of a gateway; nil if it has none.
func readCertificate(g *config.Gateway, report func(error)) (*certificate, error) {
	if g.CertFile == "" {
		return nil, nil
	}
	c := &certificate{certFile: g.CertFile, keyFile: g.KeyFile, report: report, looked: time.Now()}
	c.stamp = c.stampFiles()
	var err error
	if c.now, err = c.readFiles(); err != nil {
		return nil, err
	}
	c.reportLifetime(time.Now())
	return c, nil
}

func (c *certificate) stampFiles() [2]fileStamp {
	return [2]fileStamp{stampOf(c.certFile), stampOf(c.keyFile)}
}

// readFiles reads both files. Its error holds nothing of the key.
func (c *certificate) readFiles() (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err == nil && cert.Leaf == nil {
		cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0])
	}
	if err != nil {
		return nil, &messages.Error{Op: "serve", Class: messages.ClassConfig, Err: err, Fix: "look at gateway.tls",
			Text: "the certificate " + messages.Line(c.certFile, 0) + " cannot be used: " + messages.Line(err.Error(), 300)}
	}
	return &cert, nil
}

// lifetimeText says that the certificate has ended, or has not begun; empty if it counts.
func (c *certificate) lifetimeText(at time.Time) string {
	switch leaf := c.now.Leaf; {
	case at.After(leaf.NotAfter):
		return "the certificate " + messages.Line(c.certFile, 0) + " ended " + leaf.NotAfter.Local().Format(time.DateTime) + ": agents refuse it until it is renewed there"
	case at.Before(leaf.NotBefore):
		return "the certificate " + messages.Line(c.certFile, 0) + " counts from " + leaf.NotBefore.Local().Format(time.DateTime) + " on"
	}
	return ""
}

// reportLifetime reports once of each certificate that it has ended, or has not begun. The caller holds mu, or has not shared c yet.
func (c *certificate) reportLifetime(at time.Time) {
	if text := c.lifetimeText(at); text != "" && c.reported != c.now {
		c.reported = c.now
		c.report(errors.New(text))
	}
}

// currentCertificate returns the certificate as its files have it now.
func (c *certificate) currentCertificate() *tls.Certificate { return c.certificateAt(time.Now()) }

// certificateAt does that for a time. Files that cannot be used, because one of the two is still to come, leave the one before. One that has
// ended is served all the same, and said: an agent then knows more than that nobody answers.
func (c *certificate) certificateAt(at time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.Sub(c.looked) >= lookPeriod {
		c.looked = at
		if stamp := c.stampFiles(); stamp != c.stamp {
			c.stamp = stamp
			if next, err := c.readFiles(); err != nil {
				c.report(err)
			} else {
				c.now = next
			}
		}
		c.reportLifetime(at)
	}
	return c.now
}

// tlsConfig returns how connections are secured. HTTP/2 is left out: its streams share a connection, so one agent that reads slowly
// would hold up another behind the same proxy.
func (c *certificate) tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.currentCertificate(), nil }}
}

// isFor reports whether the certificate is one of this host: an agent that trusts it for the host may use that name.
func (c *certificate) isFor(host string) bool {
	return c.currentCertificate().Leaf.VerifyHostname(host) == nil
}

// firstName returns a name of the certificate by which agents can reach the endpoint; empty if it has only patterns.
func (c *certificate) firstName() string {
	leaf := c.currentCertificate().Leaf
	for _, name := range leaf.DNSNames {
		if c.isFor(name) && name[0] != '*' && name != "localhost" {
			return name
		}
	}
	for _, ip := range leaf.IPAddresses {
		return ip.String()
	}
	return ""
}
