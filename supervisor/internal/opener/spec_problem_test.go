package opener

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
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
