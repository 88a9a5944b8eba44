package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

func TestReach(t *testing.T) {
	for address, want := range map[string]networkZone{
		"8.8.8.8": zonePublic, "2001:4860:4860::8888": zonePublic,
		"10.1.2.3": zonePrivate, "172.16.0.1": zonePrivate, "192.168.1.1": zonePrivate, "fd00::1": zonePrivate, "100.64.0.1": zonePrivate,
		"::ffff:10.0.0.1": zonePrivate,
		"127.0.0.1":       zoneLoopback, "127.9.9.9": zoneLoopback, "::1": zoneLoopback, "::ffff:127.0.0.1": zoneLoopback,
		"169.254.169.254": zoneForbidden, "fe80::1": zoneForbidden, "fe80::1%eth0": zoneForbidden, "0.0.0.0": zoneForbidden, "::": zoneForbidden,
		"224.0.0.1": zoneForbidden, "255.255.255.255": zoneForbidden, "0.1.2.3": zoneForbidden, "64:ff9b::a00:1": zoneForbidden,
		"::ffff:169.254.169.254": zoneForbidden,
	} {
		if got := zoneOfAddr(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %d, want %d", address, got, want)
		}
	}
}

// TestPrivateAddresses: a server on the internet cannot send this program into a private network, a server in one may.
func TestPrivateAddresses(t *testing.T) {
	for _, c := range []struct {
		server, to string
		ok         bool
	}{
		{"8.8.8.8", "8.8.4.4", true},
		{"8.8.8.8", "10.0.0.1", false},
		{"8.8.8.8", "127.0.0.1", false},
		{"10.0.0.1", "10.0.0.2", true},
		{"10.0.0.1", "127.0.0.1", false},
		{"127.0.0.1", "10.0.0.1", true},
		{"localhost", "127.0.0.1", true},
		{"127.0.0.1", "169.254.169.254", false},
		{"169.254.1.1", "169.254.169.254", false},
	} {
		w := webOf(c.server, false)
		if err := w.checkAddr(t.Context(), netip.MustParseAddr(c.to)); (err == nil) != c.ok {
			t.Errorf("server %s to %s: %v", c.server, c.to, err)
		}
	}
}

// TestDialledAddress: the address that is dialled counts, whatever its name; a host of the configuration is exempt; no
// byte arrives where none may.
func TestDialledAddress(t *testing.T) {
	arrived := 0
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived++
		write(w, http.StatusOK, map[string]any{})
	}))
	defer here.Close()
	named := strings.Replace(here.URL, "127.0.0.1", "localhost", 1)
	w := webOf("8.8.8.8", false)
	for _, at := range []string{here.URL, named} {
		_, err := w.fetchMetadata(t.Context(), at, "it", &struct{}{})
		wantClass(t, err, messages.ClassDenied)
	}
	if arrived != 0 {
		t.Errorf("%d requests arrived", arrived)
	}
	w.trustHost(named)
	if found, err := w.fetchMetadata(t.Context(), named, "it", &struct{}{}); !found || err != nil {
		t.Error(found, err)
	}
	w = webOf("127.0.0.1", false)
	if found, err := w.fetchMetadata(t.Context(), here.URL, "it", &struct{}{}); !found || err != nil {
		t.Error(found, err)
	}
}

func TestSchemes(t *testing.T) {
	for raw, ok := range map[string]bool{
		"https://as.example.com": true, "http://as.example.com": false, "http://127.0.0.1:1": true,
		"http://localhost": true, "http://x.localhost": false, "http://[::1]:1/": true, "http://localhost.example.com": false,
		"javascript:alert(1)": false, "file:///etc/passwd": false, "https://": false, "https://user:pw@as.example.com": false,
	} {
		if err := webOf("8.8.8.8", false).checkURL(raw); (err == nil) != ok {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if err := webOf("8.8.8.8", true).checkURL("http://as.example.com"); err != nil {
		t.Error(err)
	}
}

func TestRetryAfter(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "-1": 0, "x": 0, "99999": 10 * time.Minute, "1m": 0,
	} {
		resp := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {v}}}
		if got := unavailableError("it", resp).RetryAfter; got != want {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
}

// webOf is a web for a server at a host.
func webOf(host string, allowHTTP bool) *guardedTransport {
	return newGuardedTransport(&url.URL{Scheme: "https", Host: host}, allowHTTP, nil, nil)
}
