package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// headerServer is an MCP server with one tool that accepts requests with the header, and remembers the headers that it got.
type headerServer struct {
	URL    string
	header string

	mu    sync.Mutex
	good  string // empty: every request is refused
	shown []string
	limit bool // calls are refused for want of a scope
}

func newHeaderServer(t *testing.T, header, good string) *headerServer {
	d := &headerServer{header: header, good: good}
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	d.URL = s.URL + "/mcp"
	return d
}

func (d *headerServer) set(good string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.good = good
}

func (d *headerServer) visits() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.shown...)
}

func (d *headerServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	said := r.Header.Get(d.header)
	d.mu.Lock()
	d.shown = append(d.shown, said)
	good, limit := d.good, d.limit
	d.mu.Unlock()
	id := `1`
	if _, rest, ok := strings.Cut(string(body), `"id":`); ok {
		id, _, _ = strings.Cut(strings.ReplaceAll(rest, "}", ","), ",")
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
	}
	switch {
	case good == "" || said != good:
		w.Header().Set("WWW-Authenticate", `Bearer scope="mcp:read"`)
		w.WriteHeader(http.StatusUnauthorized)
	case limit && strings.Contains(string(body), `"tools/call"`):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="mcp:write"`)
		w.WriteHeader(http.StatusForbidden)
	case strings.Contains(string(body), `"initialize"`):
		answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"d","version":"1"}}`)
	case strings.Contains(string(body), `"tools/list"`):
		answer(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	case strings.Contains(string(body), `"tools/call"`):
		answer(`{"content":[]}`)
	case strings.Contains(string(body), `"ping"`):
		answer(`{}`)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (d *headerServer) spec(a *supervisor.Auth) supervisor.Spec {
	return supervisor.Spec{URL: d.URL, Type: messages.HTTP, Era: messages.EraLegacy, Auth: a}
}

func startWith(t *testing.T, cfg supervisor.Config) *supervisor.Manager {
	t.Helper()
	if cfg.AuthStore == nil {
		cfg.AuthStore = auth.NewMemory()
	}
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, m) })
	return m
}

func phaseIs(t *testing.T, m *supervisor.Manager, name string, want messages.Phase) {
	t.Helper()
	eventually(t, name+" to be "+string(want), func() bool { return phase(t, m, name) == want })
}

// TestEveryKindOfAuth: each kind that a spec can name sends what it has, and its status says where that is and not what.
func TestEveryKindOfAuth(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a Unix shell")
	}
	seeds.Shows(t, "004.fr5.token-file", "004.fr5.api-key", "004.fr5.none", "001.6.auth-provider")
	t.Setenv("DOOR_KEY", "canary-env")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("canary-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		header, good string
		auth         *supervisor.Auth
		where        string
	}{
		"key":         {"X-Key", "canary-text", &supervisor.Auth{Type: "api_key", HeaderName: "X-Key", APIKey: "canary-text"}, "the configured value"},
		"key bearer":  {"Authorization", "Bearer canary-text", &supervisor.Auth{Type: "api_key", APIKey: "canary-text"}, "the configured value"},
		"env":         {"X-Key", "canary-env", &supervisor.Auth{Type: "api_key", HeaderName: "X-Key", FromEnv: "DOOR_KEY"}, "the environment variable"},
		"file":        {"X-Key", "canary-file", &supervisor.Auth{Type: "api_key", HeaderName: "X-Key", TokenPath: file}, "the file"},
		"command":     {"Authorization", "Bearer canary-command", &supervisor.Auth{Type: "bearer", Command: "echo canary-$WHAT", Env: map[string]string{"WHAT": "command"}}, "the command"},
		"program":     {"Authorization", "Bearer canary text", &supervisor.Auth{Type: "bearer", Command: "printf", Args: []string{"%s", "canary text"}}, "the command"},
		"bearer":      {"Authorization", "Bearer canary-text", &supervisor.Auth{Type: "bearer", Token: "canary-text"}, "the configured value"},
		"token file":  {"Authorization", "Bearer canary-file", &supervisor.Auth{Type: "token_file", TokenPath: file}, ""},
		"helper":      {"X-Key", "canary-helper", &supervisor.Auth{Type: "helper", Command: `echo '{"X-Key": "canary-helper"}'`}, "the command"},
		"not a shell": {"X-Key", "$DOOR_KEY", &supervisor.Auth{Type: "api_key", HeaderName: "X-Key", Command: "printf", Args: []string{"%s", "$DOOR_KEY"}}, "the command"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newHeaderServer(t, c.header, c.good)
			m := startWith(t, supervisor.Config{Servers: map[string]supervisor.Spec{"s": d.spec(c.auth)}})
			phaseIs(t, m, "s", messages.Connected)
			if _, err := m.CallServerTool(t.Context(), "s", "echo", struct{}{}); err != nil {
				t.Error(err)
			}
			for _, v := range d.visits() {
				if v != c.good {
					t.Errorf("a request carried %q", v)
				}
			}
			all, err := m.AuthStatus(t.Context())
			if err != nil || len(all) != 1 || all[0].State != supervisor.AuthConfigured || all[0].Kind != c.auth.Type ||
				!strings.HasPrefix(all[0].Where, c.where) || strings.Contains(fmt.Sprint(all), "canary-") && c.auth.Env == nil {
				t.Errorf("%+v, %v", all, err)
			}
			err = m.Login(t.Context(), "s", supervisor.LoginOptions{})
			if !errors.Is(err, supervisor.ErrInvalid) || !strings.Contains(err.Error(), "nothing to sign in to") {
				t.Errorf("a sign-in: %v", err)
			}
		})
	}
}

