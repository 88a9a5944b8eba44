package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
	fixtures "github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// marker is the only argument of the process with the network servers.
const marker = "mcpvisor-scale-servers"

// Main serves the network servers if args ask for it, and exits with its input. A program that measures must call it first.
func Main(args []string) bool {
	if len(args) != 1 || args[0] != marker {
		return false
	}
	servers.ServeChild(httptest.NewServer(tinyOverHTTP{}).URL)
	return true
}

// Web is a process with servers over streamable HTTP, so that their cost is not counted as a client's. Every path is a server
// of its own; below /stream servers open a GET stream, below /plain they have none.
type Web struct {
	*servers.Child
	URL string
}

// NewWeb starts the process.
func NewWeb() (*Web, error) {
	c, err := servers.StartChild(marker)
	if err != nil {
		return nil, err
	}
	return &Web{c, c.Line}, nil
}

// tinyOverHTTP is a server of the legacy era with one tool, on every path.
type tinyOverHTTP struct{}

// ServeHTTP implements http.Handler.
func (tinyOverHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/stream") {
		tinyAnswers.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// Tiny is an in-process server with one tool that holds nothing but its goroutine. A call with the argument change announces
// changed tools.
func Tiny(ctx context.Context, peer inprocess.Peer) error {
	direct, ok := peer.(inprocess.DirectPeer)
	if !ok {
		return errors.New("the peer is not that of package inprocess")
	}
	answer := func(msg []byte) []byte {
		if bytes.Contains(msg, []byte(`"change":true`)) {
			// Write fails only when the connection ends.
			_ = peer.Write(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
		}
		return tiny.Answer(msg)
	}
	direct.Answer(func(m transports.Message) []byte { return answer(m.Body) })
	direct.Receive(func(m transports.Message) {
		msg := m.Body
		if answer := answer(msg); answer != nil {
			_ = peer.Write(ctx, answer)
		}
	})
	<-ctx.Done()
	return nil
}

// tiny has one tool, and tinyAnswers serves it over HTTP.
var (
	tiny = &servers.Fixed{
		Name: "tiny", Tools: `{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`, Call: `{"content":[]}`,
	}
	tinyAnswers = fixtures.Answers(tiny.Answer)
)

// Kinds are the kinds of servers that are measured.
var Kinds = []string{"in process", library, library + ", legacy", "http", "http with a stream", "stdio"}

// library is the kind of an in-process server made with mcp-go, one for each name: its own memory is counted too.
const library = "in process, mcp-go"

// serverSpecs returns the specs of n servers of a kind, by name. web may be nil if the kind is not over HTTP.
func serverSpecs(kind string, n int, web *Web) map[string]supervisor.Spec {
	out := make(map[string]supervisor.Spec, n)
	for i := range n {
		name := fmt.Sprintf("s%05d", i)
		switch kind {
		case "stdio":
			command, args := servers.Command("cheap")
			out[name] = supervisor.Spec{Command: command, Args: args}
		case "http":
			out[name] = supervisor.Spec{URL: web.URL + "/plain/" + name}
		case "http with a stream":
			out[name] = supervisor.Spec{URL: web.URL + "/stream/" + name}
		case library:
			out[name] = supervisor.Spec{Type: messages.SDK, Name: "library"}
		case library + ", legacy":
			out[name] = supervisor.Spec{Type: messages.SDK, Name: "library", Era: messages.EraLegacy}
		default:
			out[name] = supervisor.Spec{Type: messages.SDK, Name: "tiny"}
		}
	}
	return out
}

// serveLibrary is a server of mcp-go with one tool.
func serveLibrary(ctx context.Context, peer inprocess.Peer) error {
	s := server.NewMCPServer("library", "1", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("echo"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("ok"), nil
	})
	return mcpgo.Serve(s)(ctx, peer)
}

// startManager starts a manager that knows Tiny as the in-process server "tiny", and one of mcp-go as "library".
func startManager(ctx context.Context, specs map[string]supervisor.Spec) (*supervisor.Manager, error) {
	return supervisor.Start(ctx, supervisor.Config{
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"tiny": Tiny, "library": serveLibrary}, Servers: specs,
	})
}

// awaitConnected waits until every server has settled, and returns an error for one that is not connected.
func awaitConnected(ctx context.Context, m *supervisor.Manager) error {
	if err := m.Settled(ctx); err != nil {
		return err
	}
	for _, st := range m.Status() {
		if st.Status != messages.Connected {
			return fmt.Errorf("%s is %s: %s", st.Name, st.Status, st.Error)
		}
	}
	return nil
}

// closeWithin closes a manager within a minute, and keeps its error if there was none before.
func closeWithin(m *supervisor.Manager, err *error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if e := m.Close(ctx); e != nil && *err == nil {
		*err = e
	}
}
