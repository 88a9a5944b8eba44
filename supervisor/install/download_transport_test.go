package install

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// redirectTransport performs the requests of a test; hosts that it does not know answer 404.
type redirectTransport map[string]string

func (a redirectTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	to, ok := a[q.URL.Host]
	r := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: q}
	if ok {
		r.StatusCode = http.StatusFound
		r.Header.Set("Location", to)
	}
	return r, nil
}

func registryAt(t *testing.T, base string, rt http.RoundTripper) *Registry {
	t.Helper()
	t.Setenv("HTTP_PROXY", "")
	t.Setenv("HTTPS_PROXY", "")
	r, err := New(Options{Base: base, Cache: t.TempDir(), Bundles: t.TempDir(), HTTP: rt})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fetched(t *testing.T, r *Registry, address string) error {
	t.Helper()
	_, err := r.fetchBundle(t.Context(), &plan.Package{Identifier: address, FileSHA256: strings.Repeat("0", 64)})
	return err
}

// TestBundlesOfARegistryElsewhereStayOutside: neither their address nor a redirect leads to this machine or its network.
func TestBundlesOfARegistryElsewhereStayOutside(t *testing.T) {
	requests := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	t.Cleanup(s.Close)
	rt := redirectTransport{"far.example": "https://127.0.0.1:1/x", "meta.example": "https://[::ffff:169.254.169.254]/x", "near.example": "https://nas.local/x"}
	for address, text := range map[string]string{
		s.URL + "/x": "127.0.0.1", "http" + strings.TrimPrefix(s.URL, "https") + "/x": "no https URL", "https://localhost:1/x": "a loopback address",
		"https://10.1.2.3/x": "a private address", "https://[fd00::1]/x": "a private address", "https://169.254.169.254/x": "a link-local address",
		"https://router/x": "a private address", "https://far.example/x": "leads to 127.0.0.1, a loopback address",
		"https://meta.example/x": "a link-local address", "https://near.example/x": "a private address", "https://other.example/x": "(404)",
	} {
		err := fetched(t, registryAt(t, "https://registry.example", rt), address)
		var e *messages.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", address, err)
		}
	}
	// The usual transport, by itself: a name that leads here gets no connection.
	r := registryAt(t, "https://registry.example", nil)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.files.(*downloadTransport).direct.RoundTrip(&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}})
	var no refusalError
	if !errors.As(err, &no) || !strings.Contains(string(no), "a loopback address") || requests != 0 {
		t.Errorf("%v, asked %d times", err, requests)
	}
}

// TestBundlesOfARegistryHereMayBeHere: a company's registry keeps its files beside itself.
func TestBundlesOfARegistryHereMayBeHere(t *testing.T) {
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(s.Close)
	if err := fetched(t, registryAt(t, s.URL, nil), s.URL+"/x"); err == nil || !strings.Contains(err.Error(), "(404)") || requests != 1 {
		t.Errorf("%v, asked %d times", err, requests)
	}
	// A name says where it is when it has answered, and a public address of it counts more.
	r := registryAt(t, "https://registry.example", redirectTransport{})
	o := r.files.(*downloadTransport)
	for _, c := range []struct {
		address string
		near    bool
	}{{"nothing", false}, {"10.0.0.5:443", true}, {"[2606:4700::1111]:443", false}, {"10.0.0.5:443", false}} {
		if o.noteAddress(c.address); o.isRegistryLocal() != c.near {
			t.Errorf("after %s: %v", c.address, o.isRegistryLocal())
		}
	}
}

// TestARegistryIsWatched: the address that answered is the one that counts.
func TestARegistryIsWatched(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"servers":[]}`) }))
	t.Cleanup(s.Close)
	r := registryAt(t, s.URL, nil)
	o := r.files.(*downloadTransport)
	o.specialURL = false
	if _, err := r.Search(t.Context(), Query{}); err != nil || !o.isRegistryLocal() {
		t.Errorf("%v, near: %v", err, o.isRegistryLocal())
	}
}
