package supervision_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/test/bench/supervision"
	"github.com/mcpvisor/mcpvisor/test/servers"
	fixtures "github.com/mcpvisor/mcpvisor/test/servers/web"
)

// waitingStack is the stack in which a call fits that waits for an answer over HTTP, the frames of net/http included. The
// runtime doubles a stack that is too small, so one frame too many makes a thousand waiting calls hold 16 MiB instead of 8.
const waitingStack = 8 << 10

// stackServer names the environment variable that makes this test program the process that calls: the URL of the server, the
// case, and the bytes of stack that the caller has used before its call.
const stackServer = "MCPVISOR_TEST_STACK"

// stackCases are managers whose calls all fit into waitingStack.
var stackCases = map[string]func(cfg *supervisor.Config){
	"plain":   func(*supervisor.Config) {},
	"bounded": func(cfg *supervisor.Config) { cfg.MaxInFlight = 4 },
	"audited": func(cfg *supervisor.Config) { cfg.Audit = io.Discard },
	"intercepted": func(cfg *supervisor.Config) {
		cfg.Interceptors = []supervisor.Interceptor{
			func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
				return next(ctx, r)
			},
		}
	},
	"sanitized": func(cfg *supervisor.Config) {
		cfg.Sanitize = func(_ *supervisor.Tool, result json.RawMessage) json.RawMessage { return result }
	},
	"rules": func(cfg *supervisor.Config) {
		cfg.Access = access.Rules{Own: access.Set{Default: access.Deny, Rules: []access.Rule{access.MustParse(access.Allow, "mcp__s")}}}
	},
}

// TestAWaitingCallFitsIntoItsStack runs a process of its own for each case, because the only exact measure of a stack is the
// bound that the runtime puts on all of them: a process in which one exceeds it ends at once, with the frames in its output.
func TestAWaitingCallFitsIntoItsStack(t *testing.T) {
	if os.Getenv(stackServer) != "" {
		callOnSmallStack(t)
		return
	}
	web := httptest.NewServer(fixtures.Answers(answerLate))
	defer web.Close()
	for name := range stackCases {
		t.Run(name, func(t *testing.T) {
			if out, fits := fitsStack(t, web.URL, name, 0); !fits {
				t.Errorf("a waiting call does not fit into a stack of %d bytes:\n%s", waitingStack, out)
			}
		})
	}
}

// BenchmarkStackToSpare reports how many bytes of its stack a waiting call leaves free, in steps of 128.
func BenchmarkStackToSpare(b *testing.B) {
	web := httptest.NewServer(fixtures.Answers(answerLate))
	defer web.Close()
	for name := range stackCases {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				spare := 0
				for ; spare < waitingStack; spare += 128 {
					if _, fits := fitsStack(b, web.URL, name, spare); !fits {
						break
					}
				}
				b.ReportMetric(float64(spare), "spare-bytes")
			}
		})
	}
}

// fitsStack runs the process that calls, and reports whether it came to its end.
func fitsStack(tb testing.TB, url, name string, used int) (out string, fits bool) {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, self, "-test.run=^TestAWaitingCallFitsIntoItsStack$", "-test.v")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", stackServer, url, name, used))
	said, err := child.CombinedOutput()
	return string(said), err == nil && strings.Contains(string(said), "the call has ended")
}

// callOnSmallStack is the process that calls. The first calls grow the stacks of the goroutines that stay, and open the
// connection, which takes more than the call; then the runtime bounds every stack, and a new goroutine calls.
func callOnSmallStack(t *testing.T) {
	words := strings.Fields(os.Getenv(stackServer))
	used, err := strconv.Atoi(words[2])
	if err != nil {
		t.Fatal(err)
	}
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"s": {Type: messages.HTTP, URL: words[0], Era: messages.EraLegacy}}}
	stackCases[words[1]](&cfg)
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := &callers{manager: m}
	if err := m.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.callFrom(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	// A collection would shrink stacks that have to grow again.
	debug.SetGCPercent(-1)
	before := debug.SetMaxStack(waitingStack)
	err = w.callFrom(t.Context(), used)
	debug.SetMaxStack(before)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("the call has ended")
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// callers makes calls from new goroutines.
type callers struct{ manager *supervisor.Manager }

// callFrom calls from a goroutine that has used so many bytes of its stack.
func (c *callers) callFrom(ctx context.Context, used int) error {
	done := make(chan error)
	go func() { done <- c.callBelow(ctx, used) }()
	return <-done
}

// callBelow calls below frames of 128 bytes. It is no loop, so that the frames are there.
//
//go:noinline
func (c *callers) callBelow(ctx context.Context, used int) error {
	if used > 0 {
		return c.useFrame(ctx, used-128)
	}
	_, err := c.manager.CallTool(ctx, supervision.Tool, json.RawMessage(`{}`))
	return err
}

// useFrame holds some bytes across the call, so that its frame and that of callBelow have 128 together.
//
//go:noinline
func (c *callers) useFrame(ctx context.Context, used int) error {
	err := c.callBelow(ctx, used)
	return err
}

// nothing is a server of the legacy era with one tool, which takes a while so that the caller waits.
var nothing = &servers.Fixed{Name: "nothing", Tools: `{"tools":[{"name":"nothing","inputSchema":{"type":"object"}}]}`, Call: `{"content":[]}`}

func answerLate(msg []byte) []byte {
	if bytes.Contains(msg, []byte("tools/call")) {
		time.Sleep(10 * time.Millisecond)
	}
	return nothing.Answer(msg)
}