// TestATokenFileLetsTheServerBackIn: a server whose token is refused needs credentials, is not asked again, and is
// connected as soon as another program has written a better one.
func TestATokenFileLetsTheServerBackIn(t *testing.T) {
	d := newHeaderServer(t, "Authorization", "Bearer new")
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file+".tmp", []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".tmp", file); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	m := startWith(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"s": d.spec(&supervisor.Auth{Type: "token_file", TokenPath: file})}})
	phaseIs(t, m, "s", messages.NeedsAuth)
	settled(t, m)
	st, _ := m.ServerStatus("s")
	if st.NextAttempt != nil || st.Challenge == nil || st.Challenge.Scope != "mcp:read" {
		t.Errorf("%+v", st)
	}
	if got := d.visits(); len(got) != 1 {
		t.Errorf("it was asked %q", got)
	}
	write("new")
	phaseIs(t, m, "s", messages.Connected)
	for i, v := range d.visits() {
		if want := map[bool]string{true: "Bearer old", false: "Bearer new"}[i == 0]; v != want {
			t.Errorf("request %d carried %q", i, v)
		}
	}
	h, _ := m.History("s")
	if !strings.Contains(fmt.Sprint(h), "other credentials have appeared") {
		t.Errorf("the history does not tell: %v", h)
	}
}

