// Package mcpgo is the adapter of "mcpvisor chaos score" for the client of mark3labs/mcp-go.
//
// It follows the library's documentation: a client per server, Initialize, a context with a deadline for every request,
// standard error drained, and a new client at the next use of one whose connection was lost ("Connection Recovery"). It leaves
// out the retry of the call that the same page shows, because that would run a tool twice. Client information and the latest
// protocol version are set. Notifications over HTTP have the library's default: it keeps no stream open
// (WithContinuousListening is deprecated), and lists are requested when they are needed.
package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/version"
)

// New makes the client.
func New() adapter.Client { return &scoredClient{adapter.Redial[*link]{Dial: dialLink}} }

// scoredClient implements adapter.Client.
type scoredClient struct{ adapter.Redial[*link] }

// link is one connection with its health checks. lost is set when it is unusable, unhealthy by a failed check.
type link struct {
	*client.Client
	lost, unhealthy atomic.Bool
	stopHealth      context.CancelFunc
}

// Healthy reports whether the last health check succeeded.
func (l *link) Healthy() bool { return !l.unhealthy.Load() }

func (l *link) Lost() bool { return l.lost.Load() }

// Close ends the health checks and the connection.
func (l *link) Close() error {
	l.stopHealth()
	return l.Client.Close()
}

// healthEvery is the interval and the time limit of the health checks ("Connection Monitoring" in the documentation).
const healthEvery = 2 * time.Second

// dialLink connects to a server and starts the health checks.
func dialLink(ctx context.Context, s adapter.Server) (*link, error) {
	var c *client.Client
	if s.URL != "" {
		h, err := transport.NewStreamableHTTP(s.URL, transport.WithHTTPHeaders(s.Headers))
		if err != nil {
			return nil, err
		}
		c = client.NewClient(h)
	} else {
		c = client.NewClient(transport.NewStdio(s.Command, nil, s.Args...))
	}
	lifetime, end := context.WithCancel(context.Background())
	l := &link{Client: c, stopHealth: end}
	c.OnConnectionLost(func(error) { l.lost.Store(true) })
	// The context of Start is the lifetime of the transport, which only Close may end.
	if err := c.Start(context.Background()); err != nil {
		end()
		return nil, err
	}
	var r mcp.InitializeRequest
	r.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	r.Params.ClientInfo = mcp.Implementation{Name: "mcpvisor-score", Version: "1"}
	if _, err := c.Initialize(ctx, r); err != nil {
		// The first error is the one that counts.
		_ = l.Close()
		return nil, err
	}
	go l.watchHealth(lifetime)
	return l, nil
}

// watchHealth pings the server until the link is closed. Two pings in a row without an answer count as the end of the
// connection, as in the adapter of the Go SDK.
func (l *link) watchHealth(lifetime context.Context) {
	for missed := 0; ; {
		select {
		case <-time.After(healthEvery):
		case <-lifetime.Done():
			return
		}
		ctx, cancel := context.WithTimeout(lifetime, healthEvery)
		err := l.Ping(ctx) //nolint:staticcheck // it is what there is for a server of the older era
		cancel()
		if lifetime.Err() != nil {
			return
		}
		l.unhealthy.Store(l.noteLoss(err) != nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			missed = 0
		} else if missed++; missed > 1 {
			l.lost.Store(true)
		}
	}
}

// noteLoss marks the link as lost if the error means that, and returns the error.
func (l *link) noteLoss(err error) error {
	if errors.Is(err, transport.ErrTransportClosed) || errors.Is(err, transport.ErrSessionTerminated) {
		l.lost.Store(true)
	}
	return err
}

func (d *scoredClient) About() string {
	return "mcp-go " + version.OfModule("github.com/mark3labs/mcp-go") +
		"; a ping every 2s, a new client at the next use of one that was lost, no call twice"
}

// Tools implements adapter.Client: it asks the server each time, as a program does that keeps no list of its own.
func (d *scoredClient) Tools(ctx context.Context, name string) ([]string, error) {
	l, err := d.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := l.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, l.noteLoss(err)
	}
	names := make([]string, len(r.Tools))
	for i, t := range r.Tools {
		names[i] = t.Name
	}
	return names, nil
}

// Call implements adapter.Client. The deadline of ctx is the only bound that the call has.
func (d *scoredClient) Call(ctx context.Context, name, tool string, args json.RawMessage) (json.RawMessage, error) {
	l, err := d.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, args
	result, err := l.CallTool(ctx, r)
	if err != nil {
		return nil, l.noteLoss(err)
	}
	return json.Marshal(result)
}
