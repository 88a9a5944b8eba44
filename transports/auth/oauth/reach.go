package oauth

import (
	"net/netip"

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
	kind, _ := addresses.Special(ip)
	return reachOfKind(kind)
}

// reachByName judges a host by its written form, where a proxy or a browser looks it up and not this process.
func reachByName(host string) reachOf {
	kind, _ := addresses.Written(host)
	return reachOfKind(kind)
}

func reachOfKind(kind string) reachOf {
	switch kind {
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
