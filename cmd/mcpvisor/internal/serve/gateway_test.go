package serve

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/test/certs"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// reports collects what is reported.
type reports struct{ all []string }

func (r *reports) add(err error) { r.all = append(r.all, err.Error()) }

func (r *reports) has(text string) bool { return strings.Contains(strings.Join(r.all, "\n"), text) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// File systems keep times coarsely; another time is what a writer a moment later would leave.
	at := time.Now().Add(time.Duration(len(text)) * time.Millisecond)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// A certificate that was renewed on disk counts without a restart; while one of its two files is still the old one, the one before
// counts, and the reason is said.
func TestCertificatesAreRenewedOnDisk(t *testing.T) {
	authority := certs.New(t)
	_, oldCert, oldKey := authority.Issue(t, "old")
	_, newCert, newKey := authority.Issue(t, "new", "agents.example")
	dir := t.TempDir()
	g := &config.Gateway{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	take := func(from, to string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, string(b))
	}
	said := &reports{}
	if _, err := readCertificate(g, said.add); err == nil || !strings.Contains(err.Error(), "cannot be used") {
		t.Fatalf("files that do not exist: %v", err)
	}
	take(oldCert, g.CertFile)
	take(oldKey, g.KeyFile)
	c, err := readCertificate(g, said.add)
	if err != nil {
		t.Fatal(err)
	}
	serves := func() string {
		c.mu.Lock()
		c.looked = time.Time{}
		c.mu.Unlock()
		got, err := c.tlsConfig().GetCertificate(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Leaf.Subject.CommonName
	}
	if got := serves(); got != "old" || !c.isFor("localhost") || c.isFor("agents.example") || len(said.all) != 0 {
		t.Errorf("it serves %s, and reports %v", got, said.all)
	}
	take(newKey, g.KeyFile)
	if got := serves(); got != "old" || !said.has("private key does not match public key") {
		t.Errorf("half renewed it serves %s, and reports %v", got, said.all)
	}
	take(newCert, g.CertFile)
	if got := serves(); got != "new" || !c.isFor("agents.example") || c.isFor("localhost") || c.firstName() != "agents.example" {
		t.Errorf("renewed it serves %s", got)
	}
	// One that ends while it is served is said to have ended, once, and so is the next one. Before, only one that had ended at the start was.
	if said.has("ended") {
		t.Errorf("of one that counts it says %v", said.all)
	}
	late := time.Now().Add(1000 * time.Hour)
	for i := range 3 {
		c.certificateAt(late.Add(time.Duration(i) * time.Minute))
	}
	take(oldKey, g.KeyFile)
	take(oldCert, g.CertFile)
	c.certificateAt(late.Add(time.Hour))
	if got := strings.Count(strings.Join(said.all, "\n"), " ended "); got != 2 {
		t.Errorf("of two that have ended it says so %d times: %v", got, said.all)
	}
}

// An agent that is refused because the certificate has ended gets in once it is renewed on disk: no restart, and no connection that was made
// meanwhile has to end.
func TestAnExpiredCertificateIsRenewedOnDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		authority := certs.New(t)
		g := &config.Gateway{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
		renew := func(who string) {
			t.Helper()
			_, cert, key := authority.Issue(t, who)
			for from, to := range map[string]string{cert: g.CertFile, key: g.KeyFile} {
				text, err := os.ReadFile(from)
				if err != nil {
					t.Fatal(err)
				}
				write(t, to, string(text))
			}
		}
		renew("first")
		said := &reports{}
		c, err := readCertificate(g, said.add)
		if err != nil {
			t.Fatal(err)
		}
		// shake makes a connection, and returns it and the error of the agent.
		shake := func() (*tls.Conn, error) {
			here, there := net.Pipe()
			server := tls.Server(there, c.tlsConfig())
			go func() {
				if server.Handshake() != nil {
					_ = there.Close()
					return
				}
				_, _ = io.Copy(server, server) // it ends with the connection
			}()
			client := tls.Client(here, &tls.Config{RootCAs: authority.Pool, ServerName: "localhost"})
			t.Cleanup(func() { _ = here.Close() })
			_ = here.SetDeadline(time.Now().Add(time.Minute)) // a pipe has no buffer: who refuses while the other writes would wait for ever
			err := client.Handshake()
			if err != nil {
				_ = here.Close()
			}
			_ = here.SetDeadline(time.Time{})
			return client, err
		}
		early, err := shake()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if _, err := shake(); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("when it has ended: %v", err)
		}
		if !said.has("ended") || !said.has("agents refuse it until it is renewed there") {
			t.Errorf("it is said: %v", said.all)
		}
		authority = certs.New(t) // it has ended, too
		renew("second")
		time.Sleep(lookPeriod)
		if _, err := shake(); err != nil {
			t.Errorf("after the renewal: %v", err)
		}
		echo := make([]byte, 2)
		if _, err := early.Write([]byte("hi")); err != nil {
			t.Errorf("a connection of before: %v", err)
		} else if _, err := io.ReadFull(early, echo); err != nil || string(echo) != "hi" {
			t.Errorf("a connection of before: %q, %v", echo, err)
		}
	})
}

