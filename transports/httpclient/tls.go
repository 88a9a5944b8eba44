package httpclient

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
)

// maxPEM is the largest file of certificates or keys that is read, in bytes: the authorities of a whole system have 250 KB.
const maxPEM = 4 << 20

// LoadTLS reads the files that t names, for [NewTLS]. content identifies what was read by a hash: it changes when a file was
// renewed, so that the caller can make a new client then. The error is a [*transports.Error] of class ClassConfig that names the
// file, and never shows its content.
func LoadTLS(t messages.TLS) (cfg *tls.Config, content string, err error) {
	cfg = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	sum := sha256.New()
	read := func(what, path string) ([]byte, error) {
		b, err := readPEM(path)
		if err != nil {
			return nil, tlsError(what, path, "cannot be read: "+plainFileError(err), err)
		}
		// The length keeps two files from having the hash of another split of the same bytes.
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", what, len(b), b)
		return b, nil
	}
	_, _ = fmt.Fprintf(sum, "%q\n", t.ServerName)
	if t.CAFile != "" {
		b, err := read("tls.caFile", t.CAFile)
		if err != nil {
			return nil, "", err
			// The configured authorities count in addition to the system's, because a server behind a public certificate must go
			// on working.
		}
		if cfg.RootCAs, err = x509.SystemCertPool(); err != nil {
			cfg.RootCAs = x509.NewCertPool()
		}
		if !cfg.RootCAs.AppendCertsFromPEM(b) {
			return nil, "", tlsError("tls.caFile", t.CAFile, "holds no certificate in PEM form", nil)
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		// A certificate without its key proves nothing, so that one of the two is a mistake.
		if t.CertFile == "" || t.KeyFile == "" {
			return nil, "", &transports.Error{Class: messages.ClassConfig, Text: "tls.certFile and tls.keyFile are one without the other",
				Fix: "give both"}
		}
		cert, err := read("tls.certFile", t.CertFile)
		if err != nil {
			return nil, "", err
		}
		key, err := read("tls.keyFile", t.KeyFile)
		if err != nil {
			return nil, "", err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, "", tlsError("tls.certFile", t.CertFile, "and the key "+messages.Line(t.KeyFile, 300)+
				" cannot be used: "+errs.ShortSentence(err.Error()), err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, hex.EncodeToString(sum.Sum(nil)), nil
}

// tlsError is the error for one file that cannot be used.
func tlsError(what, path, text string, err error) *transports.Error {
	return &transports.Error{Class: messages.ClassConfig, Text: what + " " + messages.Line(path, 300) + " " + text, Err: err,
		Fix: "check the file, and reconnect"}
}

// readPEM reads a whole file. It refuses anything but a regular file, because reading a pipe or a device could block for ever.
func readPEM(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is no regular file")
	// A file of this size was named by mistake.
	case info.Size() > maxPEM:
		return nil, fmt.Errorf("it is larger than %d MiB", maxPEM>>20)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxPEM))
}

// plainFileError returns the reason without the path, which the caller names.
func plainFileError(err error) string {
	if p, ok := err.(*os.PathError); ok { //nolint:errorlint // as os returns it
		err = p.Err
	}
	return errs.ShortSentence(err.Error())
}
