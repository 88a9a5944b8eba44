package compare

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// Open connects a client to the server of a case. It returns nil without an error if the client cannot do the case.
func (w *ServerSet) Open(ctx context.Context, c Case, client string) (*ConnectedClient, error) {
	switch client {
	case "text":
		return w.openMcpvisor(ctx, c, messages.EraLegacy, readText)
	case "default":
		return w.openMcpvisor(ctx, c, "", readText)
	case "raw":
		return w.openMcpvisor(ctx, c, messages.EraLegacy, readRaw)
	case "mcp-go":
		return w.openMcpGo(ctx, c)
	case "go-sdk":
		return w.openGoSDK(ctx, c)
	case "floor":
		return w.openFloor(ctx, c)
	}
	return nil, fmt.Errorf("there is no client %q", client)
}

// stdioCommand returns the command line of the server of a stdio case, false for other cases.
func (c Case) stdioCommand() (command string, args []string, ok bool) {
	switch c.Server {
	case "stdio":
		command, args = servers.Command("cheap")
		return command, args, true
	case "stdio-good":
		command, args = servers.Command("good")
		return command, args, true
	}
	return "", nil, false
}

// serverURL returns the URL of the server of an HTTP case, empty for other cases.
func (w *ServerSet) serverURL(c Case) string {
	switch c.Server {
	case "http":
		return w.plain + "/mcp"
	case "https-sse":
		return w.tls + "/mcp"
	}
	return ""
}

// httpClient returns the client that an application would give to a library: with enough idle connections for its callers, and
// with the authority of the test's certificate.
func (w *ServerSet) httpClient(c Case) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, max(c.Callers, 2)
	t.ForceAttemptHTTP2 = false
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.authority)
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: t}
}

// callStyle is a way in which an application uses mcpvisor for one call: it writes the arguments and reads the answer differently.
type callStyle func(m *supervisor.Manager, size int) func(context.Context) error

// readText passes a map and reads the text, as an agent does and as the other clients do here.
func readText(m *supervisor.Manager, size int) func(context.Context) error {
	args := map[string]any{"text": paddingText(size)}
	return func(ctx context.Context) error {
		r, err := m.CallTool(ctx, "mcp__s__echo", args)
		if err == nil && (r.IsError || len(r.Text()) < size) {
			err = fmt.Errorf("mcpvisor got %.80q", r.Raw)
		}
		return err
	}
}

// readRaw passes bytes and takes the bytes of the answer, as a gateway does.
func readRaw(m *supervisor.Manager, size int) func(context.Context) error {
	args := json.RawMessage(`{"text":"` + paddingText(size) + `"}`)
	return func(ctx context.Context) error {
		r, err := m.CallTool(ctx, "mcp__s__echo", args)
		if err == nil && (r.IsError || len(r.Raw) < size) {
			err = fmt.Errorf("mcpvisor got %.80q", r.Raw)
		}
		return err
	}
}

// openMcpvisor starts a manager with the server of the case. era is empty for the default.
func (w *ServerSet) openMcpvisor(ctx context.Context, c Case, era messages.Era, read callStyle) (*ConnectedClient, error) {
	spec := supervisor.Spec{Era: era}
	cfg := supervisor.Config{}
	if command, args, ok := c.stdioCommand(); ok {
		spec.Command, spec.Args = command, args
	} else if url := w.serverURL(c); url != "" {
		spec.URL = url
		if c.Server == "https-sse" {
			spec.TLS = &messages.TLS{CAFile: w.caFile()}
		}
	} else {
		spec.Type = messages.SDK
		cfg.InProcess = map[string]func(context.Context, inprocess.Peer) error{"s": mcpgo.Serve(w.inProcess)}
	}
	cfg.Servers = map[string]supervisor.Spec{"s": spec}
	m, err := supervisor.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	// The context of the measurement may have ended by then, so that closing has a bound of its own.
	closed := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = m.Close(ctx)
	}
	// What is measured begins with a connected server; connecting has a section of its own.
	if err := m.Settled(ctx); err != nil || !m.Server("s").IsConnected() {
		st, _ := m.ServerStatus("s")
		closed()
		return nil, fmt.Errorf("mcpvisor is not connected: %w %s", err, st.Error)
	}
	call := read(m, c.Size)
	return &ConnectedClient{
		Call:  func(ctx context.Context, _ int) error { return call(ctx) },
		Close: closed,
	}, nil
}

// openMcpGo connects the client of mark3labs/mcp-go.
func (w *ServerSet) openMcpGo(ctx context.Context, c Case) (*ConnectedClient, error) {
	var t transport.Interface
	if command, args, ok := c.stdioCommand(); ok {
		t = transport.NewStdio(command, nil, args...)
	} else if url := w.serverURL(c); url != "" {
		h, err := transport.NewStreamableHTTP(url, transport.WithHTTPBasicClient(w.httpClient(c)))
		if err != nil {
			return nil, err
		}
		t = h
	} else {
		t = transport.NewInProcessTransport(w.inProcess)
	}
	client := mcpclient.NewClient(t)
	// Start's context is the lifetime of the transport, which only Close may end.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	init := mcp.InitializeRequest{}
	init.Params.ProtocolVersion = "2025-11-25"
	init.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := client.Initialize(ctx, init); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("mcp-go: %w", err)
	}
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = "echo", map[string]any{"text": paddingText(c.Size)}
	return &ConnectedClient{
		Call: func(ctx context.Context, _ int) error {
			r, err := client.CallTool(ctx, request)
			if err == nil && (r.IsError || len(r.Content) != 1 || len(mcp.GetTextFromContent(r.Content[0])) < c.Size) {
				err = fmt.Errorf("mcp-go got %v", r)
			}
			return err
		},
		Close: func() { _ = client.Close() },
	}, nil
}

// openGoSDK connects the client of the official SDK. Its standalone stream is off, because this server has none.
func (w *ServerSet) openGoSDK(ctx context.Context, c Case) (*ConnectedClient, error) {
	var t sdk.Transport
	end := func() {}
	if command, args, ok := c.stdioCommand(); ok {
		cmd := exec.Command(command, args...)
		cmd.Stderr = os.Stderr
		t = &sdk.CommandTransport{Command: cmd}
	} else if url := w.serverURL(c); url != "" {
		t = &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: w.httpClient(c), DisableStandaloneSSE: true}
	} else {
		t, end = w.pipedTransport()
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		end()
		return nil, fmt.Errorf("go-sdk: %w", err)
	}
	params := &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": paddingText(c.Size)}}
	return &ConnectedClient{
		Call: func(ctx context.Context, _ int) error {
			r, err := session.CallTool(ctx, params)
			if err != nil {
				return err
			}
			if len(r.Content) != 1 || r.IsError {
				return fmt.Errorf("go-sdk got %v", r)
			}
			if part, ok := r.Content[0].(*sdk.TextContent); !ok || len(part.Text) < c.Size {
				return fmt.Errorf("go-sdk got %v", r)
			}
			return nil
		},
		Close: func() { _ = session.Close(); end() },
	}, nil
}

// pipedTransport connects the SDK to the in-process server by two pipes of lines, because the SDK's own in-memory transport
// leads only to its own server.
func (w *ServerSet) pipedTransport() (sdk.Transport, func()) {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = mcpgo.Serve(w.inProcess)(ctx, newLinePeer(toServer, fromServer)) }()
	return &sdk.IOTransport{Reader: toClient, Writer: fromClient}, func() {
		cancel()
		_, _ = toServer.Close(), fromServer.Close()
	}
}
