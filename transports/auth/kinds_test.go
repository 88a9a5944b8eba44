package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

const (
	// bound is the longest time that anything which must end may take.
	bound = 30 * time.Second
	// canary stands in every secret of these tests, and must stand in no error.
	canary = "canary7f21b0c9aa54"
)

// currentHeaders returns the headers that a sends now.
func currentHeaders(t *testing.T, a transports.Authorizer) http.Header {
	t.Helper()
	h := http.Header{}
	if err := a.Authorize(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	return h
}

// refuseOnce reports what a says to a 401.
func refuseOnce(t *testing.T, a transports.Authorizer, used http.Header) bool {
	t.Helper()
	retry, err := a.Refused(t.Context(), http.StatusUnauthorized, nil, used)
	if err != nil {
		t.Fatal(err)
	}
	return retry
}

// boundaryError checks that an error is one of the boundary and holds no canary, in no layer.
func boundaryError(t *testing.T, err error) *transports.Error {
	t.Helper()
	var e *transports.Error
	if !errors.As(err, &e) {
		t.Fatalf("a %T, not a *transports.Error: %v", err, err)
	}
	for err := err; err != nil; err = errors.Unwrap(err) {
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, canary) {
			t.Errorf("an error holds a secret: %s", text)
		}
	}
	return e
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHeaderKinds(t *testing.T) {
	t.Setenv("AUTH_TEST_KEY", canary)
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, canary+"\n")
	for _, c := range []struct {
		name         string
		a            transports.Authorizer
		header, want string
	}{
		{"text", auth.APIKey("x-api-key", auth.Text(canary)), "X-Api-Key", canary},
		{"environment", auth.APIKey("X-Key", auth.Env("AUTH_TEST_KEY")), "X-Key", canary},
		{"file", auth.APIKey("X-Key", auth.File(file)), "X-Key", canary},
		{"bearer", auth.Bearer(auth.Text(" " + canary + "\n")), "Authorization", "Bearer " + canary},
		{"bearer with its word", auth.Bearer(auth.Text("bearer " + canary)), "Authorization", "bearer " + canary},
		{"token file", auth.TokenFile(file), "Authorization", "Bearer " + canary},
		{"function", auth.Tokens(func(context.Context, string) (string, error) { return canary, nil }),
			"Authorization", "Bearer " + canary},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := currentHeaders(t, c.a)
			if h.Get(c.header) != c.want || len(h) != 1 {
				t.Errorf("the headers are %v", h)
			}
			if refuseOnce(t, c.a, h) {
				t.Error("what was refused is worth sending again")
			}
			if second, err := c.a.Refused(t.Context(), http.StatusForbidden, nil, h); second || err != nil {
				t.Errorf("after a 403: %t, %v", second, err)
			}
		})
	}
}

// TestNoCredentials: what is wrong is said, and no value.
func TestNoCredentials(t *testing.T) {
	dir := t.TempDir()
	empty, long, broken := filepath.Join(dir, "empty"), filepath.Join(dir, "long"), filepath.Join(dir, "broken")
	write(t, empty, " \n")
	write(t, long, strings.Repeat(canary, 10_000))
	write(t, broken, canary+"\r\nX-Admin: "+canary)
	for text, a := range map[string]transports.Authorizer{
		"NO_SUCH is not set":      nil,
		"does not exist":          auth.TokenFile(filepath.Join(dir, "none")),
		"is empty":                auth.TokenFile(empty),
		"too long":                auth.TokenFile(long),
		"holds what HTTP":         auth.TokenFile(broken),
		"cannot be read":          auth.TokenFile(dir),
		"name that HTTP does not": auth.APIKey("X Key", auth.Text(canary)),
		"configured value":        auth.Bearer(auth.Text("a\x00" + canary)),
		"no source":               auth.Bearer(auth.Source{}),
	} {
		if a == nil {
			a, text = auth.Bearer(auth.Env("NO_SUCH")), `"NO_SUCH" is not set`
		}
		h := http.Header{}
		e := boundaryError(t, a.Authorize(t.Context(), h))
		if e.Class != messages.ClassUnauthorized || !strings.Contains(e.Error(), text) || len(h) != 0 {
			t.Errorf("%s: %v (%s)", text, e, e.Class)
		}
	}
}

