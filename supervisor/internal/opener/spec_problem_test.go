package opener

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// A credential without a type would never be sent: a program that forgets the type learns it from its server, and not from a server
// that asks for credentials. An auth without a credential is one of OAuth's.
func TestACredentialNeedsAType(t *testing.T) {
	o := New(Options{})
	defer o.Close()
	for name, a := range map[string]messages.Auth{
		"token": {Token: "secret"}, "key": {APIKey: "secret"}, "variable": {FromEnv: "NAME"}, "file": {TokenPath: "secret"},
		"command": {Command: "secret"},
	} {
		text := o.SpecProblem("s", messages.Spec{URL: "https://example.com/mcp", Auth: &a})
		if !strings.Contains(text, "no type") || !strings.Contains(text, messages.AuthBearer) || strings.Contains(text, "secret") {
			t.Errorf("%s: %q", name, text)
		}
	}
	for name, a := range map[string]*messages.Auth{
		"none": nil, "a client": {ClientID: "id"}, "nothing": {}, "bearer": {Type: messages.AuthBearer, Token: "secret"},
	} {
		if text := o.SpecProblem("s", messages.Spec{URL: "https://example.com/mcp", Auth: a}); text != "" {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// A spec with a command and a url says which one counts by its type; without one neither is taken in silence. The program's own transport may need both.
func TestACommandBesideAURLNeedsAType(t *testing.T) {
	both := messages.Spec{Command: "server", URL: "https://example.com/mcp"}
	typed := both
	typed.Type = messages.HTTP
	plain, hooked := New(Options{}), New(Options{Transport: func(string, messages.Spec) (transports.Transport, error) { return nil, nil }})
	defer plain.Close()
	defer hooked.Close()
	for _, c := range []struct {
		opener *Opener
		spec   messages.Spec
		want   string
	}{{plain, both, "both a command and a url"}, {plain, typed, ""}, {hooked, both, ""}} {
		if text := c.opener.SpecProblem("s", c.spec); c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%+v: %q", c.spec, text)
		}
	}
}
