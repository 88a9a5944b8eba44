package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

const marker = "mcpvisor-scale-servers"

// Main serves the network servers if args ask for it, and ends the process then. A program that measures begins with it.
func Main(args []string) bool {
	if len(args) != 1 || args[0] != marker {
		return false
	}
	s := httptest.NewServer(tinyOverHTTP{})
	if _, err := fmt.Println(s.URL); err == nil {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with whoever started it
	}
	os.Exit(0)
	return true
}

// Web is a process with servers over streamable HTTP, so that what they cost is not taken for what a client costs. Every path
// is a server of its own; below /stream they open a stream for what they send unasked, below /plain they have none.
type Web struct {
	URL     string
	process *exec.Cmd
	input   io.Closer
}

// NewWeb starts the process.
func NewWeb() (*Web, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &Web{process: exec.Command(self, marker)}
	w.process.Stderr = os.Stderr
	in, err := w.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.input = in
	if err := w.process.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscanln(out, &w.URL); err != nil {
		w.Close()
		return nil, fmt.Errorf("the servers did not say where they are: %w", err)
	}
	return w, nil
}

// Close ends it.
func (w *Web) Close() {
	_ = w.input.Close()
	_ = w.process.Wait() // whatever it says of its end, it has ended
}

// tinyOverHTTP is a server of the legacy era with one tool, on every path.
type tinyOverHTTP struct{}

func (tinyOverHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		if len(r.URL.Path) < 7 || r.URL.Path[:7] != "/stream" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case http.MethodPost:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		answer := tinyAnswer(body)
		if answer == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "scale")
		_, _ = w.Write(answer)
	}
}

// Tiny is a server in process with one tool that holds nothing but its goroutine. A call with the argument change says that
// its tools have changed.
func Tiny(ctx context.Context, peer transports.Peer) error {
	direct, ok := peer.(transports.DirectPeer)
	if !ok {
		return errors.New("the peer is not that of transports.InProcess")
	}
	answer := func(msg []byte) []byte {
		if bytes.Contains(msg, []byte(`"change":true`)) {
			_ = peer.Write(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)) // it fails at the end only
		}
		return tinyAnswer(msg)
	}
	direct.Answer(func(m transports.Message) []byte { return answer(m.Body) })
	direct.Receive(func(msg []byte) {
		if answer := answer(msg); answer != nil {
			_ = peer.Write(ctx, answer)
		}
	})
	<-ctx.Done()
	return nil
}

// tinyAnswer is the answer to a message, nil if it wants none. It looks for what it needs instead of decoding the message: a
// decoder would grow the stack of the goroutine that it runs on, and that stack would be measured as ours.
func tinyAnswer(msg []byte) []byte {
	_, id, found := bytes.Cut(msg, []byte(`"id":`))
	end := bytes.IndexAny(id, ",}")
	if !found || end < 0 {
		return nil
	}
	answer := append([]byte(`{"jsonrpc":"2.0","id":`), id[:end]...)
	for _, known := range tinyAnswers {
		if bytes.Contains(msg, []byte(known.method)) {
			return append(append(answer, known.result...), '}')
		}
	}
	return append(answer, `,"error":{"code":-32601,"message":"Method not found"}}`...)
}

var tinyAnswers = []struct{ method, result string }{
	{`"method":"initialize"`, `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},` +
		`"serverInfo":{"name":"tiny","version":"1"}}`},
	{`"method":"tools/list"`, `,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`},
	{`"method":"tools/call"`, `,"result":{"content":[]}`},
}

// Kinds are the kinds of servers that are measured.
var Kinds = []string{"in process", library, library + ", legacy", "http", "http with a stream", "stdio"}

// library is the kind of a server in process that is made with mcp-go, one for each: what it holds itself is counted.
const library = "in process, mcp-go"

// serverSpecs are n servers of a kind, by name. web may be nil if none of them is over HTTP.
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
func serveLibrary(ctx context.Context, peer transports.Peer) error {
	s := server.NewMCPServer("library", "1", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("echo"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("ok"), nil
	})
	return mcpgo.Serve(s)(ctx, peer)
}

// startManager begins a manager that has Tiny as the server "tiny" in process, and one of mcp-go as "library".
func startManager(ctx context.Context, specs map[string]supervisor.Spec) (*supervisor.Manager, error) {
	return supervisor.Start(ctx, supervisor.Config{
		InProcess: map[string]func(context.Context, transports.Peer) error{"tiny": Tiny, "library": serveLibrary}, Servers: specs,
	})
}

// awaitConnected waits until every server has settled, and says which is not connected.
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

// closeWithin ends a manager.
func closeWithin(m *supervisor.Manager, err *error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if e := m.Close(ctx); e != nil && *err == nil {
		*err = e
	}
}
