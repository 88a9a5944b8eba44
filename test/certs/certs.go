// Package certs makes certificates for tests: an authority of their own, and what it signs for this machine.
//
//	authority := certs.New(t)
//	cert, certFile, keyFile := authority.Issue(t, "server")   // for 127.0.0.1 and localhost
//
// How it fits: tests of TLS (httpclient, opener, test/e2e) serve with what [Authority.Issue] wrote, and give their client the
// authority's file or pool. Each authority is new and known to no system. The files go with the test's temporary folder.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates that only a client with its CAFile or Pool trusts.
type Authority struct {
	// CAFile is its own certificate, in PEM form.
	CAFile string
	// Pool holds nothing else.
	Pool *x509.CertPool

	cert *x509.Certificate
	key  crypto.Signer
	dir  string
}

// New makes an authority for one test.
func New(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{dir: tb.TempDir(), Pool: x509.NewCertPool()}
	a.key = newKey(tb)
	tmpl := certTemplate("authority of " + tb.Name())
	tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, a.key.Public(), a.key)
	requireNoError(tb, err)
	a.cert, err = x509.ParseCertificate(der)
	requireNoError(tb, err)
	a.Pool.AddCert(a.cert)
	a.CAFile = a.writePEM(tb, "ca.pem", "CERTIFICATE", der)
	return a
}

// Issue makes a certificate for 127.0.0.1 and localhost, or for names instead, and writes it and its key to files.
func (a *Authority) Issue(tb testing.TB, who string, names ...string) (cert tls.Certificate, certFile, keyFile string) {
	tb.Helper()
	key, tmpl := newKey(tb), certTemplate(who)
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if tmpl.DNSNames = names; len(names) == 0 {
		tmpl.DNSNames, tmpl.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	requireNoError(tb, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	requireNoError(tb, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		a.writePEM(tb, who+".pem", "CERTIFICATE", der), a.writePEM(tb, who+"-key.pem", "PRIVATE KEY", raw)
}

// writePEM writes a certificate or a key into the folder of the test, readable by its owner only, and returns the path.
func (a *Authority) writePEM(tb testing.TB, name, kind string, der []byte) string {
	tb.Helper()
	path := filepath.Join(a.dir, name)
	requireNoError(tb, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// certTemplate returns a certificate that is valid from an hour ago, for clocks that differ, until an hour from now.
func certTemplate(who string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // never fails
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: who},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
}

// newKey makes a key on the curve P-256, because making one for RSA takes far longer.
func newKey(tb testing.TB) crypto.Signer {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	requireNoError(tb, err)
	return key
}

// requireNoError fails the test for an error, since no test can go on without its certificate.
func requireNoError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
