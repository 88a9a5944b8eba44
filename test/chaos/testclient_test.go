package chaos_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/gosdk"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/mcpgo"
)

// few are the cases that tests of this package play: the whole is played by whoever has a client.
const few = "^(ordinary|crash|die-mid-call|half-line|hang-call|list-changed|lose-session|cursor-loop|seed-1)$"

func newSDKClient() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "ours", Version: "1"}, nil)
}

// The clients of two libraries, as their documentation shows them.
func TestClientOfTheGoSDK(t *testing.T) {
	chaos.TestClient(t, gosdk.Dial(newSDKClient), chaos.Only(few), chaos.Days(1), chaos.JUnit(t.TempDir()))
}

func TestClientOfMcpGo(t *testing.T) {
	chaos.TestClient(t, mcpgo.Dial(), chaos.Only(few), chaos.Days(1))
}

func TestClientOverHTTP(t *testing.T) {
	chaos.TestClient(t, mcpgo.Dial(), chaos.Over(messages.HTTP), chaos.Only("^(ordinary|lose-session)$"), chaos.Days(0))
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
	}, chaos.Eras(messages.EraLegacy), chaos.Only("^(die-mid-call|seed-12)$"), chaos.Seed(12), chaos.Days(1), chaos.JUnit(dir))
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
		"--- FAIL: TestClientThatRepeats/stdio/legacy/die-mid-call", "was made once and sent twice", "made smaller from seed-1",
		"go test -run '^TestClientThatRepeats/stdio/legacy/die-mid-call$'",
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
