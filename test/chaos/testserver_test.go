package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// newSDKServer is a server of the Go SDK with one tool.
func newSDKServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "ours", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "now", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noon"}}}, nil, nil
		})
	return s
}

func TestServerThatIsAHandler(t *testing.T) {
	server := newSDKServer()
	var calls atomic.Int32
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				calls.Add(1)
			}
			return next(ctx, method, r)
		}
	})
	chaos.TestServer(t, chaos.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)),
		chaos.Only("^(start|handshake|tools|call .*|restart)$"))
	// A tool that is marked read-only and needs no argument is called without Calls.
	if calls.Load() == 0 {
		t.Error("no tool was called")
	}
}

func TestServerThatIsACommand(t *testing.T) {
	command, args := servers.Command("good")
	chaos.TestServer(t, chaos.Spec(messages.Spec{Command: command, Args: args}), chaos.Calls(`echo {"text":"x"}`), chaos.JUnit(t.TempDir()))
}

// TestServerThatLogsToItsOutput fails on purpose, in the child of the test below.
func TestServerThatLogsToItsOutput(t *testing.T) {
	if os.Getenv("CHAOS_TEST_SERVER") == "" {
		t.Skip("it is for the child of TestAFailureOfAServerCanBeRead")
	}
	command, args := servers.Command("noise")
	chaos.TestServer(t, chaos.Spec(messages.Spec{Command: command, Args: args}))
}

// TestAServerOfThisProcessHasNoAddress: the loopback address under which TestServer serves it says nothing to its owner; why a function
// ended does. The test starts itself once more, as a child whose three servers refuse, and reads what the child prints.
func TestAServerOfThisProcessHasNoAddress(t *testing.T) {
	if os.Getenv("CHAOS_TEST_SERVER") == "refuses" {
		t.Run("function", func(t *testing.T) {
			chaos.TestServer(t, chaos.InProcess(func(context.Context, inprocess.Peer) error { return errors.New("no database") }), chaos.Only("^start$"))
		})
		t.Run("panic", func(t *testing.T) {
			chaos.TestServer(t, chaos.InProcess(func(context.Context, inprocess.Peer) error { panic("ouch") }), chaos.Only("^start$"))
		})
		t.Run("handler", func(t *testing.T) {
			chaos.TestServer(t, chaos.Handler(http.NotFoundHandler()), chaos.Only("^start$"))
		})
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestAServerOfThisProcessHasNoAddress$", "-test.v")
	child.Env = append(os.Environ(), "CHAOS_TEST_SERVER=refuses")
	out, err := child.CombinedOutput()
	if err == nil || strings.Contains(string(out), "127.0.0.1") || strings.Count(string(out), "the server of this test") < 1 ||
		!strings.Contains(string(out), "; the function returned: no database") || !strings.Contains(string(out), "; the function panicked: ouch") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAFailureOfAServerCanBeRead(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestServerThatLogsToItsOutput$", "-test.v")
	child.Env = append(os.Environ(), "CHAOS_TEST_SERVER=1")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "log to standard error") || !strings.Contains(string(out), "--- FAIL: TestServerThatLogsToItsOutput/") {
		t.Errorf("%v\n%s", err, out)
	}
}

// serveEcho is a server of the legacy era that is a function of this process.
func serveEcho(ctx context.Context, peer inprocess.Peer) error {
	for {
		b, err := peer.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(b, &m) != nil || m.ID == nil || m.Method == "" {
			continue
		}
		answer := map[string]string{
			"initialize": `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`,
			"tools/list": `"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`,
			"tools/call": `"result":{"content":[{"type":"text","text":"x"}]}`,
			"ping":       `"result":{}`,
		}[m.Method]
		if answer == "" {
			answer = `"error":{"code":-32601,"message":"no such method"}`
		}
		if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)); err != nil {
			return err
		}
	}
}

func TestServerOfThisProcess(t *testing.T) {
	chaos.TestServer(t, chaos.InProcess(serveEcho), chaos.Only("^(start|handshake|call .*)$"))
}
