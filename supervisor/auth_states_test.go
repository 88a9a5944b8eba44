package supervisor_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// AuthStatus says of each remote server, before any request, what its requests will carry: what the configuration has, or nothing as long as
// the server has not asked for a sign-in. A server of this machine has no credentials.
func TestWhatAuthStatusSaysBeforeAnyRequest(t *testing.T) {
	remote := func(s supervisor.Spec) supervisor.Spec {
		s.URL, s.Connect = "https://a.invalid/mcp", messages.Lazy
		return s
	}
	want := map[string]supervisor.AuthStatus{
		"plain":   {Kind: messages.AuthOAuth, State: supervisor.AuthNotUsed},
		"none":    {Kind: messages.AuthNone, State: supervisor.AuthNotUsed},
		"headers": {Kind: messages.AuthNone, State: supervisor.AuthConfigured, Where: "the configured headers"},
		"both":    {Kind: messages.AuthNone, State: supervisor.AuthConfigured, Where: "the configured headers"},
		"bearer":  {Kind: messages.AuthBearer, State: supervisor.AuthConfigured, Where: "the configured value"},
	}
	m := startWith(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"plain":   remote(supervisor.Spec{}),
		"none":    remote(supervisor.Spec{Auth: &supervisor.Auth{Type: messages.AuthNone}}),
		"headers": remote(supervisor.Spec{Headers: map[string]string{"Authorization": "Bearer x"}}),
		"both":    remote(supervisor.Spec{Auth: &supervisor.Auth{Type: messages.AuthNone}, Headers: map[string]string{"X-Key": "x"}}),
		"bearer":  remote(supervisor.Spec{Auth: &supervisor.Auth{Type: messages.AuthBearer, Token: "x"}}),
		"local":   {Command: "x", Connect: messages.Lazy},
	}})
	all, err := m.AuthStatus(t.Context())
	if err != nil || len(all) != len(want) {
		t.Fatalf("%d servers, %v", len(all), err)
	}
	for _, got := range all {
		w := want[got.Server]
		if got.Kind != w.Kind || got.State != w.State || w.Where != "" && got.Where != w.Where || got.NeedsAuth || got.Problem != "" {
			t.Errorf("%s: %+v", got.Server, got)
		}
	}
}
