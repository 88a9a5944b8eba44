// Command starter is a Go adapter to start from: replace link by your own client. To play all cases to it:
//
//	go build -o starter . && mcpvisor chaos score -- ./starter
//
// Package adapter reads the commands and writes the answers, and adapter.Redial connects again at the next use of a link that
// was lost. Standard output belongs to the protocol: write everything else to standard error.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
)

func main() {
	if err := adapter.Serve(os.Stdin, os.Stdout, &client{adapter.Redial[*link]{Dial: dialLink}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// link is one connection of the client under test.
type link struct {
	*mcp.ClientSession
	lost atomic.Bool
}

// Lost implements adapter.Link.
func (l *link) Lost() bool { return l.lost.Load() }

// dialLink connects to a server.
func dialLink(ctx context.Context, s adapter.Server) (*link, error) {
	var t mcp.Transport = &mcp.CommandTransport{Command: exec.Command(s.Command, s.Args...)}
	if s.URL != "" {
		// The cases about credentials need s.Headers too.
		t = &mcp.StreamableClientTransport{Endpoint: s.URL}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "starter", Version: "1"}, nil).Connect(ctx, t, nil)
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

// client implements adapter.Client. Redial provides Connect, Status, Close and Quit.
type client struct{ adapter.Redial[*link] }

// About implements adapter.Client.
func (*client) About() string { return "starter; a new session at the next use of one that has ended" }

// Tools implements adapter.Client.
func (c *client) Tools(ctx context.Context, name string) (names []string, err error) {
	l, err := c.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	for tool, err := range l.ClientSession.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

// Call implements adapter.Client.
func (c *client) Call(ctx context.Context, name, tool string, args json.RawMessage) (json.RawMessage, error) {
	l, err := c.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	result, err := l.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}
