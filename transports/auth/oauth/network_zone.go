package oauth

import (
	"net/netip"

	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// networkZone orders addresses by how private they are.
type networkZone int

const (
	zonePublic    networkZone = iota // reachable from everywhere, and addresses of examples
	zoneBenchmark                    // used by proxies that answer names with addresses of their own
	zonePrivate                      // RFC 1918, unique local, carrier-grade
	zoneLoopback                     // this machine
	zoneForbidden                    // link-local (cloud metadata), multicast, unspecified, reserved
)

// zoneOfAddr returns the zone of an address.
func zoneOfAddr(ip netip.Addr) networkZone {
	kind, _ := addresses.Special(ip)
	return zoneOfKind(kind)
}

// zoneOfHost returns the zone of a host as it is written, where a proxy or a browser looks it up and not this process.
func zoneOfHost(host string) networkZone {
	kind, _ := addresses.SpecialHost(host)
	return zoneOfKind(kind)
}

// zoneOfKind maps the kinds of package addresses. An unknown kind is forbidden.
func zoneOfKind(kind string) networkZone {
	switch kind {
	case "", addresses.Documentation:
		return zonePublic
	case addresses.Benchmark:
		return zoneBenchmark
	case addresses.Private, addresses.Shared:
		return zonePrivate
	case addresses.Loopback:
		return zoneLoopback
	}
	return zoneForbidden
}
