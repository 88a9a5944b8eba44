package lists

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// ServerSet holds the servers of a case that outlive one connection: those over HTTP, and the in-process one. A stdio server is
// started for each connection.
type ServerSet struct {
	Case
	self string
	// url is the server whose list changes with each listing, frozenURL the one whose list stays the same.
	url, frozenURL string
	// children are the servers over HTTP.
	children  []*servers.Child
	inProcess *server.MCPServer
	// count numbers the changes of the in-process list.
	count int
}

// NewServerSet starts the servers of a case.
func NewServerSet(c Case) (*ServerSet, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &ServerSet{Case: c, self: self}
	switch c.Server {
	case "stdio":
	case "sdk":
		options := []server.ServerOption{server.WithToolCapabilities(false)}
		if c.Page > 0 {
			options = append(options, server.WithPaginationLimit(c.Page))
		}
		w.inProcess = server.NewMCPServer("shelf", "1", options...)
		all := make([]server.ServerTool, c.Tools)
		for i := range all {
			all[i] = server.ServerTool{Tool: mcp.NewToolWithRawSchema(toolName(i), toolDescription(i), json.RawMessage(toolSchema(i)))}
		}
		w.inProcess.AddTools(all...)
	// Two servers, because a list that never changes cannot come from one whose list changes with each listing.
	case "http":
		for frozen, url := range map[bool]*string{false: &w.url, true: &w.frozenURL} {
			c, err := servers.StartChild(w.serverArgs(frozen)...)
			if err != nil {
				w.Close()
				return nil, err
			}
			*url, w.children = c.Line, append(w.children, c)
		}
	default:
		return nil, fmt.Errorf("there is no server %q; there are stdio, http and sdk", c.Server)
	}
	return w, nil
}

// Close ends the servers' processes.
func (w *ServerSet) Close() {
	for _, c := range w.children {
		c.Close()
	}
}

// Open connects a contender and lists once.
func (w *ServerSet) Open(ctx context.Context, who string) (*Client, error) {
	switch who {
	case "mcpvisor":
		return w.openMcpvisor(ctx, false)
	case "unchanged":
		return w.openMcpvisor(ctx, true)
	case "mcp-go":
		return listFirst(ctx)(w.openMcpGo(ctx))
	case "go-sdk":
		return listFirst(ctx)(w.openGoSDK(ctx))
	case "floor":
		return listFirst(ctx)(w.openFloor(ctx))
	}
	return nil, fmt.Errorf("there is no contender %q", who)
}

// listFirst makes the first listing a part of connecting, because mcpvisor's Start includes it.
func listFirst(ctx context.Context) func(*Client, error) (*Client, error) {
	return func(c *Client, err error) (*Client, error) {
		if err != nil {
			return nil, err
		}
		if _, err := c.List(ctx); err != nil {
			c.Close()
			return nil, err
		}
		return c, nil
	}
}

// changeList makes the next list of the in-process server differ from the last one.
func (w *ServerSet) changeList() {
	if w.inProcess == nil {
		return
	}
	// One word of one description is enough: mcpvisor compares whole definitions.
	w.count++
	w.inProcess.AddTool(mcp.NewToolWithRawSchema(toolName(0), fmt.Sprintf("%s %d", toolDescription(0), w.count),
		json.RawMessage(toolSchema(0))), nil)
}

// openMcpvisor starts a manager with the server of the case. With frozen its list stays the same, and the client checks that
// mcpvisor publishes no new generation.
func (w *ServerSet) openMcpvisor(ctx context.Context, frozen bool) (*Client, error) {
	spec := supervisor.Spec{Era: messages.EraLegacy}
	cfg := supervisor.Config{}
	switch w.Server {
	case "stdio":
		spec.Command, spec.Args = w.self, w.serverArgs(frozen)
	case "http":
		spec.URL = w.url
		if frozen {
			spec.URL = w.frozenURL
		}
	default:
		spec.Type = messages.SDK
		cfg.InProcess = map[string]func(context.Context, inprocess.Peer) error{"s": mcpgo.Serve(w.inProcess)}
	}
	cfg.Servers = map[string]supervisor.Spec{"s": spec}
	m, err := supervisor.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	closed := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		// The servers end with their input.
		_ = m.Close(ctx)
	}
	if err := m.Settled(ctx); err != nil || !m.Server("s").IsConnected() {
		st, _ := m.ServerStatus("s")
		closed()
		return nil, fmt.Errorf("mcpvisor is not connected: %w %s", err, st.Error)
	}
	return &Client{
		List: func(ctx context.Context) (int, error) {
			if !frozen {
				w.changeList()
			}
			before := m.Tools().Generation()
			if err := m.Refresh(ctx, "s"); err != nil {
				return 0, err
			}
			if now := m.Tools(); (now.Generation() == before) != frozen {
				return 0, fmt.Errorf("the generation went from %d to %d", before, now.Generation())
			}
			return m.Tools().Len(), nil
		},
		Close: closed,
	}, nil
}

