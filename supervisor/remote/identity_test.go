package remote

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

func TestIdentityOfACertificate(t *testing.T) {
	for name, c := range map[string]struct {
		uris   []string
		common []string
		want   string
	}{
		"uri":                    {[]string{"mcpvisor://cluster/agent/a"}, []string{"other"}, "mcpvisor://cluster/agent/a"},
		"scheme of any case":     {[]string{"MCPVISOR://cluster/agent/a"}, nil, "mcpvisor://cluster/agent/a"},
		"beside another":         {[]string{"spiffe://x/y", "mcpvisor://cluster/node/1"}, nil, "mcpvisor://cluster/node/1"},
		"two":                    {[]string{"mcpvisor://cluster/agent/a", "mcpvisor://cluster/admin/p"}, nil, ""},
		"the same twice":         {[]string{"mcpvisor://cluster/agent/a", "mcpvisor://cluster/agent/a"}, nil, ""},
		"only another":           {[]string{"spiffe://x/y"}, []string{"agent"}, ""},
		"common name":            {nil, []string{"agent one"}, "agent one"},
		"two common names":       {nil, []string{"a", "b"}, ""},
		"none":                   {nil, nil, ""},
		"common name like a uri": {nil, []string{"mcpvisor://cluster/admin/p"}, ""},
		"common name like all":   {nil, []string{"*"}, ""},
		"control":                {nil, []string{"a\nb"}, ""},
		"bidi":                   {nil, []string{"a\u202eb"}, ""},
		"long":                   {nil, []string{strings.Repeat("a", 300)}, ""},
		"dots":                   {[]string{"mcpvisor://cluster/agent/../admin/p"}, nil, ""},
		"escape":                 {[]string{"mcpvisor://cluster/agent/%2e%2e"}, nil, ""},
		"port":                   {[]string{"mcpvisor://cluster:1/agent/a"}, nil, ""},
		"user":                   {[]string{"mcpvisor://u@cluster/agent/a"}, nil, ""},
		"query":                  {[]string{"mcpvisor://cluster/agent/a?x"}, nil, ""},
		"star":                   {[]string{"mcpvisor://cluster/agent/*"}, nil, ""},
		"no path":                {[]string{"mcpvisor://cluster"}, nil, ""},
		"empty part":             {[]string{"mcpvisor://cluster//a"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cert := &x509.Certificate{}
			for _, u := range c.uris {
				parsed, err := url.Parse(u)
				if err != nil {
					t.Fatal(err)
				}
				cert.URIs = append(cert.URIs, parsed)
			}
			for _, n := range c.common {
				cert.Subject.CommonName = n
				cert.Subject.Names = append(cert.Subject.Names, pkix.AttributeTypeAndValue{Type: commonName, Value: n})
			}
			if got, err := Identity(cert); got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestWhereAPeerMayListen(t *testing.T) {
	cert := &x509.Certificate{DNSNames: []string{"agent.example"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 5)}}
	for address, want := range map[string]bool{
		"agent.example:1": true, "10.0.0.5:7070": true, "10.0.0.6:7070": false, "example:1": false, "agent.example": false,
		":1": false, "": false, "inside:1": true, "inside:2": false,
	} {
		if got := mayListen(cert, address, []string{"inside:1"}); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}

func TestWhoseRightsCount(t *testing.T) {
	c := Config{Rights: map[string]Rights{
		Anybody: {Servers: []string{"any"}}, "mcpvisor://c/agent/*": {Servers: []string{"agents"}},
		"mcpvisor://c/agent/a": {Servers: []string{"a"}}, "mcpvisor://c/*": {Servers: []string{"all of c"}},
	}}
	for identity, want := range map[string]string{"mcpvisor://c/agent/a": "a", "mcpvisor://c/agent/b": "agents",
		"mcpvisor://c/node/1": "all of c", "mcpvisor://d/node/1": "any", "agent": "any"} {
		if r := c.rightsOf(identity); r.Servers[0] != want {
			t.Errorf("%s: %v", identity, r)
		}
	}
	// A refusal names the key that counts: a more exact one, with the missing right alone, would take away all others.
	m, err := supervisor.Start(t.Context(), supervisor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	g := &peerAuthorizer{cfg: c, manager: m}
	for identity, key := range map[string]string{"mcpvisor://c/agent/a": "mcpvisor://c/agent/a", "mcpvisor://c/agent/b": "mcpvisor://c/agent/*",
		"mcpvisor://c/node/1": "mcpvisor://c/*", "mcpvisor://d/node/1": "*"} {
		for _, err := range []error{g.checkCommand(c.rightsOf(identity), peerCommand{identity: identity, message: &messages.AddServer{}}),
			g.hiddenServerError(identity, "x")} {
			if !strings.Contains(err.Error(), fmt.Sprintf("Config.Rights[%q]", key)) {
				t.Errorf("%s: %v", identity, err)
			}
		}
	}
	delete(c.Rights, Anybody)
	if key := c.rightsKeyOf("agent"); key != "agent" {
		t.Errorf("a peer without rights needs the key %q", key)
	}
	if r := c.rightsOf("agent"); r.Servers != nil || r.Commands != nil {
		t.Errorf("a peer without rights has %v", r)
	}
	for key, r := range map[string]Rights{
		"mcpvisor*": {}, "a": {Commands: []string{"NoSuch"}}, "b": {Commands: []string{"Done"}},
		"c": {Commands: []string{"SetServers"}, Servers: []string{"x*"}}, "d": {Templates: []string{"none"}},
	} {
		if r.validate(key, nil) == nil {
			t.Errorf("%q: %v was accepted", key, r)
		}
	}
}
