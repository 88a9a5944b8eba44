package addresses_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

func TestWritten(t *testing.T) {
	for host, want := range map[string]string{
		"example.com": "", "Example.com.": "", "8.8.8.8": "", "2606:4700::1111": "", "localhost.example.com": "",
		"localhost": addresses.Loopback, "LocalHost.": addresses.Loopback, "a.localhost": addresses.Loopback,
		"127.0.0.1": addresses.Loopback, "[::1]": addresses.Loopback, "::ffff:10.0.0.1": addresses.Private,
		"router": addresses.Private, "": addresses.Private, "nas.local": addresses.Private, "a.b.internal": addresses.Private,
		"a.home.arpa.": addresses.Private, "169.254.169.254": addresses.LinkLocal, "fe80::1%eth0": addresses.LinkLocal,
	} {
		if kind, special := addresses.SpecialHost(host); kind != want || special != (want != "") {
			t.Errorf("%q: %q %v, want %q", host, kind, special, want)
		}
	}
}