// TestAProvidedTokenGoesToItsServer: an actor answers auth-required with a token. It goes to that server alone, and is
// dropped when it is refused and when the spec changes.
func TestAProvidedTokenGoesToItsServer(t *testing.T) {
	a, b := newHeaderServer(t, "Authorization", "Bearer given"), newHeaderServer(t, "Authorization", "Bearer given")
	m := startWith(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": a.spec(nil), "b": b.spec(nil)}})
	phaseIs(t, m, "a", messages.NeedsAuth)
	phaseIs(t, m, "b", messages.NeedsAuth)
	reply, err := m.System().Root.RequestFuture(m.PID(), &messages.ProvideCredentials{Server: "a", Token: "given"},
		30*time.Second).Result()
	if done, ok := reply.(*messages.Done); err != nil || !ok || done.GetFailure() != nil {
		t.Fatalf("%v, %v", reply, err)
	}
	phaseIs(t, m, "a", messages.Connected)
	if phase(t, m, "b") != messages.NeedsAuth {
		t.Error("the other server is let in")
	}
	for _, v := range b.visits() {
		if v != "" {
			t.Errorf("the other server was shown %q", v)
		}
	}
	if all, err := m.AuthStatus(t.Context(), "a"); err != nil || all[0].State != supervisor.AuthProvided ||
		strings.Contains(fmt.Sprint(all), "given") {
		t.Errorf("%+v, %v", all, err)
	}
	a.set("Bearer other")
	if _, err := m.CallServerTool(t.Context(), "a", "echo", struct{}{}); !errors.Is(err, supervisor.ErrNeedsAuth) {
		t.Errorf("a call with a token that is refused: %v", err)
	}
	phaseIs(t, m, "a", messages.NeedsAuth)
	n := len(a.visits())
	if err := m.Reconnect(t.Context(), "a"); !errors.Is(err, supervisor.ErrNeedsAuth) {
		t.Error(err)
	}
	for _, v := range a.visits()[n:] {
		if v == "Bearer given" {
			t.Error("a refused token was sent again")
		}
	}
	for _, bad := range []string{"", " ", "a\nb"} {
		if err := m.ProvideCredentials(t.Context(), "a", bad); !errors.Is(err, supervisor.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := m.ProvideCredentials(t.Context(), "nobody", "x"); !errors.Is(err, supervisor.ErrUnknownServer) {
		t.Error(err)
	}
}

// TestAScopeThatIsLackingRejectsTheCall: 403 insufficient_scope ends the call with what it lacks and leaves the server.
func TestAScopeThatIsLackingRejectsTheCall(t *testing.T) {
	d := newHeaderServer(t, "Authorization", "Bearer x")
	d.limit = true
	m := startWith(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"s": d.spec(&supervisor.Auth{Type: "bearer", Token: "x"})}})
	phaseIs(t, m, "s", messages.Connected)
	_, err := m.CallServerTool(t.Context(), "s", "echo", struct{}{})
	var e *supervisor.Error
	if !errors.As(err, &e) || e.Outcome != messages.OutcomeRejected || e.Challenge == nil || e.Challenge.Scope != "mcp:write" {
		t.Errorf("%+v", err)
	}
	settled(t, m)
	if phase(t, m, "s") != messages.Connected {
		t.Errorf("it is %s", phase(t, m, "s"))
	}
}

// TestAnAuthorizerLivesWithItsSpec: one for all connections of a server, kept by a reload of the same, and another one
// for another spec.
func TestAnAuthorizerLivesWithItsSpec(t *testing.T) {
	d := newHeaderServer(t, "Authorization", "Bearer x")
	var asked atomic.Int32
	m := startWith(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{"s": d.spec(nil)},
		AuthProvider: func(string, supervisor.Spec) (transports.Authorizer, error) {
			asked.Add(1)
			return auth.Bearer(auth.Text("x")), nil
		},
	})
	phaseIs(t, m, "s", messages.Connected)
	for range 3 {
		if err := m.Reconnect(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Configure(t.Context(), map[string]supervisor.Spec{"s": d.spec(nil)}); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("it was made %d times", n)
	}
	changed := d.spec(nil)
	changed.URL += "?v=2"
	if _, err := m.Configure(t.Context(), map[string]supervisor.Spec{"s": changed}); err != nil {
		t.Fatal(err)
	}
	settled(t, m)
	if n := asked.Load(); n != 2 || phase(t, m, "s") != messages.Connected {
		t.Errorf("it was made %d times, and the server is %s", n, phase(t, m, "s"))
	}
	if all, err := m.AuthStatus(t.Context()); err != nil || all[0].Kind != "program" || all[0].Where != "the program" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestPlainHTTPCarriesNoCredentials: nothing is dialled, and the reason says what to do.
func TestPlainHTTPCarriesNoCredentials(t *testing.T) {
	seeds.Shows(t, "001.6.plain-http-refused")
	spec := supervisor.Spec{URL: "http://192.0.2.1/mcp", Type: messages.HTTP, Auth: &supervisor.Auth{Type: "bearer", Token: "canary"}}
	header := supervisor.Spec{URL: "ws://192.0.2.1/mcp", Type: messages.WebSocket, Headers: map[string]string{"Authorization": "canary"}}
	allowed := spec
	allowed.AllowPlainHTTP = true
	var opened sync.Map
	m := startWith(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{"auth": spec, "header": header, "allowed": allowed},
		Transport: func(name string, _ supervisor.Spec) (transports.Transport, error) {
			opened.Store(name, true)
			return nil, errors.New("reached")
		},
	})
	settled(t, m)
	for _, name := range []string{"auth", "header", "allowed"} {
		st, err := m.ServerStatus(name)
		if err != nil {
			t.Fatal(err)
		}
		_, dialled := opened.Load(name)
		if dialled != (name == "allowed") || st.Status != messages.Failed ||
			!dialled && (st.Class != messages.ClassConfig || !strings.Contains(st.Error, "allowPlainHTTP")) {
			t.Errorf("%s, dialled %v: %s %s", name, dialled, st.Class, st.Error)
		}
		if strings.Contains(st.Error, "canary") {
			t.Error(st.Error)
		}
	}
	err := m.Connect(t.Context(), "runtime", spec)
	if messages.ClassOf(err) != messages.ClassConfig {
		t.Errorf("at runtime: %v", err)
	}
	// A server that asks for nothing by its spec is reached, and given nothing.
	if err := m.Connect(t.Context(), "open", supervisor.Spec{URL: "http://192.0.2.1/mcp"}); err == nil || !strings.Contains(err.Error(), "reached") {
		t.Errorf("without credentials: %v", err)
	}
	if err := m.ProvideCredentials(t.Context(), "open", "canary"); !errors.Is(err, supervisor.ErrInvalid) {
		t.Errorf("a token for it: %v", err)
	}
}

// TestAPolicyIsAskedBeforeAnythingRuns: from files, at runtime and by message.
func TestAPolicyIsAskedBeforeAnythingRuns(t *testing.T) {
	seeds.Shows(t, "004.nfr3.server-validation")
	var opened sync.Map
	m := startWith(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{
			"good": {Command: "good"}, "bad": {Command: "/usr/bin/bad", Args: []string{"x"}}, "url": {URL: "https://bad.example/mcp"},
			"helper": {URL: "https://good.example/mcp", Auth: &supervisor.Auth{Type: "helper", Command: "bad", Args: []string{}}},
		},
		Policy:  config.Policy{AllowCommands: []string{"*"}, DenyURLs: []string{"*.example"}},
		Managed: []config.Policy{{DenyCommands: []string{"bad"}, Source: "/etc/managed.json"}, {AllowURLs: []string{"good.example"}}},
		Transport: func(name string, _ supervisor.Spec) (transports.Transport, error) {
			opened.Store(name, true)
			return nil, errors.New("reached")
		},
	})
	settled(t, m)
	for name, want := range map[string]string{
		"good": "", "bad": "denyCommands of /etc/managed.json", "url": "denyURLs", "helper": "denyURLs",
	} {
		st, err := m.ServerStatus(name)
		_, dialled := opened.Load(name)
		if err != nil || dialled != (want == "") || !strings.Contains(st.Error, want) ||
			want != "" && (st.Class != messages.ClassDenied || st.Retry != messages.RetryNever || st.Status != messages.Failed) {
			t.Errorf("%s, dialled %v: %s %s %q, %v", name, dialled, st.Class, st.Retry, st.Error, err)
		}
	}
	if err := m.Connect(t.Context(), "late", supervisor.Spec{Command: "bad"}); !errors.Is(err, supervisor.ErrDenied) ||
		!strings.Contains(err.Error(), "managed.json") {
		t.Errorf("at runtime: %v", err)
	}
	if err := m.Login(t.Context(), "url", supervisor.LoginOptions{}); !errors.Is(err, supervisor.ErrDenied) {
		t.Errorf("a sign-in: %v", err)
	}
	spec := supervisor.Spec{URL: "https://other.test/mcp"}.ToProto()
	reply, err := m.System().Root.RequestFuture(m.PID(), &messages.AddServer{Name: "sent", Spec: spec}, 30*time.Second).Result()
	if done, ok := reply.(*messages.Done); err != nil || !ok || messages.Class(done.GetFailure().GetClass()) != messages.ClassDenied ||
		!strings.Contains(done.GetFailure().GetText(), "allowURLs") {
		t.Errorf("by message: %v, %v", reply, err)
	}
	if _, dialled := opened.Load("sent"); dialled {
		t.Error("what was refused was opened")
	}
}

// TestNothingIsStoredUntilSomebodySignsIn: a manager whose servers want no sign-in touches no store.
func TestNothingIsStoredUntilSomebodySignsIn(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	t.Setenv("HOME", dir)
	d := newHeaderServer(t, "X-None", "")
	m, err := supervisor.Start(t.Context(), supervisor.Config{Servers: map[string]supervisor.Spec{"s": d.spec(nil)}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, m)
	phaseIs(t, m, "s", messages.NeedsAuth)
	if all, err := m.AuthStatus(t.Context()); err != nil || all[0].State != supervisor.AuthSignedOut {
		t.Errorf("%+v, %v", all, err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("there is %v, %v", entries, err)
	}
}

// waiter counts who waits for its credentials.
type waiter struct {
	transports.Authorizer
	waiting atomic.Int32
	come    chan struct{}
}

func (w *waiter) Changed(ctx context.Context) error {
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	select {
	case <-w.come:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestSomebodyWaitsWhileCredentialsAreNeeded: one waits, ends with the need however it ends, and finds what has come.
func TestSomebodyWaitsWhileCredentialsAreNeeded(t *testing.T) {
	d := newHeaderServer(t, "Authorization", "")
	w := &waiter{Authorizer: auth.Bearer(auth.Text("x")), come: make(chan struct{}, 1)}
	m := startWith(t, supervisor.Config{
		Servers:      map[string]supervisor.Spec{"s": d.spec(nil)},
		AuthProvider: func(string, supervisor.Spec) (transports.Authorizer, error) { return w, nil },
	})
	waiting := func(n int32) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d to wait", n), func() bool { return w.waiting.Load() == n })
	}
	phaseIs(t, m, "s", messages.NeedsAuth)
	waiting(1)
	if err := m.Toggle(t.Context(), "s", false); err != nil {
		t.Fatal(err)
	}
	waiting(0)
	if err := m.Toggle(t.Context(), "s", true); !errors.Is(err, supervisor.ErrNeedsAuth) {
		t.Fatal(err)
	}
	waiting(1)
	if err := m.Reconnect(t.Context(), "s"); !errors.Is(err, supervisor.ErrNeedsAuth) {
		t.Fatal(err)
	}
	waiting(1)
	d.set("Bearer x")
	w.come <- struct{}{}
	phaseIs(t, m, "s", messages.Connected)
	waiting(0)
	d.set("")
	if _, err := m.CallServerTool(t.Context(), "s", "echo", struct{}{}); !errors.Is(err, supervisor.ErrNeedsAuth) {
		t.Errorf("a call: %v", err)
	}
	waiting(1)
	closeAll(t, m)
	waiting(0)
}
