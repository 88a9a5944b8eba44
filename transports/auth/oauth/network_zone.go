package oauth

import (
	"net/netip"

	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// networkZone orders addresses by how far away they may be used from.
type networkZone int

const (
	zonePublic    networkZone = iota // everybody's, and those of examples
	zoneBenchmark                    // of proxies that answer for names by addresses of their own
	zonePrivate                      // RFC 1918, unique local, carrier-grade
	zoneLoopback                     // this machine
	zoneForbidden                    // link-local (cloud metadata), multicast, unspecified, reserved
)

func zoneOfAddr(ip netip.Addr) networkZone {
	kind, _ := addresses.Special(ip)
	return zoneOfKind(kind)
}

// zoneOfHost judges a host by its written form, where a proxy or a browser looks it up and not this process.
func zoneOfHost(host string) networkZone {
	kind, _ := addresses.SpecialHost(host)
	return zoneOfKind(kind)
}

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
