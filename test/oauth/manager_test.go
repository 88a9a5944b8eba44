package oauth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// newManager starts a manager of those servers, with the sign-ins of p.
func (p testProgram) newManager(ctx context.Context, cfg supervisor.Config) (*supervisor.Manager, func(), error) {
	signIns, err := p.sharedConfig()
	if err != nil {
		return nil, nil, err
	}
	cfg.AuthStore, cfg.AuthLocks = signIns.Store, signIns.Locks
	if cfg.Servers == nil {
		cfg.Servers = map[string]supervisor.Spec{"protected": {URL: p.URL, Type: messages.HTTP}}
	}
	m, err := supervisor.Start(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	return m, func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		_ = m.Close(ctx)
	}, nil
}

// runManager is play with a whole manager.
func (p testProgram) runManager() error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	m, end, err := p.newManager(ctx, supervisor.Config{})
	if err != nil {
		return err
	}
	defer end()
	if err := m.ConnectAll(ctx); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	for i := range p.Calls {
		if _, err := m.CallServerTool(ctx, "protected", "echo", struct{}{}); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		time.Sleep(p.Pause)
	}
	return nil
}

func startManager(t *testing.T, p testProgram, cfg supervisor.Config) *supervisor.Manager {
	t.Helper()
	m, end, err := p.newManager(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return m
}

// awaitStatus waits for the status of a server.
func awaitStatus(t *testing.T, m *supervisor.Manager, server string, ok func(supervisor.Status) bool) supervisor.Status {
	t.Helper()
	w := m.Watch(0)
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	for {
		st, err := m.ServerStatus(server)
		if err != nil {
			t.Fatal(err)
		}
		if ok(st) {
			return st
		}
		if _, err := w.Next(ctx); err != nil {
			t.Fatalf("%s is %s (%s): %s", server, st.Status, st.Reason, st.Error)
		}
	}
}

func hasPhase(phase messages.Phase) func(supervisor.Status) bool {
	return func(st supervisor.Status) bool { return st.Status == phase }
}

func authStatusOf(t *testing.T, m *supervisor.Manager, server string) supervisor.AuthStatus {
	t.Helper()
	all, err := m.AuthStatus(t.Context(), server)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// TestManagerSignsIn: a server that wants a sign-in is needs-auth with what it asks for, without a timer; a sign-in in one
// manager connects it there and in every other; a sign-out withdraws it.
func TestManagerSignsIn(t *testing.T) {
	seeds.Shows(t, "004.g.auth", "004.fr5.oauth", "004.fr5.ac-oauth", "004.fr5.ac-stored", "004.nfr3.token-storage", "004.e.auth-flows")
	as := peers.StartAuthServer(t, peers.AuthSettings{})
	server := startMCP(t, as)
	p := testProgram{Dir: filepath.Join(t.TempDir(), "secrets"), URL: server.URL}
	one, two := startManager(t, p, supervisor.Config{}), startManager(t, p, supervisor.Config{})
	for _, m := range []*supervisor.Manager{one, two} {
		st := awaitStatus(t, m, "protected", hasPhase(messages.NeedsAuth))
		if st.NextAttempt != nil || st.Challenge == nil || !strings.Contains(st.Challenge.Scope, "mcp:read") ||
			!strings.Contains(st.Error, "mcpvisor login protected") || len(st.Tools) != 0 {
			t.Errorf("%+v", st)
		}
	}
	if s := authStatusOf(t, one, "protected"); s.State != supervisor.AuthSignedOut || !s.NeedsAuth || s.Kind != "oauth" {
		t.Errorf("%+v", s)
	}
	if _, err := one.CallServerTool(t.Context(), "protected", "echo", struct{}{}); !errors.Is(err, supervisor.ErrNeedsAuth) {
		t.Errorf("a call: %v", err)
	}
	before := server.seen.Load()

	w := one.Watch(0)
	defer w.Close()
	prompt := supervisor.LoginOptions{Prompt: oauth.Prompt{Open: followSignIn}}
	if err := one.Login(t.Context(), "protected", prompt); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, one, "protected", hasPhase(messages.Connected))
	awaitStatus(t, two, "protected", hasPhase(messages.Connected)) // by itself
	if n := as.Counts(t); n.SignedIn != 1 || n.Code.Granted != 1 {
		t.Errorf("the authorization server saw %+v", n)
	}
	for _, m := range []*supervisor.Manager{one, two} {
		if _, err := m.CallServerTool(t.Context(), "protected", "echo", struct{}{}); err != nil {
			t.Error(err)
		}
		s := authStatusOf(t, m, "protected")
		if s.State != supervisor.AuthSignedIn || s.Issuer != as.Issuer || !s.Renewable || s.Expiry.IsZero() ||
			!strings.Contains(s.Where, "encrypted files") || strings.Join(s.Scopes, " ") == "" {
			t.Errorf("%+v", s)
		}
	}
	if server.seen.Load() == before {
		t.Error("nothing was asked of the server")
	}
	if s := textOfStore(t, p.Dir); strings.Contains(s, `"access"`) || strings.Contains(s, as.Issuer) {
		t.Error("the sign-in is stored in the clear")
	}

	// A call that needs another scope is rejected with what it lacks, and the server stays connected.
	_, err := one.CallServerTool(t.Context(), "protected", "write", struct{}{})
	var e *supervisor.Error
	if !errors.As(err, &e) || e.Outcome != messages.OutcomeRejected || e.Challenge == nil || e.Challenge.Scope != "mcp:write" {
		t.Errorf("without the scope: %+v", err)
	}
	if st, _ := one.ServerStatus("protected"); st.Status != messages.Connected {
		t.Errorf("a lacking scope made it %s", st.Status)
	}
	if s := authStatusOf(t, one, "protected"); strings.Join(s.Wanted, " ") != "mcp:write" {
		t.Errorf("%+v", s)
	}
	if err := one.Login(t.Context(), "protected", prompt); err != nil {
		t.Fatal(err)
	}
	if _, err := one.CallServerTool(t.Context(), "protected", "write", struct{}{}); err != nil {
		t.Errorf("after the step-up: %v", err)
	}

	if revoked, err := one.Logout(t.Context(), "protected"); err != nil || !revoked {
		t.Errorf("logout: %v, %v", revoked, err)
	}
	awaitStatus(t, one, "protected", hasPhase(messages.NeedsAuth))
	if s := authStatusOf(t, one, "protected"); s.State != supervisor.AuthSignedOut {
		t.Errorf("%+v", s)
	}
}

// textOfStore is everything in a directory.
func textOfStore(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestTenManagers: ten processes with a manager each, one token that ends while they work, 1,000 calls: one refresh, no
// sign-in, no failed call.
func TestTenManagers(t *testing.T) {
	seeds.Shows(t, "004.fr5.ac-refresh")
	const processes, calls = 10, 100
	as := peers.StartAuthServer(t, peers.AuthSettings{AccessTTL: 8})
	server := startMCP(t, as)
	p := testProgram{Dir: filepath.Join(t.TempDir(), "secrets"), URL: server.URL, Calls: calls, Pause: 100 * time.Millisecond,
		Manager: true}
	cfg, err := p.sharedConfig()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newAuthorizer(t, cfg).Login(t.Context(), oauth.Prompt{Open: followSignIn}); err != nil {
		t.Fatal(err)
	}
	as.SetTokenLifetime(t, 3600) // of the tokens after this one
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			if out, err := p.startProgram(ctx); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	seen := as.Counts(t)
	if seen.Refresh.Granted != 1 || seen.Refresh.Refused != 0 || seen.SignedIn != 1 || seen.Registered != 1 {
		t.Errorf("the authorization server saw %+v", seen)
	}
	if server.seen.Load() < processes*calls || server.acceptedTokens() != 2 {
		t.Errorf("the server saw %d requests with %d tokens", server.seen.Load(), server.acceptedTokens())
	}
	t.Logf("%d requests, %d of them refused, %+v", server.seen.Load(), server.refused.Load(), seen)
}

// signInAged signs in and makes the token look older than its first minute.
func signInAged(t *testing.T, p testProgram) *keyRecorder {
	t.Helper()
	cfg, err := p.sharedConfig()
	if err != nil {
		t.Fatal(err)
	}
	store := &keyRecorder{Store: cfg.Store}
	cfg.Store = store
	if _, err := newAuthorizer(t, cfg).Login(t.Context(), oauth.Prompt{Open: followSignIn}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	ageToken(t, store, now.Add(-100*time.Second), now.Add(500*time.Second))
	return store
}

// TestManagerRefusedForAMinute: a server that answers 401 to everything gets one request, one refresh and one retry, and
// nothing more while it needs credentials.
func TestManagerRefusedForAMinute(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{AccessTTL: 600})
	server := startMCP(t, as)
	server.shut.Store(true)
	p := testProgram{Dir: filepath.Join(t.TempDir(), "secrets"), URL: server.URL}
	signInAged(t, p)
	before := server.seen.Load()
	m := startManager(t, p, supervisor.Config{})
	st := awaitStatus(t, m, "protected", hasPhase(messages.NeedsAuth))
	if st.NextAttempt != nil || st.Retry != "" {
		t.Errorf("a timer runs: %+v", st)
	}
	// Longer than the wait for other credentials takes to look at the store, twice.
	time.Sleep(5 * time.Second)
	for range 20 {
		if _, err := m.CallServerTool(t.Context(), "protected", "echo", struct{}{}); !errors.Is(err, supervisor.ErrNeedsAuth) {
			t.Errorf("a call: %v", err)
		}
	}
	if n := server.seen.Load() - before; n != 2 {
		t.Errorf("%d requests", n)
	}
	if seen := as.Counts(t); seen.Refresh.Granted != 1 || seen.Refresh.Refused != 0 {
		t.Errorf("the authorization server saw %+v", seen)
	}
	server.shut.Store(false)
	if err := m.Login(t.Context(), "protected", supervisor.LoginOptions{Prompt: oauth.Prompt{Open: followSignIn}}); err != nil {
		t.Error(err)
	}
}

// TestTokenEndpointAway: a token endpoint that cannot answer makes a server failed with a retry, not needs-auth, and
// costs no sign-in; when it answers again the server comes back by itself.
func TestTokenEndpointAway(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{AccessTTL: 600})
	server := startMCP(t, as)
	p := testProgram{Dir: filepath.Join(t.TempDir(), "secrets"), URL: server.URL}
	store := signInAged(t, p)
	now := time.Now()
	ageToken(t, store, now.Add(-time.Hour), now.Add(-time.Minute)) // it has ended
	as.Break(t, http.StatusServiceUnavailable)
	m := startManager(t, p, supervisor.Config{})
	st := awaitStatus(t, m, "protected", func(st supervisor.Status) bool {
		return st.Status == messages.Failed && st.NextAttempt != nil || st.Status == messages.NeedsAuth
	})
	if st.Status != messages.Failed || st.Retry != messages.RetryAt {
		t.Errorf("%s %s: %s", st.Status, st.Reason, st.Error)
	}
	if s := authStatusOf(t, m, "protected"); s.State != supervisor.AuthSignedIn {
		t.Errorf("%+v", s)
	}
	as.Break(t, 0)
	awaitStatus(t, m, "protected", hasPhase(messages.Connected))
	if seen := as.Counts(t); seen.SignedIn != 1 || seen.Refresh.Granted != 1 || seen.Refresh.Refused != 0 {
		t.Errorf("the authorization server saw %+v", seen)
	}
}

// TestManagerShowsNoToken: what is known of a sign-in is in no log, event, status, error, history and answer, and the
// token for one server goes to no other.
func TestManagerShowsNoToken(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{AccessTTL: 600})
	server := startMCP(t, as)
	other := &recordingServer{}
	url := other.startServer(t)
	p := testProgram{Dir: filepath.Join(t.TempDir(), "secrets"), URL: server.URL}
	var log lockedBuffer
	logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), &log, zap.DebugLevel))
	store := signInAged(t, p)
	m := startManager(t, p, supervisor.Config{Logger: logger, Servers: map[string]supervisor.Spec{
		"protected": {URL: server.URL, Type: messages.HTTP}, "other": {URL: url, Type: messages.HTTP},
	}})
	w := m.Watch(1 << 14)
	defer w.Close()
	awaitStatus(t, m, "protected", hasPhase(messages.Connected))
	awaitStatus(t, m, "other", hasPhase(messages.NeedsAuth))
	_, _ = m.CallServerTool(t.Context(), "protected", "write", struct{}{})
	server.shut.Store(true)
	_, err := m.CallServerTool(t.Context(), "protected", "echo", struct{}{})
	if err == nil {
		t.Error("it is let in")
	}
	awaitStatus(t, m, "protected", hasPhase(messages.NeedsAuth))
	server.shut.Store(false)
	// A token that is no good has its time once; then the sign-in counts again.
	if err := m.ProvideCredentials(t.Context(), "protected", "canary-of-a-token-that-somebody-gave"); err != nil {
		t.Error(err)
	}
	if s := authStatusOf(t, m, "protected"); s.State != supervisor.AuthSignedIn {
		t.Errorf("%+v", s)
	}

	raw, err2 := store.Get(t.Context(), store.key)
	if err2 != nil {
		t.Fatal(err2)
	}
	var record struct{ Access, Refresh string }
	if err := json.Unmarshal(raw, &record); err != nil || record.Access == "" || record.Refresh == "" {
		t.Fatalf("the record has another form: %v", err)
	}
	secrets := []string{record.Access, record.Refresh, "canary-of-a-token"}
	server.mu.Lock()
	for token := range server.tokens {
		secrets = append(secrets, token)
	}
	server.mu.Unlock()
	statuses, _ := json.Marshal(m.Status())
	states, _ := m.AuthStatus(t.Context())
	auths, _ := json.Marshal(states)
	entries, _ := m.History("protected")
	history, _ := json.Marshal(entries)
	said := map[string]string{"the error": err.Error(), "the status": string(statuses), "the auth status": string(auths),
		"the history": string(history), "the log": log.String(), "the events": drainEvents(w), "the store's files": textOfStore(t, p.Dir)}
	for where, text := range said {
		for i, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows secret %d", where, i)
			}
		}
	}
	if got := other.receivedText(); strings.Contains(got, "Bearer") {
		t.Errorf("the other server was told %q", got)
	}
}

// drainEvents is what a watcher has seen so far.
func drainEvents(w *supervisor.Watcher) string {
	var all strings.Builder
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		e, err := w.Next(ctx)
		cancel()
		if err != nil {
			return all.String()
		}
		b, _ := json.Marshal(e)
		all.Write(b)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) Sync() error { return nil }

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// recordingServer is a server that asks for credentials and remembers what it was given.
type recordingServer struct {
	lockedBuffer
}

func (e *recordingServer) receivedText() string { return e.String() }

func (e *recordingServer) startServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(e, r.Method, r.URL, r.Header)
		w.Header().Set("WWW-Authenticate", `Bearer realm="other"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/mcp"
}
