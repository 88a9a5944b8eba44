package chaos_test

import (
	"context"
	"io"
	"net/http"
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
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// dialStdio is a client over stdio alone.
func dialStdio() chaos.Dial {
	return chaos.Redial(func(ctx context.Context, stream io.ReadWriteCloser) (chaos.Client, error) {
		s, err := newSDKClient().Connect(ctx, &mcp.IOTransport{Reader: stream, Writer: stream}, nil)
		if err != nil {
			return nil, err
		}
		return gosdk.Session(s), nil
	})
}

// misuses are tests that would show nothing, or less than they say, and what each must fail with.
var misuses = []struct {
	name string
	test func(t *testing.T)
	want []string
}{
	{"client-only", func(t *testing.T) { chaos.TestClient(t, dialStdio(), chaos.Only("crahs")) },
		[]string{`chaos.Only: "crahs" matches no case; did you mean "crash"?`, "half-line", "seed-1 to seed-10"}},
	{"client-only-over", func(t *testing.T) {
		chaos.TestClient(t, dialStdio(), chaos.Only("^lose-session$"), chaos.Over(messages.Stdio), chaos.Eras(messages.EraLegacy))
	}, []string{"It matches http/legacy/lose-session, which chaos.Over or chaos.Eras leaves out"}},
	{"client-only-seed", func(t *testing.T) { chaos.TestClient(t, dialStdio(), chaos.Only("seed-99$"), chaos.Days(3)) },
		[]string{"seed-1 to seed-3"}},
	{"client-only-absent", func(t *testing.T) { chaos.TestClient(t, dialStdio(), chaos.Only("^http/legacy/lose-session$")) },
		[]string{"nothing was played", "that the client does not have"}},
	{"client-known", func(t *testing.T) {
		chaos.TestClient(t, dialStdio(), chaos.Known("^stdio/legacy/crahs$", "because"), chaos.Only("^ordinary$"))
	}, []string{`chaos.Known: "^stdio/legacy/crahs$" matches no TRANSPORT/ERA/CASE; did you mean "stdio/legacy/crash"?`}},
	{"client-known-why", func(t *testing.T) { chaos.TestClient(t, dialStdio(), chaos.Known("crash", "")) }, []string{"say why"}},
	{"client-over", func(t *testing.T) { chaos.TestClient(t, dialStdio(), chaos.Over(messages.WebSocket)) },
		[]string{`chaos.Over: clients are played over messages.Stdio and messages.HTTP, and not over "websocket"`}},
	{"client-eras", func(t *testing.T) { chaos.TestClient(t, dialStdio(), chaos.Eras("old")) }, []string{`chaos.Eras: there are`}},
	{"client-days", func(t *testing.T) { chaos.TestClient(t, dialStdio(), chaos.Days(-1)) }, []string{"chaos.Days: -1"}},
	{"client-within", func(t *testing.T) { chaos.TestClient(t, dialStdio(), chaos.Within(0)) }, []string{"chaos.Within: 0s"}},
	{"client-nil-option", func(t *testing.T) { chaos.TestClient(t, dialStdio(), chaos.Seed(1), nil) }, []string{"chaos.TestClient: option 2 is nil"}},
	{"client-nil", func(t *testing.T) { chaos.TestClient(t, nil) }, []string{"the dial is nil"}},
	{"client-nil-redial", func(t *testing.T) { chaos.TestClient(t, chaos.Redial(nil)) }, []string{"the dial is nil"}},
	{"client-nil-http", func(t *testing.T) { chaos.TestClient(t, chaos.RedialHTTP(nil)) }, []string{"the dial is nil"}},
	{"client-calls", func(t *testing.T) { chaos.TestClient(t, dialStdio(), chaos.Calls("x")) },
		[]string{"chaos.TestClient has no use for chaos.Calls: its options are Seed, Days"}},
	{"program-only", func(t *testing.T) { chaos.TestProgram(t, []string{os.Args[0], "adapter"}, chaos.Only("crahs")) },
		[]string{`"crahs" matches no name, number or fault of a case; did you mean "crash"?`, `"half an answer" (half-line)`}},
	{"program-known", func(t *testing.T) { chaos.TestProgram(t, []string{os.Args[0], "adapter"}, chaos.Known("crash", "x")) },
		[]string{"chaos.TestProgram has no use for chaos.Known: its options are Seed, Only, JUnit"}},
	{"server-only", func(t *testing.T) { chaos.TestServer(t, chaos.InProcess(serveEcho), chaos.Only("^handshak$")) },
		[]string{`chaos.Only: "^handshak$" matches no finding; did you mean "handshake"?`, "There are start (pass), "}},
	{"server-only-dead", func(t *testing.T) {
		chaos.TestServer(t, chaos.Handler(http.NotFoundHandler()), chaos.Only("^session$"))
	}, []string{"nothing was tested", "There are start (fail): it does not connect"}},
	{"server-days", func(t *testing.T) { chaos.TestServer(t, chaos.InProcess(serveEcho), chaos.Days(3)) },
		[]string{"chaos.TestServer has no use for chaos.Days"}},
	{"server-none", func(t *testing.T) { chaos.TestServer(t, chaos.ServerTarget{}) }, []string{"there is no server: make one with chaos.Spec"}},
	{"server-spec", func(t *testing.T) { chaos.TestServer(t, chaos.Spec(messages.Spec{Args: []string{"x"}})) }, []string{"chaos.Spec: the spec has no Command"}},
	{"server-disabled", func(t *testing.T) { chaos.TestServer(t, chaos.Spec(messages.Spec{Command: "x", Disabled: true})) },
		[]string{"nothing was tested: start time: it is disabled"}},
	{"server-handler", func(t *testing.T) { chaos.TestServer(t, chaos.Handler(nil)) }, []string{"chaos.Handler: the handler is nil"}},
	{"server-func", func(t *testing.T) { chaos.TestServer(t, chaos.Handler(http.HandlerFunc(nil))) }, []string{"chaos.Handler: the handler is nil"}},
	{"server-in-process", func(t *testing.T) {
		chaos.TestServer(t, chaos.InProcess((func(context.Context, inprocess.Peer) error)(nil)))
	}, []string{"chaos.InProcess: the function is nil"}},
}

// TestMisuses fails on purpose, in the child of the test below.
func TestMisuses(t *testing.T) {
	if os.Getenv("CHAOS_TEST_MISUSE") == "" {
		return
	}
	for _, m := range misuses {
		t.Run(m.name, m.test)
	}
}

// TestATestThatShowsNothingFails: a misspelled Only or Known, an option that does not apply and a server that is none are failures that
// name the fault; each was a test that passed, or a failure that spoke of something else.
func TestATestThatShowsNothingFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestMisuses$", "-test.v")
	child.Env = append(os.Environ(), "CHAOS_TEST_MISUSE=1")
	out, err := child.CombinedOutput()
	if err == nil {
		t.Errorf("it passes:\n%s", out)
	}
	for _, m := range misuses {
		_, said, _ := strings.Cut(string(out), "=== RUN   TestMisuses/"+m.name+"\n")
		for _, next := range misuses {
			said, _, _ = strings.Cut(said, "=== RUN   TestMisuses/"+next.name+"\n")
		}
		for _, want := range m.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s does not say %q:\n%s", m.name, want, said)
			}
		}
		if !strings.Contains(string(out), "--- FAIL: TestMisuses/"+m.name+" ") {
			t.Errorf("%s passes", m.name)
		}
	}
}

// TestAMisuseIsInJUnit fails on purpose, in its own child: a reader of junit.xml alone sees that nothing was tested.
func TestAMisuseIsInJUnit(t *testing.T) {
	if dir := os.Getenv("CHAOS_TEST_MISUSE_JUNIT"); dir != "" {
		chaos.TestClient(t, dialStdio(), chaos.Only("crahs"), chaos.JUnit(dir))
		return
	}
	dir := filepath.Join(t.TempDir(), "out")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAMisuseIsInJUnit$")
	child.Env = append(os.Environ(), "CHAOS_TEST_MISUSE_JUNIT="+dir)
	out, err := child.CombinedOutput()
	junit, readErr := os.ReadFile(filepath.Join(dir, "junit.xml"))
	if err == nil || readErr != nil || !strings.Contains(string(junit), "<failure") || !strings.Contains(string(junit), "crahs") {
		t.Errorf("%v, %v\n%s\n%s", err, readErr, junit, out)
	}
}

// TestOnlyKnowsFullNames: a name can be copied from the output of go test.
func TestOnlyKnowsFullNames(t *testing.T) {
	chaos.TestClient(t, dialStdio(), chaos.Only("^stdio/legacy/ordinary$"), chaos.Days(0))
}
