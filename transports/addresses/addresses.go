// Package addresses tells addresses that mean one machine or one network from those that mean the same host everywhere. Callers
// keep hosts that a stranger names away from routers, intranets and programs on this machine by it.
//
// The list follows IANA's registries of special-purpose addresses (RFC 6890; for IPv4 and IPv6 as of 2025) and the address ranges
// that were withdrawn since and that systems still route: site-local (RFC 3879) and IPv4-compatible (RFC 4291, 2.5.5.1) ones.
//
// # How it fits
//
// Package transports/internal/origin asks it whether credentials may go over plain http, auth/oauth orders network zones by it, and
// supervisor/config and supervisor/install check addresses of configurations and registries. The package holds no state, does no
// I/O and is safe for concurrent use.
//
// Public for the configuration and the command: what it exports may change without notice.
//
// # Guarantees
//
// An answer follows from the address alone: nothing is resolved, and the same address has the same answer on every machine. The
// invalid zero address is special, so that a caller that ignores an error refuses rather than allows.
//
// # Not promised
//
// A name that resolves to an address inside is not recognised here: a caller that follows names checks the address at the moment of
// the connection.
package addresses

import "net/netip"

// The kinds of special addresses. Errors show these words to people.
const (
	Loopback      = "loopback"             // this machine
	Private       = "private"              // RFC 1918, unique local, site-local
	Shared        = "carrier-grade"        // RFC 6598, used by VPNs as well
	LinkLocal     = "link-local"           // this network's neighbours, and the metadata services of clouds
	Benchmark     = "benchmarking"         // RFC 2544; also used by proxies that answer names with addresses of their own
	Documentation = "documentation"        // never routed on the internet
	Multicast     = "multicast"            // many hosts
	Unspecified   = "unspecified"          // connecting to it reaches this machine on most systems
	Translated    = "translated"           // an IPv6 form of an IPv4 address that is special itself
	Reserved      = "reserved by the IETF" // no server can have such an address
)

// addressRange is one row of the list.
type addressRange struct {
	prefix netip.Prefix
	kind   string // empty: not special, although a larger prefix is
}

// specialRanges is searched in order: the first prefix that contains an address decides.
var specialRanges = []addressRange{
	newRange("0.0.0.0/32", Unspecified), newRange("0.0.0.0/8", Reserved),
	newRange("10.0.0.0/8", Private), newRange("172.16.0.0/12", Private), newRange("192.168.0.0/16", Private),
	newRange("100.64.0.0/10", Shared), newRange("127.0.0.0/8", Loopback), newRange("169.254.0.0/16", LinkLocal),
	newRange("192.0.0.9/32", ""), newRange("192.0.0.10/32", ""), // anycast: PCP, TURN
	newRange("192.0.0.0/24", Reserved), newRange("192.88.99.0/24", Reserved),
	newRange("192.0.2.0/24", Documentation), newRange("198.51.100.0/24", Documentation), newRange("203.0.113.0/24", Documentation),
	newRange("198.18.0.0/15", Benchmark), newRange("224.0.0.0/4", Multicast), newRange("240.0.0.0/4", Reserved),

	newRange("::/128", Unspecified), newRange("::1/128", Loopback),
	newRange("64:ff9b:1::/48", Translated), // RFC 8215: a network's own translation, in a form that only that network can read
	newRange("2001::/32", Translated),      // Teredo: the address of a host behind a NAT
	newRange("2001:1::1/128", ""), newRange("2001:1::2/128", ""), newRange("2001:1::3/128", ""), newRange("2001:3::/32", ""),
	newRange("2001:4:112::/48", ""), newRange("2001:20::/28", ""), newRange("2001:30::/28", ""),
	newRange("2001:2::/48", Benchmark), newRange("2001::/23", Reserved),
	newRange("2001:db8::/32", Documentation), newRange("3fff::/20", Documentation),
	newRange("2000::/3", ""), // all other addresses of hosts
	newRange("fc00::/7", Private), newRange("fec0::/10", Private), newRange("fe80::/10", LinkLocal), newRange("ff00::/8", Multicast),
	newRange("::/0", Reserved),
}

// newRange makes a row. It panics for a prefix that cannot be read, at the start of every program, so that a test finds it.
func newRange(prefix, kind string) addressRange {
	return addressRange{netip.MustParsePrefix(prefix), kind}
}

// The forms of IPv6 that carry an IPv4 address to which the packets go.
var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052: the last 4 bytes
	sixToV4 = netip.MustParsePrefix("2002::/16")    // RFC 3056: bytes 2 to 5
)

// Special reports whether an address is special-purpose, and of which kind. An IPv4-mapped address is judged as the IPv4 address;
// one that a translator or a tunnel turns into an IPv4 address is special (Translated) if that address is. Zones do not count.
// The zero Addr is special, so that an error that was ignored refuses rather than allows.
func Special(ip netip.Addr) (kind string, special bool) {
	if !ip.IsValid() {
		return Reserved, true
	}
	ip = ip.Unmap().WithZone("")
	b := ip.As16()
	switch {
	case nat64.Contains(ip):
		return translatedKind(netip.AddrFrom4([4]byte(b[12:16])))
	case sixToV4.Contains(ip):
		return translatedKind(netip.AddrFrom4([4]byte(b[2:6])))
	}
	for _, e := range specialRanges {
		if e.prefix.Contains(ip) {
			return e.kind, e.kind != ""
		}
	}
	return "", false // an IPv4 address outside all ranges
}

// translatedKind judges an IPv6 address by the IPv4 address inside it.
func translatedKind(ip netip.Addr) (kind string, special bool) {
	if _, special := Special(ip); special {
		return Translated, true
	}
	return "", false
}
