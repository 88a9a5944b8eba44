package opener

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/certs"
	"github.com/mcpvisor/mcpvisor/transports"
)

// A certificate of ours is shown on the connections that it was configured for, and on no others.
func TestClientsAreSharedPerConfigurationAndOrigin(t *testing.T) {
	a := certs.New(t)
	_, aliceCert, aliceKey := a.Issue(t, "alice")
	_, bobCert, bobKey := a.Issue(t, "bob")
	alice := messages.TLS{CAFile: a.CAFile, CertFile: aliceCert, KeyFile: aliceKey}
	bob := messages.TLS{CAFile: a.CAFile, CertFile: bobCert, KeyFile: bobKey}
	c := newClients()
	defer c.close()
	clientFor := func(tls *messages.TLS, origin string) *http.Client {
		t.Helper()
		client, err := c.clientFor(tls, origin)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	const here, there = "https://here.example", "https://there.example"
	first, second := alice, alice // equal, not the same
	mine := clientFor(&first, here)
	if clientFor(&second, here) != mine {
		t.Error("one configuration and origin have two clients")
	}
	for what, other := range map[string]*http.Client{
		"without tls": clientFor(nil, here), "empty tls": clientFor(&messages.TLS{}, here), "another certificate": clientFor(&bob, here),
		"another origin": clientFor(&alice, there), "another name": clientFor(&messages.TLS{CAFile: a.CAFile, CertFile: aliceCert,
			KeyFile: aliceKey, ServerName: "inner"}, here),
	} {
		if other == mine {
			t.Errorf("%s shares the client of alice", what)
		}
	}
	if clientFor(nil, here) != clientFor(nil, there) || clientFor(&messages.TLS{}, here) != clientFor(nil, here) {
		t.Error("servers without tls do not share one client")
	}
	a.Issue(t, "alice") // over the same files
	if clientFor(&alice, here) == mine {
		t.Error("a renewed certificate has the client of the old one")
	}
	if _, err := c.clientFor(&messages.TLS{CAFile: "nowhere.pem"}, here); err == nil {
		t.Error("a missing file gives a client")
	} else if e := (*transports.Error)(nil); !errors.As(err, &e) || e.Class != messages.ClassConfig {
		t.Errorf("a missing file: %v", err)
	}
}

func TestClientsOfServersThatAreGoneAreForgotten(t *testing.T) {
	a := certs.New(t)
	c := newClients()
	for i := range 2 * maxOwnClients {
		if _, err := c.clientFor(&messages.TLS{CAFile: a.CAFile}, fmt.Sprintf("https://%d.example", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.tlsClients); n > maxOwnClients {
		t.Errorf("%d clients are kept, want at most %d", n, maxOwnClients)
	}
	c.close()
	if n := len(c.tlsClients); n != 0 {
		t.Errorf("%d clients are left after close", n)
	}
}
