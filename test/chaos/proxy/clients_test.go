//go:build unix

package proxy_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	mcpgoclient "github.com/mark3labs/mcp-go/client"
	mcpgotransport "github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the Go SDK's client and mcp-go's see through a proxy: the same as without one, and with a rule what it says and
// nothing else.

type echoIn struct {
	Text string `json:"text"`
}

func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	for _, name := range []string{"echo", "other"} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, in echoIn) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
	}
	return s
}

func mcpgoServer() *mcpgoserver.MCPServer {
	s := mcpgoserver.NewMCPServer("mcp-go", "1")
	for _, name := range []string{"echo", "other"} {
		s.AddTool(mcpgo.NewTool(name, mcpgo.WithString("text")), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			return mcpgo.NewToolResultText(r.GetString("text", "")), nil
		})
	}
	return s
}

// client is as much of a client as the tests need.
type client struct {
	list  func(context.Context) ([]string, error)
	call  func(ctx context.Context, tool, text string) (string, error)
	close func()
}

func sdkClient(t *testing.T, tr mcp.Transport) client {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client{
		func(ctx context.Context) (names []string, err error) {
			l, err := s.ListTools(ctx, nil)
			if err != nil {
				return nil, err
			}
			for _, tool := range l.Tools {
				names = append(names, tool.Name)
			}
			return names, nil
		},
		func(ctx context.Context, tool, text string) (string, error) {
			r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: echoIn{text}})
			if err != nil {
				return "", err
			}
			return r.Content[0].(*mcp.TextContent).Text, nil
		},
		func() { _ = s.Close() },
	}
}

func mcpgoClient(t *testing.T, tr mcpgotransport.Interface) client {
	t.Helper()
	c := mcpgoclient.NewClient(tr)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ask mcpgo.InitializeRequest
	ask.Params.ProtocolVersion = "2025-11-25"
	if _, err := c.Initialize(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	return client{
		func(ctx context.Context) (names []string, err error) {
			l, err := c.ListTools(ctx, mcpgo.ListToolsRequest{})
			if err != nil {
				return nil, err
			}
			for _, tool := range l.Tools {
				names = append(names, tool.Name)
			}
			return names, nil
		},
		func(ctx context.Context, tool, text string) (string, error) {
			var ask mcpgo.CallToolRequest
			ask.Params.Name, ask.Params.Arguments = tool, map[string]any{"text": text}
			r, err := c.CallTool(ctx, ask)
			if err != nil {
				return "", err
			}
			return r.Content[0].(mcpgo.TextContent).Text, nil
		},
		func() { _ = c.Close() },
	}
}

// startPiped runs a stdio proxy between pipes: what a client that starts a process has.
func startPiped(t *testing.T, role string, rules ...string) (io.ReadCloser, io.WriteCloser) {
	t.Helper()
	s := newStdioProxy(t, role, rules...)
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.In, s.Out = inR, outW
	over := make(chan struct{})
	go func() {
		defer close(over)
		if _, err := s.Run(context.Background()); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(func() { inW.Close(); <-over; outR.Close() })
	return outR, inW
}

func TestClientsOfOthers(t *testing.T) {
	sdkHTTP := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdkServer() }, nil)
	sdkSSE := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sdkServer() }, nil)
	mcpgoHTTP := mcpgoserver.NewStreamableHTTPServer(mcpgoServer(), mcpgoserver.WithStateful(true))
	for name, open := range map[string]func(t *testing.T, rules ...string) client{
		"the Go SDK over stdio": func(t *testing.T, rules ...string) client {
			r, w := startPiped(t, "sdk", rules...)
			return sdkClient(t, &mcp.IOTransport{Reader: r, Writer: w})
		},
		"mcp-go over stdio": func(t *testing.T, rules ...string) client {
			r, w := startPiped(t, "mcpgo", rules...)
			return mcpgoClient(t, mcpgotransport.NewIO(r, w, io.NopCloser(strings.NewReader(""))))
		},
		"the Go SDK over streamable HTTP": func(t *testing.T, rules ...string) client {
			url, _, _ := startHTTPProxy(t, sdkHTTP, rules...)
			return sdkClient(t, &mcp.StreamableClientTransport{Endpoint: url})
		},
		"the Go SDK over SSE": func(t *testing.T, rules ...string) client {
			url, _, _ := startHTTPProxy(t, sdkSSE, rules...)
			return sdkClient(t, &mcp.SSEClientTransport{Endpoint: url})
		},
		"mcp-go over streamable HTTP": func(t *testing.T, rules ...string) client {
			url, _, _ := startHTTPProxy(t, mcpgoHTTP, rules...)
			tr, err := mcpgotransport.NewStreamableHTTP(url)
			if err != nil {
				t.Fatal(err)
			}
			return mcpgoClient(t, tr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, rules := range [][]string{nil, {unmatchedRule}, {"tool-error tool=echo rpc=yes text=broken"}} {
				c := open(t, rules...)
				ctx, cancel := context.WithTimeout(t.Context(), bound)
				if names, err := c.list(ctx); err != nil || strings.Join(names, " ") != "echo other" {
					t.Errorf("rules %q: tools %q, %v", rules, names, err)
				}
				got, err := c.call(ctx, "echo", "hello 漢")
				if broken := len(rules) > 0 && rules[0] != unmatchedRule; broken != (err != nil) || !broken && got != "hello 漢" {
					t.Errorf("rules %q: echo gave %q, %v", rules, got, err)
				} else if broken && !strings.Contains(err.Error(), "broken") {
					t.Errorf("echo: %v", err)
				}
				if got, err := c.call(ctx, "other", "hi"); err != nil || got != "hi" {
					t.Errorf("rules %q: other gave %q, %v", rules, got, err)
				}
				c.close()
				cancel()
			}
		})
	}
}

// BenchmarkCall is a call over stdio, to a process directly and through a proxy: passive, and with a rule that matches
// nothing.
func BenchmarkCall(b *testing.B) {
	ask := []byte(askEcho)
	read := make([]byte, 64<<10)
	loop := func(b *testing.B, w io.Writer, r io.Reader) {
		for b.Loop() {
			if _, err := w.Write(ask); err != nil {
				b.Fatal(err)
			}
			for n := 0; n == 0 || read[n-1] != '\n'; {
				m, err := r.Read(read[n:])
				if err != nil {
					b.Fatal(err)
				}
				n += m
			}
		}
	}
	b.Run("direct", func(b *testing.B) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleVariable+"=server")
		w, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		r, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		loop(b, w, r)
		w.Close()
		_ = cmd.Wait()
	})
	for name, rules := range map[string][]string{"passive": nil, "nothing matches": {unmatchedRule}} {
		b.Run(name, func(b *testing.B) {
			s := newStdioProxy(b, "server", rules...)
			inR, inW, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			outR, outW, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			s.In, s.Out = inR, outW
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, _ = s.Run(context.Background())
			}()
			loop(b, inW, outR)
			inW.Close()
			<-over
			outR.Close()
		})
	}
}
