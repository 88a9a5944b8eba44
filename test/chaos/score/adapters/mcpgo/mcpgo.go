// Package mcpgo lets mcpvisor chaos score drive the client of mark3labs/mcp-go.
//
// It is written as the library's documentation shows: a client per server, Initialize, a context with a deadline for every
// request, standard error drained, and a new client at the next use of one whose connection was lost ("Connection
// Recovery"). The retry of the call that the same page shows is left out: it would run a tool twice.
// Set are: client information and the latest protocol version. Notifications over HTTP are the default of the library: a
// stream is not kept open (WithContinuousListening is deprecated), and lists are asked for when they are wanted.
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

type scoredClient struct{ adapter.Redial[*link] }

// link is one connection, and what its last health check said.
type link struct {
	*client.Client
	lost, unhealthy atomic.Bool
	stopHealth      context.CancelFunc
}

// Healthy is what the last health check said.
func (l *link) Healthy() bool { return !l.unhealthy.Load() }

func (l *link) Lost() bool { return l.lost.Load() }

// Close also ends the health checks.
func (l *link) Close() error {
	l.stopHealth()
	return l.Client.Close()
}

// healthEvery is how often a connection is asked for a sign of life ("Connection Monitoring" of the documentation).
const healthEvery = 2 * time.Second

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
	// The context of Start is the life of the transport, which Close ends.
	if err := c.Start(context.Background()); err != nil {
		end()
		return nil, err
	}
	var r mcp.InitializeRequest
	r.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	r.Params.ClientInfo = mcp.Implementation{Name: "mcpvisor-score", Version: "1"}
	if _, err := c.Initialize(ctx, r); err != nil {
		_ = l.Close() // the error that counts is the first
		return nil, err
	}
	go l.watchHealth(lifetime)
	return l, nil
}

// watchHealth asks for a sign of life until the link is closed.
//
// Two questions in a row without an answer are the end, as they are for the adapter of the Go SDK.
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

// noteLoss notes whether an error means that the connection is of no use any more.
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