// A token follows its file: a new text is in force, the old one is out, a file that cannot be read takes its token along after a
// moment, and one that others may read is no secret. Other tokens are not touched.
func TestTokensFollowTheirFiles(t *testing.T) {
	dir := t.TempDir()
	ann, bob := filepath.Join(dir, "ann"), filepath.Join(dir, "bob")
	write(t, ann, "token-of-ann-number-1\n")
	write(t, bob, "token-of-bob-number-1\n")
	synctest.Test(t, func(t *testing.T) {
		said := &reports{}
		g := &config.Gateway{Principals: map[string]config.Principal{"ann": {MaxSessions: 3}},
			Tokens: map[string]config.Token{"a": {Principal: "ann", View: "docs", File: ann}, "b": {Principal: "bob", File: bob}}}
		tokens, err := newTokenReader(t.Context(), g, "", serve.Principal{}, said.add)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		signalled, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			tokens.followFiles(ctx, signalled)
		}()
		principalOf := func(token string) string {
			r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			p, err := tokens.known.Authenticate(r)
			if err != nil {
				return "nobody"
			}
			if p.Name == "ann" && (p.View != "docs" || p.MaxSessions != 3) {
				t.Errorf("ann is %+v", p)
			}
			return p.Name
		}
		expect := func(when, token, want string) {
			t.Helper()
			if got := principalOf(token); got != want {
				t.Errorf("%s: %s is %s, not %s", when, token, got, want)
			}
		}
		expect("at first", "token-of-ann-number-1", "ann")
		write(t, ann, "token-of-ann-number-2x\n")
		time.Sleep(2 * tokensPeriod)
		expect("rotated", "token-of-ann-number-1", "nobody")
		expect("rotated", "token-of-ann-number-2x", "ann")
		expect("rotated", "token-of-bob-number-1", "bob")
		if err := os.Remove(ann); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tokensPeriod + tokensPeriod/2)
		expect("while its file is written", "token-of-ann-number-2x", "ann")
		time.Sleep(goneAfter + 2*tokensPeriod)
		expect("gone", "token-of-ann-number-2x", "nobody")
		if !said.has(`the token "a" lets nobody in`) || !said.has("does not exist") {
			t.Errorf("reported: %v", said.all)
		}
		write(t, ann, "token-of-ann-number-3xx\n")
		if err := os.Chmod(bob, 0o644); err != nil {
			t.Fatal(err)
		}
		time.Sleep(goneAfter + 2*tokensPeriod)
		expect("back", "token-of-ann-number-3xx", "ann")
		expect("open to others", "token-of-bob-number-1", "nobody")
		// Of a text that two tokens have it is not known whose it is.
		if err := os.Chmod(bob, 0o600); err != nil {
			t.Fatal(err)
		}
		write(t, bob, "token-of-ann-number-3xx")
		time.Sleep(2 * tokensPeriod)
		expect("doubled", "token-of-ann-number-3xx", "nobody")
		// A signal reads everything at once.
		write(t, bob, "token-of-bob-number-4444")
		signalled <- struct{}{}
		synctest.Wait()
		expect("after a signal", "token-of-bob-number-4444", "bob")
		// Without the key nobody gets in.
		tokens.replaceGateway(ctx, &config.Gateway{})
		expect("without a key", "token-of-bob-number-4444", "nobody")
		for _, text := range said.all {
			if strings.Contains(text, "number") {
				t.Errorf("a token is repeated: %s", text)
			}
		}
		stop()
		<-ended
	})
}

// Tokens stand in files, variables, and the output of commands.
func TestPlacesOfTokens(t *testing.T) {
	t.Setenv("TOKEN_OF_A_TEST", " from-the-environment\n")
	for want, from := range map[string]config.Token{
		"from-the-environment": {FromEnv: "TOKEN_OF_A_TEST"}, "from-a-command": {Command: []string{"echo", "from-a-command"}},
	} {
		if got, err := readSource(t.Context(), from); err != nil || got != want {
			t.Errorf("%+v: %q, %v", from, got, err)
		}
	}
	for _, from := range []config.Token{{FromEnv: "NO_SUCH_TOKEN"}, {Command: []string{"no-such-command-anywhere"}}, {File: "/no/such/file"}, {File: t.TempDir()}} {
		if got, err := readSource(t.Context(), from); err == nil {
			t.Errorf("%+v: %q", from, got)
		}
	}
	if _, err := newTokenReader(t.Context(), &config.Gateway{Tokens: map[string]config.Token{"a": {FromEnv: "NO_SUCH_TOKEN"}}}, "", serve.Principal{},
		(&reports{}).add); err == nil {
		t.Error("an endpoint without a single token begins")
	}
}
