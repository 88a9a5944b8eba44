package supervisor_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// cachingServer is a directory of lists, and a server of accounts that can be switched off: what is offered then was kept.
type cachingServer struct {
	t      *testing.T
	dir    string
	server *accounts
	off    atomic.Bool
	URL    string
}

func newCachingServer(t *testing.T, scope string) *cachingServer {
	s := &cachingServer{t: t, dir: filepath.Join(t.TempDir(), "tools"), server: &accounts{scope: scope}}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.off.Load() {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		s.server.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

func (s *cachingServer) spec() supervisor.Spec {
	return supervisor.Spec{URL: s.URL, Type: messages.HTTP, Era: messages.EraLegacy, Connect: messages.Lazy}
}

func (s *cachingServer) files() []string {
	found, err := filepath.Glob(filepath.Join(s.dir, "list-*.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// keep lets one run list the tools, until a list is kept or, if none is to be, until the run has ended.
func (s *cachingServer) keep(cfg supervisor.Config, kept bool) {
	s.t.Helper()
	s.off.Store(false)
	cfg.CacheDir = s.dir
	before := len(s.files())
	m := startWith(s.t, cfg)
	settled(s.t, m)
	if len(names(m)) != 1 {
		s.t.Fatalf("the server offers %q", names(m))
	}
	if kept {
		eventually(s.t, "a list that is kept", func() bool { return len(s.files()) > before })
	}
	closeAll(s.t, m)
}

// offered returns the tools that another run offers before it reaches the server.
func (s *cachingServer) offered(cfg supervisor.Config) string {
	s.t.Helper()
	s.off.Store(true)
	cfg.CacheDir = s.dir
	m := startWith(s.t, cfg)
	settled(s.t, m)
	got := strings.Join(names(m), " ")
	closeAll(s.t, m)
	return got
}

func with(spec supervisor.Spec) supervisor.Config {
	return supervisor.Config{Servers: map[string]supervisor.Spec{"one": spec}}
}

// TestAListIsKeptForItsReaders: a token that is another one finds nothing of what the first was shown, wherever the value
// comes from.
func TestAListIsKeptForItsReaders(t *testing.T) {
	for name, config := range map[string]func(s *cachingServer, who string) supervisor.Config{
		"header": func(s *cachingServer, who string) supervisor.Config {
			spec := s.spec()
			spec.Headers = map[string]string{"Authorization": "Bearer " + who}
			return with(spec)
		},
		"token": func(s *cachingServer, who string) supervisor.Config {
			spec := s.spec()
			spec.Auth = &supervisor.Auth{Type: messages.AuthBearer, Token: who}
			return with(spec)
		},
		"variable": func(s *cachingServer, who string) supervisor.Config {
			spec := s.spec()
			spec.Auth = &supervisor.Auth{Type: messages.AuthBearer, FromEnv: "SHELF_TOKEN"}
			s.t.Setenv("SHELF_TOKEN", who)
			return with(spec)
		},
		"account": func(s *cachingServer, who string) supervisor.Config {
			cfg := with(s.spec())
			p := &person{}
			p.name.Store(&who)
			cfg.AuthProvider = func(string, supervisor.Spec) (transports.Authorizer, error) { return p, nil }
			return cfg
		},
		"header beside a sign-in": func(s *cachingServer, who string) supervisor.Config { // no account is signed in
			spec := s.spec()
			spec.Headers = map[string]string{"X-Who": who}
			return with(spec)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCachingServer(t, `,"cacheScope":"private"`)
			s.keep(config(s, "ann"), true)
			if got := s.offered(config(s, "bob")); got != "" {
				t.Errorf("bob is shown %q", got)
			}
			if got := s.offered(config(s, "ann")); got != "mcp__one__tool_of_ann" {
				t.Errorf("ann is shown %q", got)
			}
		})
	}
}

// TestAListOfUnknownReaders: who a token file lets in is not known before it is used, so that only a public list is kept.
func TestAListOfUnknownReaders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(who string) {
		if err := os.WriteFile(file, []byte(who), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for scope, want := range map[string]string{
		"": "", `,"cacheScope":"private"`: "", `,"cacheScope":"public"`: "mcp__one__tool_of_ann",
	} {
		s := newCachingServer(t, scope)
		spec := s.spec()
		spec.Auth = &supervisor.Auth{Type: messages.AuthTokenFile, TokenPath: file}
		write("ann")
		s.keep(with(spec), want != "")
		write("bob")
		if got := s.offered(with(spec)); got != want {
			t.Errorf("%s: bob is shown %q", scope, got)
		}
		if want == "" && len(s.files()) > 0 {
			t.Errorf("%s: kept: %q", scope, s.files())
		}
	}
}

// member is a person who signs in and out in this process.
type member struct{ person }

func (m *member) Login(context.Context, oauth.Prompt) (oauth.Status, error) {
	bob := "bob"
	m.name.Store(&bob)
	return oauth.Status{SignedIn: true}, nil
}

func (m *member) Logout(context.Context) (bool, error) {
	nobody := ""
	m.name.Store(&nobody)
	return false, nil
}

func (m *member) Status(context.Context) (oauth.Status, error) {
	return oauth.Status{SignedIn: true}, nil
}

// TestALoginAsAnother: the tools of the account before are offered to the new one neither now, where the server rests, nor
// after the next start.
func TestALoginAsAnother(t *testing.T) {
	s := newCachingServer(t, "")
	ann := "ann"
	who := &member{}
	who.name.Store(&ann)
	cfg := with(s.spec())
	cfg.CacheDir = s.dir
	cfg.AuthProvider = func(string, supervisor.Spec) (transports.Authorizer, error) { return who, nil }
	s.keep(cfg, true)
	m := startWith(t, cfg)
	settled(t, m)
	if got := strings.Join(names(m), " "); got != "mcp__one__tool_of_ann" {
		t.Fatalf("ann is shown %q", got)
	}
	if err := m.Login(t.Context(), "one", supervisor.LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "bob's tools", func() bool { return strings.Join(names(m), " ") == "mcp__one__tool_of_bob" })
	eventually(t, "bob's list alone", func() bool { return len(s.files()) == 1 })
	closeAll(t, m)
	if got := s.offered(cfg); got != "mcp__one__tool_of_bob" {
		t.Errorf("bob is shown %q", got)
	}
	who.name.Store(&ann)
	if got := s.offered(cfg); got != "" {
		t.Errorf("ann is shown %q", got)
	}
}

// TestAKeyOfOthersKeepsNothing: with a key that others can read nothing is offered or kept, which the log says once.
func TestAKeyOfOthersKeepsNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: Windows keeps who may read a file elsewhere than in its mode")
	}
	s := newCachingServer(t, "")
	spec := s.spec()
	spec.Headers = map[string]string{"Authorization": "Bearer ann"}
	s.keep(with(spec), true)
	if err := os.Chmod(filepath.Join(s.dir, "key"), 0o640); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	cfg := with(spec)
	cfg.Logger = zap.New(core)
	if got := s.offered(cfg); got != "" {
		t.Errorf("it is shown %q", got)
	}
	n := 0
	for _, e := range logs.All() {
		if strings.Contains(e.Message, "not kept") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it is said %d times", n)
	}
}
