package chaos_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/gosdk"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/mcpgo"
)

// A client of the Go SDK, with its own options; TestClientOfTheGoSDK runs it.
func ExampleTestClient() {
	var t *testing.T // that of the test
	chaos.TestClient(t, gosdk.Dial(func() *mcp.Client {
		return mcp.NewClient(&mcp.Implementation{Name: "ours", Version: "1"}, nil)
	}))
}

// A client of mcp-go over streamable HTTP, with a thousand random days.
func ExampleTestClient_mcpgo() {
	var t *testing.T // that of the test
	chaos.TestClient(t, mcpgo.Dial(), chaos.Over(messages.HTTP), chaos.Seed(1), chaos.Days(1000), chaos.JUnit("out"))
}

// ourClient is any client with three methods.
type ourClient struct{ io.ReadWriteCloser }

func (ourClient) Tools(context.Context) ([]string, error) { return nil, nil }
func (ourClient) Call(context.Context, string, map[string]any) (text string, err error) {
	return "", nil
}

// A client that does not connect again by itself gets the standard input and output of its server; Redial does what a program around
// it would.
func ExampleRedial() {
	var t *testing.T // that of the test
	chaos.TestClient(t, chaos.Redial(func(_ context.Context, stream io.ReadWriteCloser) (chaos.Client, error) {
		return ourClient{stream}, nil
	}))
}

// A server that is an http.Handler. Tools are called only if it says that they are read-only, or if Calls names them.
func ExampleTestServer() {
	var t *testing.T // that of the test
	server := mcp.NewServer(&mcp.Implementation{Name: "ours", Version: "1"}, nil)
	chaos.TestServer(t, chaos.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
}
