//go:build unix

package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// script is a shell command with an environment that it needs.
func script(line string, env ...string) stdio.Config {
	cfg := auth.ShellCommand(line)
	cfg.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	return cfg
}

// TestHelper: headers come from a command, which runs once, and again on a 401.
func TestHelper(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	a := auth.Helper(auth.HelperConfig{Program: script(
		`cat; echo x >> "$RUNS"; n=$(wc -l < "$RUNS"); [ $n -gt 2 ] && n=2; echo "{\"x-key\": \"`+canary+`-$((n))\"}"`,
		"RUNS="+runs)})
	count := func() int {
		b, _ := os.ReadFile(runs)
		return strings.Count(string(b), "x")
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			h := http.Header{}
			if err := a.Authorize(t.Context(), h); err != nil || h.Get("X-Key") != canary+"-1" {
				t.Errorf("%v, %v", h, err)
			}
		})
	}
	wg.Wait()
	if n := count(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
	h := currentHeaders(t, a)
	if !refuseOnce(t, a, h) || count() != 2 {
		t.Errorf("after a 401 it ran %d times", count())
	}
	if !refuseOnce(t, a, h) || count() != 2 {
		t.Errorf("another request with the former headers made it run %d times", count())
	}
	if h = currentHeaders(t, a); h.Get("X-Key") != canary+"-2" || refuseOnce(t, a, h) || count() != 3 {
		t.Errorf("%v after %d runs", h, count())
	}
}

// TestHelperFailures: none of them tells what the helper printed.
func TestHelperFailures(t *testing.T) {
	for _, c := range []struct {
		line, text string
		class      messages.Class
	}{
		{"echo " + canary, "did not print a JSON object", messages.ClassUnauthorized},
		{"echo null", "did not print a JSON object", messages.ClassUnauthorized},
		{`echo '{"X-Key": "` + canary + `"} ` + canary + `'`, "did not print", messages.ClassUnauthorized},
		{`echo '{"X-Key": 7}'`, "no text", messages.ClassUnauthorized},
		{`echo '{"X Key": "` + canary + `"}'`, "name HTTP does not allow", messages.ClassUnauthorized},
		{`printf '%s' '{"X-Key": "a\u000d\u000aX: ` + canary + `"}'`, `"X-Key"`, messages.ClassUnauthorized},
		{"echo " + canary + "; echo " + canary + " >&2; exit 3", "exit status 3", messages.ClassUnauthorized},
		{"kill -9 $$", "signal killed", messages.ClassUnauthorized},
		{"yes " + canary, "more than 65536 bytes", messages.ClassUnauthorized},
	} {
		a := auth.Helper(auth.HelperConfig{Program: script(c.line)})
		e := boundaryError(t, a.Authorize(t.Context(), http.Header{}))
		if e.Class != c.class || !strings.Contains(e.Error(), c.text) {
			t.Errorf("%s: %v (%s)", c.line, e, e.Class)
		}
	}
	a := auth.Helper(auth.HelperConfig{Program: stdio.Config{Command: "/no/such/program " + canary}})
	if e := boundaryError(t, a.Authorize(t.Context(), http.Header{})); e.Class != messages.ClassUnauthorized {
		t.Errorf("%v (%s)", e, e.Class)
	}
}

// TestACommandThatMustAskNamesTheTerminal: whoever has no terminal cannot type a passphrase, and learns where it can be typed.
func TestACommandThatMustAskNamesTheTerminal(t *testing.T) {
	for line, want := range map[string]string{"exit 2": `"exit …"`, "exec sleep 600 # " + canary: `"exec …"`, "KEY=" + canary + " false": "sh\""} {
		program := script(line)
		for _, err := range []error{
			auth.Helper(auth.HelperConfig{Program: program, Limit: time.Second}).Authorize(t.Context(), http.Header{}),
			auth.Bearer(auth.Command(program, time.Second)).Authorize(t.Context(), http.Header{}),
		} {
			e := boundaryError(t, err)
			if !strings.Contains(e.Text, want) || !strings.Contains(e.Fix, "in a terminal") {
				t.Errorf("%q, and to do: %q", e.Text, e.Fix)
			}
		}
	}
}

// TestHelperIsKilled: at the limit, with what it has started.
func TestHelperIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	a := auth.Helper(auth.HelperConfig{Limit: 2 * time.Second, Program: script(
		`trap '' TERM; sleep 600 & echo $! > "$PIDS"; wait`, "PIDS="+file)})
	e := boundaryError(t, a.Authorize(t.Context(), http.Header{}))
	if e.Class != messages.ClassNetwork || !strings.Contains(e.Error(), "within 2s") {
		t.Errorf("%v (%s)", e, e.Class)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(bound); syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
		if stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); strings.Contains(string(stat), ") Z ") {
			break // its new parent has not reaped it yet
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d is alive", pid)
		}
	}
	// A caller who gives up is not the server's fault.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e := boundaryError(t, a.Authorize(ctx, http.Header{})); e.Class != messages.ClassCanceled {
		t.Errorf("%v (%s)", e, e.Class)
	}
}

// TestCommandSource: an API key that a command prints, and prints again after a 401.
func TestCommandSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, canary+"-1\n")
	a := auth.APIKey("X-Key", auth.Command(script(`cat "$KEY"`, "KEY="+file), 0))
	h := currentHeaders(t, a)
	write(t, file, canary+"-2\n")
	if got := currentHeaders(t, a).Get("X-Key"); got != canary+"-1" {
		t.Errorf("the command ran again without a reason: %q", got)
	}
	if !refuseOnce(t, a, h) || currentHeaders(t, a).Get("X-Key") != canary+"-2" {
		t.Error("the command did not run again after a 401")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_, err := a.Refused(t.Context(), http.StatusUnauthorized, nil, currentHeaders(t, a))
	if e := boundaryError(t, err); e.Class != messages.ClassUnauthorized || !strings.Contains(e.Error(), "exit status 1") {
		t.Error(e)
	}
}
