package auth_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// The token of these tests is "generation N"; generation 0 has expired, every other one is good for ever.
const (
	tokenKey = "server https://issuer.example/"
	expired  = "generation 0 " + canary
)

func tokenGeneration(secret []byte) (n int) {
	n = -1
	_, _ = fmt.Sscanf(string(secret), "generation %d "+canary, &n)
	return n
}

// sharedStore is the store that processes share in these tests, in a directory, with its refresher.
func sharedStore(dir string) (auth.Store, *auth.Refresher, error) {
	s, err := auth.OpenFiles(auth.Options{Dir: filepath.Join(dir, "s"), KeyFile: filepath.Join(dir, "key")})
	if err != nil {
		return nil, nil, err
	}
	return s, auth.NewRefresher(s, auth.NewLocks(filepath.Join(dir, "s"))), nil
}

// nextGeneration replaces a token of generation n and notes that in a file, which is what the authorization server would see.
func nextGeneration(log string) func(context.Context, []byte) ([]byte, error) {
	return func(_ context.Context, current []byte) ([]byte, error) {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		n := tokenGeneration(current)
		if _, err := fmt.Fprintf(f, "spent %d\n", n); err != nil {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond) // the network
		return fmt.Appendf(nil, "generation %d %s", n+1, canary), nil
	}
}

func init() {
	// use uses the token a thousand times and replaces it when it has expired.
	roles["use"] = func(dir string) error {
		s, r, err := sharedStore(dir)
		if err != nil {
			return err
		}
		for i := range 1000 {
			secret, err := s.Get(context.Background(), tokenKey)
			if err == nil && tokenGeneration(secret) == 0 {
				secret, err = r.Once(context.Background(), tokenKey, auth.VersionOf(secret),
					nextGeneration(filepath.Join(dir, "log")))
			}
			if err != nil || tokenGeneration(secret) != 1 {
				return fmt.Errorf("use %d: generation %d, %v", i, tokenGeneration(secret), err)
			}
		}
		return nil
	}
	// die replaces the token and is killed at a step.
	roles["die"] = func(arg string) error {
		at, dir, _ := strings.Cut(arg, ":")
		passed := 0
		auth.AtStep(func(name string) {
			if passed++; fmt.Sprint(passed) == at {
				fmt.Println(name)
				killProcess()
			}
		})
		s, r, err := sharedStore(dir)
		if err != nil {
			return err
		}
		secret, err := s.Get(context.Background(), tokenKey)
		if err == nil {
			_, err = r.Once(context.Background(), tokenKey, auth.VersionOf(secret), nextGeneration(filepath.Join(dir, "log")))
		}
		return err
	}
}

// killProcess ends this process without a chance to clean up.
func killProcess() {
	p, _ := os.FindProcess(os.Getpid())
	_ = p.Kill()
	select {}
}

// TestTenProcessesRefreshOnce: ten processes, one expiring token, a thousand uses each: one refresh, no failure.
func TestTenProcessesRefreshOnce(t *testing.T) {
	dir := t.TempDir()
	s, _, err := sharedStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), tokenKey, []byte(expired)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 10 {
		cmd := inRole(t, "use:"+dir)
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if log, _ := os.ReadFile(filepath.Join(dir, "log")); string(log) != "spent 0\n" {
		t.Errorf("the authorization server saw %q", log)
	}
}

// TestKilledAtEveryStep: whatever was being done, the store holds the old token or the new one, and the next process
// can go on with it at once. The test finds the number of steps by itself.
func TestKilledAtEveryStep(t *testing.T) {
	seen := map[string]int{}
	for at := 1; ; at++ {
		dir := t.TempDir()
		s, r, err := sharedStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), tokenKey, []byte(expired)); err != nil {
			t.Fatal(err)
		}
		out, err := inRole(t, fmt.Sprintf("die:%d:%s", at, dir)).Output()
		if err == nil {
			break // it has no such step
		}
		name := strings.TrimSpace(string(out))
		if seen[name]++; name == "" || at > 100 {
			t.Fatalf("step %d: %v", at, err)
		}
		secret, err := s.Get(t.Context(), tokenKey)
		n := tokenGeneration(secret)
		if err != nil || n != 0 && n != 1 {
			t.Fatalf("killed at step %d (%s): %q, %v", at, name, secret, err)
		}
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		if n == 1 && string(log) != "spent 0\n" || name == "once: stored" && n != 1 {
			t.Errorf("killed at step %d (%s): generation %d, and the server saw %q", at, name, n, log)
		}
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		next, err := r.Once(ctx, tokenKey, auth.VersionOf(secret), nextGeneration(filepath.Join(dir, "log")))
		cancel()
		if err != nil || tokenGeneration(next) != n+1 {
			t.Errorf("after being killed at step %d (%s): %q, %v", at, name, next, err)
		}
	}
	// The current secret is written before the refresh, and the next one after it.
	for name, times := range map[string]int{
		"once: locked": 1, "once: read": 1, "once: done": 1, "once: stored": 1,
		"file: created": 2, "file: half": 2, "file: written": 2, "file: synced": 2, "file: renamed": 2,
	} {
		if seen[name] != times {
			t.Errorf("killed %d times at %q, want %d", seen[name], name, times)
		}
	}
}