// openMcpGo connects the client of mark3labs/mcp-go.
func (w *ServerSet) openMcpGo(ctx context.Context) (*Client, error) {
	var t transport.Interface
	switch w.Server {
	case "stdio":
		t = transport.NewStdio(w.self, nil, w.serverArgs(false)...)
	case "http":
		h, err := transport.NewStreamableHTTP(w.url)
		if err != nil {
			return nil, err
		}
		t = h
	default:
		t = transport.NewInProcessTransport(w.inProcess)
	}
	client := mcpclient.NewClient(t)
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	init := mcp.InitializeRequest{}
	init.Params.ProtocolVersion = "2025-11-25"
	init.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := client.Initialize(ctx, init); err != nil {
		_ = client.Close()
		return nil, err
	}
	return &Client{
		List: func(ctx context.Context) (int, error) {
			w.changeList()
			r, err := client.ListTools(ctx, mcp.ListToolsRequest{})
			if err != nil {
				return 0, err
			}
			return len(r.Tools), nil
		},
		Close: func() { _ = client.Close() },
	}, nil
}

// openGoSDK connects the client of the official SDK.
func (w *ServerSet) openGoSDK(ctx context.Context) (*Client, error) {
	var t sdk.Transport
	end := func() {}
	switch w.Server {
	case "stdio":
		cmd := exec.Command(w.self, w.serverArgs(false)...)
		cmd.Stderr = os.Stderr
		t = &sdk.CommandTransport{Command: cmd}
	case "http":
		t = &sdk.StreamableClientTransport{Endpoint: w.url, DisableStandaloneSSE: true}
	default:
		t, end = w.pipedTransport()
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, t,
		&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		end()
		return nil, err
	}
	return &Client{
		List: func(ctx context.Context) (n int, err error) {
			w.changeList()
			for _, err := range session.Tools(ctx, nil) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
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
	in := bufio.NewReaderSize(toServer, 1<<20)
	peer := linePeer{in, fromServer}
	// The goroutine ends with the pipe.
	go func() {
		_ = mcpgo.Serve(w.inProcess)(ctx, peer)
	}()
	return &sdk.IOTransport{Reader: toClient, Writer: fromClient}, func() {
		cancel()
		_, _ = toServer.Close(), fromServer.Close()
	}
}

// linePeer is a peer of an in-process server over two pipes, one message per line.
type linePeer struct {
	in  *bufio.Reader
	out io.Writer
}

func (p linePeer) Read(context.Context) ([]byte, error) { return p.in.ReadBytes('\n') }

func (p linePeer) Write(_ context.Context, msg []byte) error {
	_, err := p.out.Write(append(bytes.Clone(msg), '\n'))
	return err
}

// openFloor returns a client that asks for every page and reads its bytes. It searches them only for the next cursor, near both
// ends, and checks the number of pages.
func (w *ServerSet) openFloor(ctx context.Context) (*Client, error) {
	exchange, end, err := w.rawExchange(ctx)
	if err != nil {
		return nil, err
	}
	return &Client{
		Close: end,
		List: func(context.Context) (int, error) {
			w.changeList()
			params, pages := "", 0
			for {
				body, err := exchange(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"%s}`, pages+1, params))
				if err != nil {
					return 0, err
				}
				pages++
				_, cursor, more := bytes.Cut(body[max(0, len(body)-200):], []byte(`"nextCursor":"`))
				// mcp-go's server writes nextCursor before the tools.
				if !more {
					_, cursor, more = bytes.Cut(body[:min(200, len(body))], []byte(`"nextCursor":"`))
				}
				if !more {
					break
				}
				cursor, _, _ = bytes.Cut(cursor, []byte(`"`))
				params = `,"params":{"cursor":"` + string(cursor) + `"}`
			}
			// mcp-go ends a list whose last page is full with an empty one.
			if want := max(1, (w.Tools+max(w.Page, 1)-1)/max(w.Page, 1)); w.Page > 0 && pages != want && pages != want+1 {
				return 0, fmt.Errorf("%d pages instead of %d", pages, want)
			}
			return w.Tools, nil
		},
	}, nil
}

// rawExchange returns a function that sends one message and returns the bytes of the answer, and one that ends the connection.
func (w *ServerSet) rawExchange(ctx context.Context) (exchange func(string) ([]byte, error), end func(), err error) {
	switch w.Server {
	case "http":
		client := &http.Client{}
		return func(message string) ([]byte, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, strings.NewReader(message))
			if err != nil {
				return nil, err
			}
			answer, err := client.Do(req)
			if err != nil {
				return nil, err
			}
			defer answer.Body.Close()
			b := bytes.NewBuffer(make([]byte, 0, max(answer.ContentLength, 0)+bytes.MinRead))
			_, err = b.ReadFrom(answer.Body)
			return b.Bytes(), err
		}, client.CloseIdleConnections, nil
	case "sdk":
		return func(message string) ([]byte, error) {
			return json.Marshal(w.inProcess.HandleMessage(ctx, []byte(message)))
		}, func() {}, nil
	}
	cmd := exec.Command(w.self, w.serverArgs(false)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	lines := bufio.NewReaderSize(out, 1<<20)
	return func(message string) ([]byte, error) {
			if _, err := io.WriteString(in, message+"\n"); err != nil {
				return nil, err
			}
			return lines.ReadBytes('\n')
		}, func() {
			_ = in.Close()
			// The exit status has no meaning here.
			_ = cmd.Wait()
		}, nil
}
