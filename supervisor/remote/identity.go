package remote

import (
	"crypto/x509"
	"encoding/asn1"
	"net"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// uriScheme is the scheme of identities; maxIdentity bounds an identity, in bytes.
	uriScheme   = "mcpvisor"
	maxIdentity = 256
)

var (
	// identityURI matches the identities that are URIs: plain segments only, so that two texts never mean the same
	// identity.
	identityURI = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^mcpvisor://[a-z0-9][a-z0-9.-]*(/[A-Za-z0-9_.-]+)+$`)
	})
	commonName = asn1.ObjectIdentifier{2, 5, 4, 3}
)

// Identity returns the name that a certificate gives its owner: the URI of scheme mcpvisor among its alternative
// names, such as mcpvisor://cluster/agent/a, or the common name of a certificate that has no URI at all. It has at
// most 256 bytes.
//
// A certificate has no identity, and its owner is not admitted, if it has several URIs of that scheme or several
// common names, if its URIs are all of other schemes (its authority names by URI, and did not give this name), or if
// the name could be mistaken for another one: a URI with a port, a query, escapes or dots for a segment, a common
// name with a slash or with characters that do not print.
func Identity(cert *x509.Certificate) (string, error) {
	var ours []string
	for _, u := range cert.URIs {
		if u.Scheme == uriScheme {
			ours = append(ours, u.String())
		}
	}
	switch {
	case len(ours) > 1:
		return "", invalidError("the certificate has more than one URI of scheme mcpvisor", "issue one with a single identity")
	case len(ours) == 1:
		if name := ours[0]; len(name) <= maxIdentity && identityURI().MatchString(name) && !hasDotSegment(name) {
			return name, nil
		}
		return "", invalidError("the certificate's URI of scheme mcpvisor is not of the form mcpvisor://NAME/ROLE/WHO",
			"issue one with letters, digits, '.', '_' and '-' in each part")
	// An authority that names by URI decided against this scheme; its common names are no identities then.
	case len(cert.URIs) > 0:
		return "", invalidError("the certificate has URIs and none of scheme mcpvisor", "issue one with a URI such as mcpvisor://cluster/agent/a")
	}
	// Subject.CommonName is only the last of several common names, so they are counted.
	names := 0
	for _, part := range cert.Subject.Names {
		if part.Type.Equal(commonName) {
			names++
		}
	}
	if name := cert.Subject.CommonName; names <= 1 && isPlainName(name) {
		return name, nil
	}
	return "", invalidError("the certificate has neither a URI of scheme mcpvisor nor one plain common name",
		"issue one with a URI such as mcpvisor://cluster/agent/a")
}

// hasDotSegment reports whether a path has the segment "." or "..", which some readers would resolve.
func hasDotSegment(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// isPlainName reports whether a common name can be an identity. Without a slash it cannot be mistaken for a URI, and
// without a star not for a pattern of Config.Rights.
func isPlainName(name string) bool {
	if name == "" || len(name) > maxIdentity || !utf8.ValidString(name) || strings.TrimSpace(name) != name {
		return false
	}
	for _, r := range name {
		if r == '/' || r == '*' || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// mayListen reports whether the owner of a certificate may claim to listen at an address: its host is one of the
// certificate's DNS names or IP addresses, or the address is configured for the peer.
func mayListen(cert *x509.Certificate, address string, configured []string) bool {
	for _, a := range configured {
		if a == address {
			return true
		}
	}
	// Rights.Addresses are compared as texts; any other address needs a host that the certificate names.
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" || host == "" || len(address) > maxAddress {
		return false
	}
	return cert.VerifyHostname(host) == nil
}
