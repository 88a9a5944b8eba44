package chaos_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpproto "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/gosdk"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/mcpgo"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// few are the cases that tests of this package play: the whole is played by whoever has a client.
const few = "^(ordinary|crash|die-mid-call|half-line|hang-call|list-changed|lose-session|cursor-loop|seed-1)$"

func newSDKClient() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "ours", Version: "1"}, nil)
}

// goSDKBodies is why random days over HTTP fail with the Go SDK 1.8.0: it ends the whole session when a caller gives up one call while
// its answer is read, and every other call with it ("failed to read body: context canceled").
const goSDKBodies = "the library ends the session of all calls with one that is given up"

// mcpGoCancels is why random days over HTTP fail with mcp-go 1.2.1 in the legacy era: it closes the response of a call that is given up,
// and does not tell the server (notifications/cancelled).
const mcpGoCancels = "the library does not send notifications/cancelled over HTTP"

// The clients of two libraries, as their documentation shows them, over stdio and HTTP.
func TestClientOfTheGoSDK(t *testing.T) {
	chaos.TestClient(t, gosdk.Dial(newSDKClient), chaos.Only(few), chaos.Days(1), chaos.JUnit(t.TempDir()), chaos.Known("^http/.*/seed-", goSDKBodies))
}

func TestClientOfMcpGo(t *testing.T) {
	chaos.TestClient(t, mcpgo.Dial(), chaos.Only(few), chaos.Days(1), chaos.Known("^http/legacy/seed-", mcpGoCancels))
}

// TestAClientOfOnesOwn: a client that the program connects in its own way, here one of mcp-go over HTTP.
func TestAClientOfOnesOwn(t *testing.T) {
	chaos.TestClient(t, chaos.RedialHTTP(func(ctx context.Context, url string, c *http.Client) (chaos.Client, error) {
		own, err := mcpclient.NewStreamableHttpClient(url, transport.WithHTTPBasicClient(c))
		if err != nil {
			return nil, err
		}
		if _, err = own.Initialize(ctx, initialize); err != nil {
			_ = own.Close() // the first error counts
		}
		return mcpgo.Client(own), err
	}), chaos.Over(messages.HTTP), chaos.Only("^(ordinary|crash|lose-session|hang-call)$"), chaos.Days(0))
}

var initialize = mcpproto.InitializeRequest{Params: mcpproto.InitializeParams{ProtocolVersion: mcpproto.LATEST_PROTOCOL_VERSION}}

// lockedClient holds a mutex for the length of each call, as many clients do that were written by hand: virtual time cannot pass.
type lockedClient struct {
	chaos.Client
	mu sync.Mutex
}

func (c *lockedClient) Call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Client.Call(ctx, tool, arguments)
}

// TestAClientThatStopsTheTimeIsPlayedInRealTime: the run says so, and the day is played all the same.
func TestAClientThatStopsTheTimeIsPlayedInRealTime(t *testing.T) {
	dial := func(ctx context.Context, s *chaos.ClientServer) (chaos.Client, error) {
		c, err := gosdk.Dial(newSDKClient)(ctx, s)
		return &lockedClient{Client: c}, err
	}
	day := client.Case{Name: client.Ordinary, Kind: messages.Stdio, Era: messages.EraLegacy}.Day(client.Limits{Back: time.Second})
	day.Duration, day.Settle = messages.Duration(3*time.Second), messages.Duration(2*time.Second)
	day.Load = []scenario.Load{{Tool: scenario.WriteTool, Rate: 60, Timeout: messages.Duration(2 * time.Second)}}
	plan, err := day.Plan(0, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	var frozen *client.ErrFrozen
	if _, err := client.Run(t.Context(), plan, dial); !errors.As(err, &frozen) || !strings.Contains(frozen.Waiter, "lockedClient).Call") {
		t.Fatalf("virtual time passes: %v", err)
	}
	h, err := client.RunReal(t.Context(), plan, dial)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range client.Judge(h, client.Limits{Back: time.Second}) {
		if v.ID == "C5" && v.Answer != invariant.Holds {
			t.Errorf("%s: %s", v.ID, v.Why)
		}
	}
	results := 0
	for _, e := range h.Events {
		if e.Kind == history.End && e.Outcome == messages.OutcomeResult {
			results++
		}
	}
	if results < 20 {
		t.Errorf("%d calls have a result", results)
	}
}

// TestAClientOfOneTransport: what it does not have is left out, and a client that has nothing fails.
func TestAClientOfOneTransport(t *testing.T) {
	chaos.TestClient(t, chaos.Redial(func(ctx context.Context, stream io.ReadWriteCloser) (chaos.Client, error) {
		s, err := newSDKClient().Connect(ctx, &mcp.IOTransport{Reader: stream, Writer: stream}, nil)
		if err != nil {
			return nil, err
		}
		return gosdk.Session(s), nil
	}), chaos.Only("^ordinary$"), chaos.Days(0))
}

// repeatingClient sends every failed call again, whatever it was.
type repeatingClient struct{ chaos.Client }

func (c repeatingClient) Call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	if text, err := c.Client.Call(ctx, tool, arguments); err == nil {
		return text, nil
	}
	return c.Client.Call(ctx, tool, arguments)
}

// TestClientThatRepeats fails on purpose, in the child of the test below.
func TestClientThatRepeats(t *testing.T) {
	dir := os.Getenv("CHAOS_TEST_JUNIT")
	if dir == "" {
		t.Skip("it is for the child of TestAFailureOfAClientCanBeRead")
	}
	chaos.TestClient(t, func(ctx context.Context, s *chaos.ClientServer) (chaos.Client, error) {
		c, err := gosdk.Dial(newSDKClient)(ctx, s)
		return repeatingClient{c}, err
	}, chaos.Eras(messages.EraLegacy), chaos.Over(messages.Stdio), chaos.Only("^(die-mid-call|answer-and-die|crash|half-line|truncate|seed-.*)$"), chaos.Days(3), chaos.JUnit(dir))
}

// TestAFailureOfAClientCanBeRead: a client with a bug fails in the case that is about it and on random days, with the reason, the
// timeline and how to play the day again; the reports are written, and a random day was made smaller.
func TestAFailureOfAClientCanBeRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestClientThatRepeats$", "-test.v")
	child.Env = append(os.Environ(), "CHAOS_TEST_JUNIT="+dir)
	out, err := child.CombinedOutput()
	if err == nil {
		t.Errorf("it passes:\n%s", out)
	}
	for _, want := range []string{
		"--- FAIL: TestClientThatRepeats/stdio/legacy/die-mid-call", "was made once and sent twice", "made smaller from seed-", "What to do: After an error repeat a call only if", "client -> server  tools/call",
		"go test -run '^TestClientThatRepeats/stdio/legacy/die-mid-call$'",
		"3 cases failed. What was violated in them, the most frequent first", "C3, nothing is sent twice that may have run: in 3, such as TestClientThatRepeats/stdio/legacy/answer-and-die: ",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	junit, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	if err != nil || !strings.Contains(string(junit), `name="die-mid-call"`) || !strings.Contains(string(junit), "<failure") {
		t.Errorf("junit.xml: %v\n%s", err, junit)
	}
	if _, err := os.Stat(filepath.Join(dir, "TestClientThatRepeats-stdio-legacy-die-mid-call", "report.html")); err != nil {
		t.Error(err)
	}
}