// TestOnce, in virtual time: who waits adopts; a failure erases nothing; who has signed out stays so.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := auth.NewMemory()
		r := auth.NewRefresher(s, auth.NewLocks(""))
		ctx := t.Context()
		var ran atomic.Int32
		do := func(ctx context.Context, current []byte) ([]byte, error) {
			ran.Add(1)
			time.Sleep(time.Second)
			return append(current, 'x'), ctx.Err()
		}
		// Nothing is stored: the first one makes it.
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if got, err := r.Once(ctx, "k", auth.Version{}, do); err != nil || string(got) != "x" {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		wg.Wait()
		if ran.Load() != 1 {
			t.Errorf("do ran %d times", ran.Load())
		}
		// A failure.
		bad := errors.New("503")
		_, err := r.Once(ctx, "k", auth.VersionOf([]byte("x")), func(context.Context, []byte) ([]byte, error) {
			return []byte("rubbish"), bad
		})
		if got, _ := s.Get(ctx, "k"); !errors.Is(err, bad) || string(got) != "x" {
			t.Errorf("%q, %v", got, err)
		}
		// A panic.
		_, err = r.Once(ctx, "k", auth.VersionOf([]byte("x")), func(context.Context, []byte) ([]byte, error) { panic("no") })
		if e := boundaryError(t, err); e.Class != messages.ClassPanic {
			t.Error(err)
		}
		// Whoever gives up does not stop what has been begun.
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_, err = r.Once(short, "k", auth.VersionOf([]byte("x")), do)
		if e := boundaryError(t, err); e.Class != messages.ClassTimeout {
			t.Error(err)
		}
		got, err := r.Once(ctx, "k", auth.VersionOf([]byte("x")), do)
		if err != nil || string(got) != "xx" || ran.Load() != 2 {
			t.Errorf("%q, %v, do ran %d times", got, err, ran.Load())
		}
		// Somebody has signed out.
		_ = s.Delete(ctx, "k")
		_, err = r.Once(ctx, "k", auth.VersionOf([]byte("xx")), do)
		if !errors.Is(err, auth.ErrNotFound) || ran.Load() != 2 {
			t.Errorf("%v, do ran %d times", err, ran.Load())
		}
		// And in again.
		go func() {
			time.Sleep(time.Hour)
			_ = s.Put(ctx, "k", []byte("new"))
		}()
		if got, err := r.Changed(ctx, "k", auth.VersionOf([]byte("xx"))); err != nil || string(got) != "new" {
			t.Errorf("%q, %v", got, err)
		}
		short, cancel = context.WithTimeout(ctx, time.Hour)
		defer cancel()
		if _, err := r.Changed(short, "k", auth.VersionOf([]byte("new"))); err == nil {
			t.Error("a change was seen where there was none")
		}
	})
}

// fullStore is a store that cannot be written to.
type fullStore struct{ auth.Store }

func (fullStore) Put(context.Context, string, []byte) error {
	return &transports.Error{Class: messages.ClassNetwork, Text: "no space is left"}
}

// TestNothingIsSpentThatCannotBeStored: a disk that is full is found out before the refresh token is gone.
func TestNothingIsSpentThatCannotBeStored(t *testing.T) {
	s := auth.NewMemory()
	_ = s.Put(t.Context(), "k", []byte("old"))
	r := auth.NewRefresher(fullStore{s}, auth.NewLocks(""))
	_, err := r.Once(t.Context(), "k", auth.VersionOf([]byte("old")), func(context.Context, []byte) ([]byte, error) {
		t.Error("the refresh token was spent")
		return []byte("new"), nil
	})
	if e := boundaryError(t, err); e.Class != messages.ClassNetwork {
		t.Error(err)
	}
}

func init() {
	// hold takes a lock, says so, and holds it until it is killed.
	roles["hold"] = func(dir string) error {
		if _, err := auth.NewLocks(dir).Lock(context.Background(), "k"); err != nil {
			return err
		}
		fmt.Println("held")
		time.Sleep(5 * time.Minute) // not for ever: a test that fails may leave it
		return nil
	}
}

// TestLockOfAKilledProcess is free at once; that of a living one is waited for.
func TestLockOfAKilledProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	cmd := inRole(t, "hold:"+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatal(err)
	}
	locks := auth.NewLocks(dir)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = locks.Lock(short, "k")
	if e := boundaryError(t, err); e.Class != messages.ClassTimeout || !strings.Contains(e.Text, "another process") {
		t.Error(err)
	}
	if unlock, err := locks.Lock(t.Context(), "other"); err != nil {
		t.Error(err)
	} else {
		unlock()
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	unlock, err := locks.Lock(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	unlock() // no harm
}

// TestLockExcludes goroutines of one Locks, and of two of the same directory, which is what two processes are.
func TestLockExcludes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	one, two := auth.NewLocks(dir), auth.NewLocks(dir)
	var inside, total atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		l := one
		if i%2 == 1 {
			l = two
		}
		wg.Go(func() {
			for range 25 {
				unlock, err := l.Lock(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				total.Add(1)
				runtime.Gosched()
				inside.Add(-1)
				unlock()
			}
		})
	}
	wg.Wait()
	if total.Load() != 200 {
		t.Errorf("%d of 200", total.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := one.Lock(ctx, "k"); err != nil {
		boundaryError(t, err)
	}
}
