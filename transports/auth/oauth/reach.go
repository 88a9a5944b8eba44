package oauth

import (
	"net/netip"
	"strings"

	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// reachOf orders addresses by how far away they may be used from.
type reachOf int

const (
	public    reachOf = iota // everybody's, and those of examples
	benchmark                // of proxies that answer for names by addresses of their own
	private                  // RFC 1918, unique local, carrier-grade
	loopback                 // this machine
	never                    // link-local (cloud metadata), multicast, unspecified, reserved
)

func reach(ip netip.Addr) reachOf {
	switch kind, _ := addresses.Special(ip); kind {
	case "", addresses.Documentation:
		return public
	case addresses.Benchmark:
		return benchmark
	case addresses.Private, addresses.Shared:
		return private
	case addresses.Loopback:
		return loopback
	}
	return never
}

// localNames end the names that mean something inside one network only (RFC 6762; RFC 8375; ICANN's resolution on
// .internal of 2024).
var localNames = []string{".local", ".internal", ".home.arpa"}

// reachByName judges a host by what is written, where nobody here looks it up: a proxy does, or a browser.
func reachByName(host string) reachOf {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		return reach(ip)
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return loopback
	}
	for _, end := range localNames {
		if strings.HasSuffix(host, end) {
			return private
		}
	}
	if !strings.Contains(host, ".") {
		return private
	}
	return public
}

// isLoopbackName reports hosts that mean this machine without asking anybody. Names below localhost are left out: what
// they mean is up to a resolver, or to a proxy.
func isLoopbackName(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
