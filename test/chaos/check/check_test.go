package check_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/check"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

func TestMain(m *testing.M) {
	if servers.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

func fixture(kind string, parameters ...string) messages.Spec {
	command, args := servers.Command(kind, parameters...)
	return messages.Spec{Command: command, Args: args}
}

// one checks one server with bounds that a bad one reaches soon, and a good one on a loaded machine does not.
func one(t *testing.T, spec messages.Spec, change func(*check.Options)) check.Server {
	o := check.Options{
		Servers: map[string]messages.Spec{"it": spec}, Starts: 1, Connect: 15 * time.Second, Answer: 3 * time.Second,
		Grace:      5 * time.Second, // a program with the race detector takes a second to end
		BigMessage: 256 << 10,
	}
	if change != nil {
		change(&o)
	}
	r, err := check.Run(t.Context(), o)
	if err != nil || len(r.Servers) != 1 {
		t.Errorf("%d servers in the report, error %v", len(r.Servers), err)
		return check.Server{}
	}
	return r.Servers[0]
}

// together does n checks, many of them at once: most of a check is waiting, and of parallel tests there are only as many as
// processors.
func together(n int, do func(i int) check.Server) []chan check.Server {
	results := make([]chan check.Server, n)
	turn := make(chan struct{}, 16)
	for i := range results {
		results[i] = make(chan check.Server, 1)
		go func() { // it ends with the check, or with the test's context
			turn <- struct{}{}
			defer func() { <-turn }()
			results[i] <- do(i)
		}()
	}
	return results
}

// finding is the finding with that id.
func finding(t *testing.T, s check.Server, id string) check.Finding {
	t.Helper()
	for _, f := range s.Findings {
		if f.ID == id || strings.HasPrefix(f.ID, id+" ") {
			return f
		}
	}
	t.Fatalf("no finding %q in %s", id, findingsText(s))
	return check.Finding{}
}

func findingsText(s check.Server) string {
	var b strings.Builder
	for _, f := range s.Findings {
		b.WriteString("\n  " + string(f.Verdict) + "  " + f.ID + ": " + f.Text + " | " + f.Fix)
	}
	return b.String()
}

func TestAGoodServerPassesEverything(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"good", "modern", "both-eras"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := one(t, fixture(kind), func(o *check.Options) {
				o.Calls = map[string][]check.Call{"it": {
					{Tool: "echo", Args: json.RawMessage(`{"text":"hello"}`)},
					{Tool: "sleep", Args: json.RawMessage(`{"for":"2s"}`)},
				}}
			})
			for _, f := range s.Findings {
				if f.Verdict != check.Pass {
					t.Errorf("%s", findingsText(s))
					break
				}
			}
			for _, id := range []string{"start", "protocol", "handshake", "noise", "stderr", "tools", "list", "ping",
				"unknown-method", "malformed", "parallel", "big-message", "call", "call-parallel", "cancel", "restart",
				"list-restart", "shutdown", "signal"} {
				finding(t, s, id)
			}
			if s.Verdict() != check.Pass {
				t.Errorf("verdict %s", s.Verdict())
			}
		})
	}
}
