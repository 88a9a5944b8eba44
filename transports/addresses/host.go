package addresses

import (
	"net/netip"
	"strings"
)

// localNames end the names that mean something inside one network only (RFC 6762; RFC 8375; ICANN's resolution on
// .internal of 2024).
var localNames = []string{".local", ".internal", ".home.arpa"}

// SpecialHost judges a host by what is written, without a look-up: a literal address as Special does, localhost and names below
// it (RFC 6761) as Loopback, names without a dot and those of one network as Private. Other names are not special, whatever
// they resolve to: that is known when they are dialled.
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

// ThisMachine reports whether a host is this machine whatever a name server or a proxy says: localhost, or a literal address of it.
// Names below localhost are not: what they mean is up to a resolver, and requests to them go through a configured proxy.
func ThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
