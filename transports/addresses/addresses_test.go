package addresses_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// TestSpecial holds the registries of IANA, at the edges of their ranges.
func TestSpecial(t *testing.T) {
	for address, want := range map[string]string{
		"8.8.8.8": "", "1.1.1.1": "", "192.0.0.9": "", "192.0.1.0": "", "172.32.0.0": "", "100.128.0.0": "", "198.20.0.0": "",
		"223.255.255.255": "", "192.31.196.1": "", "192.175.48.1": "",
		"0.0.0.0": addresses.Unspecified, "0.1.2.3": addresses.Reserved, "10.1.2.3": addresses.Private,
		"172.16.0.1": addresses.Private, "172.31.255.255": addresses.Private, "192.168.1.1": addresses.Private,
		"100.64.0.1": addresses.Shared, "100.127.255.255": addresses.Shared, "127.0.0.1": addresses.Loopback,
		"127.255.255.255": addresses.Loopback, "169.254.169.254": addresses.LinkLocal, "192.0.0.1": addresses.Reserved,
		"192.0.0.170": addresses.Reserved, "192.0.2.1": addresses.Documentation, "198.51.100.7": addresses.Documentation,
		"203.0.113.9": addresses.Documentation, "192.88.99.1": addresses.Reserved, "198.18.0.1": addresses.Benchmark,
		"198.19.255.255": addresses.Benchmark, "224.0.0.1": addresses.Multicast, "239.255.255.255": addresses.Multicast,
		"240.0.0.1": addresses.Reserved, "255.255.255.255": addresses.Reserved,

		"2001:4860:4860::8888": "", "2606:4700::1111": "", "2620:4f:8000::1": "", "2001:200::1": "", "2001:20::1": "",
		"::": addresses.Unspecified, "::1": addresses.Loopback, "::1%lo": addresses.Loopback,
		"::127.0.0.1": addresses.Reserved, "::8.8.8.8": addresses.Reserved,
		"::ffff:127.0.0.1": addresses.Loopback, "::ffff:8.8.8.8": "", "::ffff:169.254.169.254": addresses.LinkLocal,
		"64:ff9b::7f00:1": addresses.Translated, "64:ff9b::a00:1": addresses.Translated, "64:ff9b::808:808": "",
		"64:ff9b:1::1": addresses.Translated, "64:ff9b:1:ffff::808:808": addresses.Translated,
		"64:ff9b:2::1": addresses.Reserved, "100::1": addresses.Reserved, "100:0:0:1::1": addresses.Reserved,
		"2001::1": addresses.Translated, "2001:0:7f00:1::": addresses.Translated, "2001:2::1": addresses.Benchmark,
		"2001:10::1": addresses.Reserved, "2001:1ff::1": addresses.Reserved, "2001:db8::1": addresses.Documentation,
		"2002:7f00:1::": addresses.Translated, "2002:c0a8:101::1": addresses.Translated, "2002:808:808::1": "",
		"3fff::1": addresses.Documentation, "5f00::1": addresses.Reserved, "4000::1": addresses.Reserved,
		"fc00::1": addresses.Private, "fd12:3456::1": addresses.Private, "fe80::1": addresses.LinkLocal,
		"fe80::1%eth0": addresses.LinkLocal, "fec0::1": addresses.Private, "ff02::1": addresses.Multicast,
	} {
		if kind, special := addresses.Special(netip.MustParseAddr(address)); kind != want || special != (want != "") {
			t.Errorf("%s: %q %v, want %q", address, kind, special, want)
		}
	}
	if _, special := addresses.Special(netip.Addr{}); !special {
		t.Error("no address at all is a usual one")
	}
}

// FuzzSpecial holds that an IPv4 address is the same in all forms that reach it.
func FuzzSpecial(f *testing.F) {
	f.Add(byte(127), byte(0), byte(0), byte(1))
	f.Add(byte(8), byte(8), byte(8), byte(8))
	f.Fuzz(func(t *testing.T, a, b, c, d byte) {
		v4 := netip.AddrFrom4([4]byte{a, b, c, d})
		kind, special := addresses.Special(v4)
		if mapped, _ := addresses.Special(netip.AddrFrom16(v4.As16())); mapped != kind {
			t.Errorf("%s is %q mapped, and %q", v4, mapped, kind)
		}
		for _, form := range []string{"64:ff9b::%02x%02x:%02x%02x", "2002:%02x%02x:%02x%02x::1"} {
			ip := netip.MustParseAddr(fmt.Sprintf(form, a, b, c, d))
			if _, as := addresses.Special(ip); as != special {
				t.Errorf("%s: %v, and %s: %v", ip, as, v4, special)
			}
		}
	})
}

func ExampleSpecial() {
	for _, address := range []string{"9.9.9.9", "10.0.0.1", "64:ff9b::a00:1"} {
		kind, special := addresses.Special(netip.MustParseAddr(address))
		fmt.Printf("%s %v %q\n", address, special, kind)
	}
	// Output:
	// 9.9.9.9 false ""
	// 10.0.0.1 true "private"
	// 64:ff9b::a00:1 true "translated"
}
