package oauth_test

import (
	"path/filepath"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// TestAReconnectUsesTheNewestSignIn: who has signed in anew in another process, as somebody else perhaps, and reconnects
// here is served by that sign-in, though the former one is still good.
func TestAReconnectUsesTheNewestSignIn(t *testing.T) {
	server := startMCP(t, startAuthServer(t))
	p := testProgram{Dir: filepath.Join(t.TempDir(), "secrets"), URL: server.URL}
	here := startManager(t, p, supervisor.Config{})
	there := startManager(t, p, supervisor.Config{Servers: map[string]supervisor.Spec{
		"protected": {URL: p.URL, Type: messages.HTTP, Disabled: true}, // it signs in, and connects nothing
	}})
	prompt := supervisor.LoginOptions{Prompt: oauth.Prompt{Open: followSignIn}}
	if err := here.Login(t.Context(), "protected", prompt); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, here, "protected", hasPhase(messages.Connected))
	if err := there.Login(t.Context(), "protected", prompt); err != nil {
		t.Fatal(err)
	}
	if n := server.acceptedTokens(); n != 1 {
		t.Fatalf("%d tokens have been used", n)
	}
	if err := here.Reconnect(t.Context(), "protected"); err != nil {
		t.Fatal(err)
	}
	if n := server.acceptedTokens(); n != 2 {
		t.Errorf("%d tokens have been used: the former one goes on", n)
	}
}
