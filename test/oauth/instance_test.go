//go:build unix

package oauth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// TestLoginOfOneCaller: a sign-in by the name of an instance is that caller's alone, whether something runs or not.
func TestLoginOfOneCaller(t *testing.T) {
	as := startAuthServer(t)
	server := startMCP(t, as)
	p := newCLIUser(t, server.URL)
	config := fmt.Sprintf(`{"mcpServers": {"protected": {"type": "http", "url": %q, "share": "principal"},
		"shared": {"type": "http", "url": %q}}}`, server.URL, server.URL)
	if err := os.WriteFile(filepath.Join(p.project, "c.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	signIn := func(name string) {
		t.Helper()
		_ = os.Remove(p.page)
		r := p.startCommand("login", name)
		if err := followSignIn(t.Context(), p.openedPage()); err != nil {
			t.Fatal(err)
		}
		if code := r.awaitExit(); code != 0 || !strings.Contains(r.out.String(), name+": signed in") {
			t.Fatalf("login %s ended with %d: %s%s", name, code, r.out.String(), r.err.String())
		}
	}
	stateOf := func(name string, code int) supervisor.AuthState {
		t.Helper()
		var all []supervisor.AuthStatus
		if err := json.Unmarshal([]byte(p.runCommand(code, "auth", "status", name, "--json")), &all); err != nil || len(all) != 1 || all[0].Server != name {
			t.Fatalf("auth status %s: %v, %+v", name, err, all)
		}
		return all[0].State
	}
	signIn("protected@anna")
	if got := stateOf("protected@anna", 0); got != supervisor.AuthSignedIn {
		t.Errorf("anna is %s", got)
	}
	for _, name := range []string{"protected", "protected@ben"} {
		if got := stateOf(name, 0); got == supervisor.AuthSignedIn {
			t.Errorf("%s is signed in as well", name)
		}
	}
	for _, name := range []string{"shared@anna", "protected@", "protected@a b", "nobody@anna"} {
		p.runCommand(2, "login", name)
	}
	// A manager with the same store lets anna in, and no other caller.
	files, err := auth.OpenFiles(auth.Options{Dir: filepath.Join(p.home, "state", "mcpvisor", "secrets"),
		KeyFile: filepath.Join(p.home, "config", "mcpvisor", "secrets.key")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := supervisor.Start(t.Context(), supervisor.Config{AuthStore: files,
		Servers: map[string]supervisor.Spec{"protected": {Type: messages.HTTP, URL: server.URL, Share: messages.SharePrincipal}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(t.Context()) }()
	for caller, want := range map[string]messages.Phase{"anna": messages.Connected, "ben": messages.NeedsAuth} {
		// The call makes the instance; which tool it names does not count.
		_, _ = m.CallServerTool(supervisor.WithCaller(t.Context(), caller), "protected", "nothing", nil)
		name := messages.InstanceName("protected", caller)
		if err := m.Settled(t.Context(), name); err != nil && !errors.Is(err, supervisor.ErrNotConnected) {
			t.Fatal(err)
		}
		if st, err := m.ServerStatus(name); err != nil || st.Status != want {
			t.Errorf("the instance of %s is %s, %v", caller, st.Status, err)
		}
	}
	// Beside a running up, which has no instance of ben yet.
	up := p.startCommand("up", "--json")
	p.awaitPhase(up, "needs-auth")
	signIn("protected@ben")
	if got := stateOf("protected@ben", 0); got != supervisor.AuthSignedIn {
		t.Errorf("ben is %s", got)
	}
	if out := p.runCommand(0, "logout", "protected@anna"); !strings.Contains(out, "protected@anna: signed out") {
		t.Errorf("logout says %s", out)
	}
	if anna, ben := stateOf("protected@anna", 0), stateOf("protected@ben", 0); anna == supervisor.AuthSignedIn || ben != supervisor.AuthSignedIn {
		t.Errorf("after anna's logout anna is %s and ben %s", anna, ben)
	}
}
