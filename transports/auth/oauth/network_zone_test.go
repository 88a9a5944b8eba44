package oauth

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// resolveTo makes every name mean an address, for this test: what the owner of a name can do at any moment.
func resolveTo(t *testing.T, ip netip.Addr) {
	t.Helper()
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response = true
			m.Additionals = nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body: &dnsmessage.AResource{A: ip.As4()}}}
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	was := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = was; _ = server.Close() })
}

// TestNameThatMeansThisMachine: a server on the internet whose owner lets its name mean this machine for a moment gains
// nothing: a look-up proves nothing, and a program on this machine has no certificate for that name.
func TestNameThatMeansThisMachine(t *testing.T) {
	arrived := 0
	program := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived++ }))
	defer program.Close()
	other := httptest.NewTLSServer(http.NotFoundHandler()) // what stands at the server's port here
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer other.Close()
	resolveTo(t, netip.MustParseAddr("127.0.0.1"))
	_, port, _ := net.SplitHostPort(other.Listener.Addr().String())
	a := make1(t, Config{Server: "evil", URL: "https://mcp.evil.example:" + port + "/mcp",
		Store: auth.NewMemory(), Locks: auth.NewLocks("")})
	p := prompt(signInPerson(nil))
	p.Challenge = &messages.Challenge{ResourceMetadata: program.URL + "/api/pull?name=evil"}
	_, err := a.Login(t.Context(), p)
	wantClass(t, err, messages.ClassDenied)
	if arrived != 0 {
		t.Errorf("%d requests arrived", arrived)
	}
}

// TestServerBehindItsOwnAuthority: where the server is follows from a connection that was made as its own are.
func TestServerBehindItsOwnAuthority(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer server.Close()
	resolveTo(t, netip.MustParseAddr("127.0.0.1"))
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	at := &url.URL{Scheme: "https", Host: "example.com:" + port} // a name of httptest's certificate
	own := func() (*tls.Config, error) {
		return server.Client().Transport.(*http.Transport).TLSClientConfig.Clone(), nil
	}
	if near := newGuardedTransport(at, false, nil, own).findServerZone(t.Context()); near != zoneLoopback {
		t.Errorf("with its authority: %d", near)
	}
	if near := newGuardedTransport(at, false, nil, nil).findServerZone(t.Context()); near != zonePublic {
		t.Errorf("without its authority: %d", near)
	}
}

// TestMostPublicCounts: a server over plain http that was on the internet once is there for ever.
func TestMostPublicCounts(t *testing.T) {
	w := newGuardedTransport(&url.URL{Scheme: "http", Host: "mcp.example.com"}, true, nil, nil)
	w.noteServerAddr(netip.MustParseAddr("10.0.0.1"))
	if err := w.checkOwnDial(t.Context(), "", "10.0.0.2:80", nil); err != nil {
		t.Error(err)
	}
	w.noteServerAddr(netip.MustParseAddr("8.8.8.8"))
	w.noteServerAddr(netip.MustParseAddr("127.0.0.1"))
	if near := w.findServerZone(t.Context()); near != zonePublic {
		t.Error(near)
	}
	if w.checkOwnDial(t.Context(), "", "127.0.0.1:80", nil) == nil {
		t.Error("it is dialled on this machine")
	}
}

func TestReachByName(t *testing.T) {
	for host, want := range map[string]networkZone{
		"example.com": zonePublic, "localhost.example.com": zonePublic, "8.8.8.8": zonePublic,
		"localhost": zoneLoopback, "LocalHost.": zoneLoopback, "x.localhost": zoneLoopback, "127.0.0.1": zoneLoopback, "::1": zoneLoopback,
		"10.0.0.1": zonePrivate, "printer.local": zonePrivate, "git.internal": zonePrivate, "x.home.arpa": zonePrivate, "intranet": zonePrivate,
		"169.254.169.254": zoneForbidden,
	} {
		if got := zoneOfHost(host); got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
}

// TestThroughAProxy: this process does not see the address, so that the written host counts.
func TestThroughAProxy(t *testing.T) {
	w := webOf("mcp.example.com", true)
	sent := 0
	w.proxy = func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: "proxy:1"}, nil }
	w.proxied = sender(func(*http.Request) (*http.Response, error) { sent++; return nil, context.Canceled })
	for _, at := range []string{
		"http://x.localhost/", "https://10.0.0.1/", "https://router.local/", "https://intranet/", "https://127.1/",
		"https://0x7f000001/", "https://2130706433/", "https://[::ffff:7f00:1]/",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := w.RoundTrip(req)
		if resp != nil {
			_ = resp.Body.Close()
		}
		if no := refusalError(""); !errors.As(err, &no) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if sent != 0 {
		t.Errorf("%d requests were sent", sent)
	}
}

type sender func(*http.Request) (*http.Response, error)

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }
