package oauth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// testProgram is what this test binary plays when it is started again: a program with a server that wants a sign-in.
type testProgram struct {
	Dir, URL string
	// Calls are made one after the other, with a pause after each.
	Calls int
	Pause time.Duration
	// Die is where a refresh ends the process by a kill.
	Die string
	// Manager lets a whole manager make the calls.
	Manager bool
}

const programVariable = "OAUTH_TEST_PART"

func TestMain(m *testing.M) {
	if text := os.Getenv(programVariable); text != "" {
		var p testProgram
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if err := p.runProgram(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// sharedConfig is what all processes share: an encrypted store in a directory, and its locks.
func (p testProgram) sharedConfig() (oauth.Config, error) {
	store, err := auth.OpenFiles(auth.Options{Dir: p.Dir, KeyFile: filepath.Join(p.Dir, "key")})
	return oauth.Config{Server: "protected", URL: p.URL, Store: store,
		Locks: auth.NewLocks(filepath.Join(p.Dir, "locks"))}, err
}

func (p testProgram) runProgram() error {
	if p.Manager {
		return p.runManager()
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	cfg, err := p.sharedConfig()
	if err != nil {
		return err
	}
	if p.Die != "" {
		d := &crashingStore{Store: cfg.Store, at: p.Die}
		cfg.Store, cfg.Transport, cfg.Early = d, d, time.Hour
	}
	a, err := oauth.New(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close(ctx) }()
	gate, end, err := openSession(ctx, p.URL, a)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer end()
	for i := range p.Calls {
		if _, err := gate.Call(ctx, "echo", json.RawMessage(`{}`)); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		time.Sleep(p.Pause)
	}
	return nil
}

// startProgram plays p in another process, which inherits nothing that could help it.
func (p testProgram) startProgram(ctx context.Context) (output string, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), programVariable+"="+string(text))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// TestTenProcesses: ten processes, one token that ends while they work, 1,000 calls: one refresh, no sign-in, no failed
// call.
func TestTenProcesses(t *testing.T) {
	const processes, calls = 10, 100
	as := peers.StartAuthServer(t, peers.AuthSettings{AccessTTL: 6})
	server := startMCP(t, as)
	p := testProgram{Dir: filepath.Join(t.TempDir(), "secrets"), URL: server.URL, Calls: calls, Pause: 80 * time.Millisecond}
	cfg, err := p.sharedConfig()
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthorizer(t, cfg)
	if _, err := a.Login(t.Context(), oauth.Prompt{Open: followSignIn}); err != nil {
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

// crashingStore ends its process at one step of a refresh, as kill -9 does. The steps of a refresh: the store is tried (put
// 1), told (put 2), the request sent and answered, the outcome stored (put 3).
type crashingStore struct {
	auth.Store
	at   string
	puts int
}

func (d *crashingStore) crashAt(step string) {
	if d.at == step {
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			panic(err)
		}
		_ = self.Kill()
		select {}
	}
}

func (d *crashingStore) Put(ctx context.Context, key string, secret []byte) error {
	d.puts++
	d.crashAt(fmt.Sprintf("before put %d", d.puts))
	err := d.Store.Put(ctx, key, secret)
	d.crashAt(fmt.Sprintf("after put %d", d.puts))
	return err
}

func (d *crashingStore) RoundTrip(r *http.Request) (*http.Response, error) {
	d.crashAt("before sending")
	resp, err := http.DefaultTransport.RoundTrip(r)
	d.crashAt("after the answer")
	return resp, err
}

// ageToken makes the stored token look as if it had been had at a time and ended at another: as time does, and at once.
func ageToken(t *testing.T, store auth.Store, obtained, expires time.Time) {
	t.Helper()
	var key string
	if d, ok := store.(*keyRecorder); ok {
		key = d.key
		store = d.Store
	}
	raw, err := store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(raw, &record); err != nil {
		t.Fatal(err)
	}
	record["obtained"], record["expires"] = obtained, expires
	if raw, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), key, raw); err != nil {
		t.Fatal(err)
	}
}

// keyRecorder remembers the last key that was stored.
type keyRecorder struct {
	auth.Store
	key string
}

func (n *keyRecorder) Put(ctx context.Context, key string, secret []byte) error {
	n.key = key
	return n.Store.Put(ctx, key, secret)
}

// TestKilledWhileRefreshing: wherever a process dies in a refresh, the next one has a token that works. Where the
// authorization server has not seen the refresh token, or its answer is stored, it stays signed in beyond that; where
// the answer died with the process, this server, which revokes what a spent refresh token has brought, ends the sign-in
// when the refresh token is tried again, and not before the access token has ended.
func TestKilledWhileRefreshing(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{AccessTTL: 600})
	server := startMCP(t, as)
	for _, c := range []struct {
		step  string
		spent bool // without its answer being stored
	}{
		{"before put 1", false},
		{"after put 1", false},
		{"before put 2", false},
		{"after put 2", false},
		{"before sending", false},
		{"after the answer", true},
		{"before put 3", true},
		{"after put 3", false},
	} {
		t.Run(c.step, func(t *testing.T) {
			p := testProgram{Dir: filepath.Join(t.TempDir(), "secrets"), URL: server.URL, Calls: 1}
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
			ageToken(t, store, now.Add(-350*time.Second), now.Add(250*time.Second)) // due for a process with Early: time.Hour
			p.Die = c.step
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			out, err := p.startProgram(ctx)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Exited() && runtime.GOOS != "windows" {
				t.Fatalf("the process was not killed: %v: %s", err, out)
			}

			p.Die = ""
			if out, err := p.startProgram(ctx); err != nil {
				t.Errorf("the next start has no working token: %v: %s", err, out)
			}

			// The end of the access token comes.
			ageToken(t, store, now.Add(-time.Hour), now.Add(-time.Second))
			out, err = p.startProgram(ctx)
			switch {
			case !c.spent && err != nil:
				t.Errorf("the sign-in is lost: %v: %s", err, out)
			case c.spent && (err == nil || !strings.Contains(out, "mcpvisor login protected")):
				t.Errorf("a spent refresh token was accepted: %v: %s", err, out)
			}
			if status, err := newAuthorizer(t, cfg).Status(t.Context()); err != nil || status.SignedIn == c.spent {
				t.Errorf("%+v, %v", status, err)
			}
		})
	}
}

// TestRefusedForAMinute: a server that answers 401 to everything gets one request, one refresh and one retry.
func TestRefusedForAMinute(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{AccessTTL: 600})
	server := startMCP(t, as)
	p := testProgram{Dir: filepath.Join(t.TempDir(), "secrets"), URL: server.URL}
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
	ageToken(t, store, now.Add(-100*time.Second), now.Add(500*time.Second)) // older than its first minute
	a := newAuthorizer(t, cfg)
	server.shut.Store(true)
	before := server.seen.Load()
	for i := range 20 {
		if _, _, err := openSession(t.Context(), server.URL, a); !errors.Is(err, messages.ErrNeedsAuth) {
			t.Fatal(err)
		}
		// The first attempt: one request, one refresh, one retry. No other process makes one while the server is
		// needs-auth; if one does, it costs one request and no refresh.
		if n := server.seen.Load() - before; n != int64(2+i) {
			t.Errorf("%d requests after %d attempts", n, i+1)
		}
	}
	if seen := as.Counts(t); seen.Refresh.Granted != 1 || seen.Refresh.Refused != 0 {
		t.Errorf("the authorization server saw %+v", seen)
	}
	server.shut.Store(false)
	if _, end, err := openSession(t.Context(), server.URL, a); err != nil {
		t.Error(err)
	} else {
		end()
	}
}
