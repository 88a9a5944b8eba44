package addresses

import (
	"net/netip"
	"strings"
)

// localNames are the endings of names that have a meaning inside one network only (RFC 6762; RFC 8375; ICANN's resolution on
// .internal of 2024).
var localNames = []string{".local", ".internal", ".home.arpa"}

// SpecialHost judges a host as it is written, without a look-up: a literal address as Special does, localhost and names below it
// (RFC 6761) as Loopback, names without a dot and those of one network as Private. Other names are not special, even if they
// resolve to a special address: the code that dials them must judge that address.
func SpecialHost(host string) (kind string, special bool) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return Special(ip)
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return Loopback, true
	}
	if !strings.Contains(host, ".") {
		return Private, true
	}
	for _, end := range localNames {
		if strings.HasSuffix(host, end) {
			return Private, true
		}
	}
	return "", false
}

// ThisMachine reports whether a host is this machine, whatever a name server or a proxy says: localhost, or a loopback address.
// Names below localhost are not, because a resolver decides what they mean, and requests to them go through a configured proxy.
func ThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