// TestTokenFileIsReadAgain: when it looks different, and on a 401 also when it does not.
func TestTokenFileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "first")
	a := auth.TokenFile(file)
	h := currentHeaders(t, a)
	write(t, file, "second!")
	if got := currentHeaders(t, a).Get("Authorization"); got != "Bearer second!" {
		t.Errorf("after a change: %q", got)
	}
	if !refuseOnce(t, a, h) {
		t.Error("another token is not worth sending")
	}
	// The same size and time.
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "third!!")
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	h = currentHeaders(t, a)
	if h.Get("Authorization") != "Bearer second!" {
		t.Skipf("the file looks different: %v", h) // a file system that keeps no such times
	}
	if !refuseOnce(t, a, h) || currentHeaders(t, a).Get("Authorization") != "Bearer third!!" {
		t.Error("a 401 did not make the file be read again")
	}
	if refuseOnce(t, a, currentHeaders(t, a)) {
		t.Error("a refused token is worth sending again")
	}
}

// TestTokenFileBeingWritten: a moment without the file costs no request.
func TestTokenFileBeingWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "first")
	a := auth.TokenFile(file)
	currentHeaders(t, a)
	write(t, file, "")
	if got := currentHeaders(t, a).Get("Authorization"); got != "Bearer first" {
		t.Errorf("empty: %q", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	h := currentHeaders(t, a)
	if got := h.Get("Authorization"); got != "Bearer first" {
		t.Errorf("missing: %q", got)
	}
	_, err := a.Refused(t.Context(), http.StatusUnauthorized, nil, h)
	if e := boundaryError(t, err); e.Class != messages.ClassUnauthorized {
		t.Error(e)
	}
	write(t, file, "second")
	if got := currentHeaders(t, a).Get("Authorization"); got != "Bearer second" {
		t.Errorf("written: %q", got)
	}
}

// TestTokenFileIsAwaited: what a server in needs-auth waits for is another token in the file. Virtual time.
func TestTokenFileIsAwaited(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	synctest.Test(t, func(t *testing.T) {
		a := auth.TokenFile(file).(auth.Awaiter)
		start := time.Now()
		go func() {
			time.Sleep(time.Hour)
			write(t, file, "refused")
			time.Sleep(time.Hour)
			write(t, file, "new")
		}()
		used := http.Header{"Authorization": {"Bearer refused"}}
		if err := a.Await(t.Context(), used); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 2*time.Hour || d > 2*time.Hour+5*time.Second {
			t.Errorf("after %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		used.Set("Authorization", "Bearer new")
		if err := a.Await(ctx, used); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestTokenFunc(t *testing.T) {
	token := "first"
	a := auth.Tokens(func(_ context.Context, refused string) (string, error) {
		switch refused {
		case "":
		case "first":
			token = "second"
		default:
			return "", &transports.Error{Class: messages.ClassNetwork, Text: "nobody answers"}
		}
		return token, nil
	})
	h := currentHeaders(t, a)
	if !refuseOnce(t, a, h) {
		t.Error("the second token is not worth sending")
	}
	if h = currentHeaders(t, a); h.Get("Authorization") != "Bearer second" {
		t.Error(h)
	}
	second, err := a.Refused(t.Context(), http.StatusUnauthorized, nil, h)
	if e := boundaryError(t, err); second || e.Class != messages.ClassNetwork {
		t.Errorf("%t, %v", second, err)
	}
	silent := auth.Tokens(func(context.Context, string) (string, error) { return "", nil })
	if h := currentHeaders(t, silent); len(h) != 0 || refuseOnce(t, silent, h) {
		t.Error("a function without a token")
	}
}

// TestReadersShareOneValue: under the race detector, a file that changes all the time has one of its contents.
func TestReadersShareOneValue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "token-0")
	a := auth.TokenFile(file)
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := 0; i < 200 && ctx.Err() == nil; i++ {
				h := http.Header{}
				if err := a.Authorize(ctx, h); err != nil || !strings.HasPrefix(h.Get("Authorization"), "Bearer token-") {
					t.Errorf("%v, %v", h, err)
					return
				}
				if _, err := a.Refused(ctx, http.StatusUnauthorized, nil, h); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 50 {
		next := file + ".next"
		write(t, next, fmt.Sprintf("token-%d", i))
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}
