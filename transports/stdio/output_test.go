//go:build unix

package stdio_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

func TestOutput(t *testing.T) {
	for _, c := range []struct {
		role  string
		most  int
		out   string
		class messages.Class
		text  string
	}{
		{"unfinished:hello", 5, "hello", "", ""},
		{"unfinished:hello", 4, "", messages.ClassProtocol, "more than 4 bytes"},
		{"endless:" + conntest.Canary, 1 << 16, "", messages.ClassProtocol, "more than 65536 bytes"},
		{"exit:3", 10, "", messages.ClassExited, "exit status 3"},
		{"input", 10, "0", "", ""},
		// A grandchild that holds the output open does not hold up the answer, and does not outlive it.
		{"leaves:deaf", 1 << 10, "child ", "", ""},
	} {
		t.Run(c.role, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), conntest.Bound)
			defer cancel()
			out, err := stdio.Output(ctx, asRole(c.role), c.most)
			if c.class != "" {
				if e := conntest.BoundaryError(t, err); e.Class != c.class || !strings.Contains(e.Error(), c.text) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || !strings.HasPrefix(string(out), c.out) {
				t.Fatalf("%q, %v", out, err)
			}
			var pid int
			if n, _ := fmt.Sscanf(string(out), "child %d", &pid); n == 1 {
				waitGone(t, 0, pid)
			}
		})
	}
}

// TestFilterGivesItsInput: the whole input is given, however long it is, and a program that does not read it is no error.
func TestFilterGivesItsInput(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), conntest.Bound)
	defer cancel()
	input := make([]byte, 1<<20) // far more than a pipe holds
	out, err := stdio.Filter(ctx, asRole("input"), input, 100)
	if err != nil || string(out) != strconv.Itoa(len(input)) {
		t.Errorf("%q, %v", out, err)
	}
	out, err = stdio.Filter(ctx, asRole("unfinished:hello"), input, 100)
	if err != nil || string(out) != "hello" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestOutputIsKilled: at the end of ctx the whole group is gone, also what ignores SIGTERM.
func TestOutputIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithTimeout(t.Context(), conntest.Bound)
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := stdio.Output(ctx, asRole("family:"+file), 1<<10)
		done <- err
	}()
	pid := 0
	for pid == 0 && ctx.Err() == nil {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(string(text))
		time.Sleep(time.Millisecond)
	}
	cancel()
	if e := conntest.BoundaryError(t, <-done); e.Class != messages.ClassCanceled || pid == 0 {
		t.Errorf("%v, child %d", e, pid)
	}
	waitGone(t, 0, pid)
}

// TestOutputOfNothing: what cannot be started says so, as for a server.
func TestOutputOfNothing(t *testing.T) {
	_, err := stdio.Output(t.Context(), stdio.Config{Command: "/nowhere/at/all"}, 10)
	if e := conntest.BoundaryError(t, err); e.Class != messages.ClassMissing {
		t.Error(err)
	}
}
