// Package gosdk is the adapter of "mcpvisor chaos score" for the client of the official Go SDK.
//
// It follows the library's documentation: Client.Connect over a CommandTransport or a StreamableClientTransport, a context with
// a deadline for every request, ClientSession.Wait to notice the end, and a new session at the next use of one that has ended.
// Two options are set: KeepAlive (2 s, one failure tolerated), and the handler of tool list changes, without which a client of
// the era of 2026-07-28 opens no stream for them. The others have their defaults.
package gosdk

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/version"
)

// New makes the client.
func New() adapter.Client { return &scoredClient{adapter.Redial[*link]{Dial: dialLink}} }

// scoredClient implements adapter.Client.
type scoredClient struct{ adapter.Redial[*link] }

// link is one session; lost is set when it has ended.
type link struct {
	*mcp.ClientSession
	lost atomic.Bool
}

func (l *link) Lost() bool { return l.lost.Load() }

// dialLink connects to a server, and watches for the end of the session.
func dialLink(ctx context.Context, s adapter.Server) (*link, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "mcpvisor-score", Version: "1"}, &mcp.ClientOptions{
		KeepAlive: 2 * time.Second, KeepAliveFailureThreshold: 2,
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {},
	})
	var t mcp.Transport
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil {
			return nil, err
		}
		t = &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: headers{u.Host, s.Headers}}}
	} else {
		t = &mcp.CommandTransport{Command: exec.Command(s.Command, s.Args...)}
	}
	session, err := c.Connect(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	l := &link{ClientSession: session}
	// The goroutine ends with the session.
	go func() {
		// The reason shows in the requests that fail.
		_ = session.Wait()
		l.lost.Store(true)
	}()
	return l, nil
}

// headers adds the configured headers to requests to one host. The library has no option for headers and takes an http.Client;
// a careful RoundTripper adds them for the configured host only, so that a redirect does not carry them away.
type headers struct {
	host   string
	values map[string]string
}

// RoundTrip implements http.RoundTripper.
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.URL.Host == h.host {
		for k, v := range h.values {
			r.Header.Set(k, v)
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (d *scoredClient) About() string {
	return "go-sdk " + version.OfModule("github.com/modelcontextprotocol/go-sdk") +
		"; KeepAlive 2s, a new session at the next use of one that has ended, no call twice"
}

// Tools implements adapter.Client: it asks the server each time, as a program does that keeps no list of its own.
func (d *scoredClient) Tools(ctx context.Context, name string) ([]string, error) {
	l, err := d.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for t, err := range l.ClientSession.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, t.Name)
	}
	return names, nil
}

// Call implements adapter.Client. The deadline of ctx is the only bound that the call has.
func (d *scoredClient) Call(ctx context.Context, name, tool string, args json.RawMessage) (json.RawMessage, error) {
	l, err := d.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	result, err := l.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}
