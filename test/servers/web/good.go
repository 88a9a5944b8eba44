package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Good serves one good server in both ways: streamable HTTP with sessions on /mcp, HTTP+SSE on /sse and /message.
func Good() http.Handler {
	s := Server("web")
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s, server.WithStateful(true)))
	old := server.NewSSEServer(s)
	mux.Handle("/sse", old)
	mux.Handle("/message", old)
	return mux
}

// Server is the server behind Good: echo {text}, add {a, b}, sleep {for}, fail {text}, header {name}, grow {name}.
func Server(name string) *server.MCPServer {
	s := server.NewMCPServer(name, "1.0.0", server.WithToolCapabilities(true), server.WithRecovery(),
		server.WithInstructions("A fixture of mcpvisor's tests."))
	type request = mcp.CallToolRequest
	type answers = func(ctx context.Context, r request, value string) (string, error)
	text := func(tool, description, parameter string, answer answers) {
		s.AddTool(mcp.NewTool(tool, mcp.WithDescription(description), mcp.WithString(parameter, mcp.Required())),
			func(ctx context.Context, r request) (*mcp.CallToolResult, error) {
				got, err := answer(ctx, r, r.GetString(parameter, ""))
				if err != nil {
					return mcp.NewToolResultError(err.Error()), nil
				}
				return mcp.NewToolResultText(got), nil
			})
	}
	text("echo", "answers with its text", "text", func(_ context.Context, _ request, v string) (string, error) {
		return v, nil
	})
	text("fail", "answers isError with its text", "text", func(_ context.Context, _ request, v string) (string, error) {
		return "", fmt.Errorf("%s", v)
	})
	text("header", "answers with a header", "name", func(_ context.Context, r request, v string) (string, error) {
		return r.Header.Get(v), nil
	})
	text("sleep", "answers after a while, like 1s", "for", func(ctx context.Context, _ request, v string) (string, error) {
		d, err := time.ParseDuration(v)
		if err != nil {
			return "", err
		}
		select {
		case <-time.After(d):
			return "slept " + d.String(), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	text("grow", "adds a tool of that name", "name", func(_ context.Context, _ request, v string) (string, error) {
		s.AddTool(mcp.NewTool(v), func(context.Context, request) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(v), nil
		})
		return "done", nil
	})
	s.AddTool(mcp.NewTool("add", mcp.WithDescription("adds two numbers"), mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required())),
		func(_ context.Context, r request) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(fmt.Sprint(r.GetFloat("a", 0) + r.GetFloat("b", 0))), nil
		})
	return s
}

// Serve puts h on a loopback port until tb ends and returns its URL without a path. Open connections are cut then, so
// that a handler which hangs does not hold up the test.
func Serve(tb testing.TB, h http.Handler) string {
	tb.Helper()
	s := httptest.NewServer(h)
	tb.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// Restartable is a good server whose process can be thought to restart: Restart forgets every session and cuts nothing,
// so that the next request of an old session is answered with 404.
type Restartable struct {
	mu    sync.Mutex
	inner http.Handler
}

// NewRestartable starts it.
func NewRestartable() *Restartable { return &Restartable{inner: Good()} }

// Restart forgets all sessions.
func (r *Restartable) Restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inner = Good()
}

// ServeHTTP implements http.Handler.
func (r *Restartable) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	h := r.inner
	r.mu.Unlock()
	h.ServeHTTP(w, req)
}

// Recorder keeps the headers of every request on its way to next.
type Recorder struct {
	Next http.Handler

	mu   sync.Mutex
	seen []RecordedRequest
}

// RecordedRequest is one request.
type RecordedRequest struct {
	Method, Path string
	Header       http.Header
}

// ServeHTTP implements http.Handler.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.seen = append(r.seen, RecordedRequest{req.Method, req.URL.Path, req.Header.Clone()})
	r.mu.Unlock()
	r.Next.ServeHTTP(w, req)
}

// Requests are the requests so far.
func (r *Recorder) Requests() []RecordedRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]RecordedRequest(nil), r.seen...)
}
