package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/up"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// broken is a program that runs up with work that panics as soon as the connection of a server is shown.
func broken() {
	if len(os.Args) > 1 {
		main() // the guardian of this one
		return
	}
	streams := terminal.StandardStreams()
	shown := &awaitedText{w: streams.Out, text: "one: connected", seen: make(chan struct{})}
	streams.Out = shown
	o := cli.NewOptions(context.Background(), streams, nil)
	servers := map[string]messages.Spec{"one": {Command: "fixture", Args: []string{"mcp-fixture", "good"}}}
	o.ReportAtOnce()
	err := up.KeepServers(context.Background(), o, servers, func(ctx context.Context, m *supervisor.Manager, _ func(string, messages.Outcome)) {
		select {
		case <-shown.seen: // the connection is shown by another goroutine, which must come first
			panic("a bug")
		case <-ctx.Done():
		}
	})
	os.Exit(o.ReportError(err))
}

// awaitedText is a writer that closes seen when a text has been written, in one piece or in several.
type awaitedText struct {
	w    io.Writer
	text string
	seen chan struct{}

	mu      sync.Mutex // guards written and the end of seen
	written []byte
}

func (a *awaitedText) Write(b []byte) (int, error) {
	n, err := a.w.Write(b)
	a.mu.Lock()
	defer a.mu.Unlock()
	before := bytes.Contains(a.written, []byte(a.text))
	a.written = append(a.written, b[:n]...)
	if !before && bytes.Contains(a.written, []byte(a.text)) {
		close(a.seen)
	}
	return n, err
}
