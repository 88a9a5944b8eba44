// Package gosdk makes clients of the official Go SDK for package chaos: of a program's own *mcp.Client, with its options.
//
//	chaos.TestClient(t, gosdk.Dial(func() *mcp.Client { return mcp.NewClient(&mcp.Implementation{Name: "ours", Version: "1"}, nil) }))
//
// The package is part of a harness for tests: what it exports may change without notice.
package gosdk

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/test/chaos/client"
)

// Dial connects a new client to the server of each day, and again when its session has ended, as the library's documentation shows.
func Dial(newClient func() *mcp.Client) client.Dial {
	overStream := client.Redial(func(ctx context.Context, stream io.ReadWriteCloser) (client.Client, error) {
		return connect(ctx, newClient(), &mcp.IOTransport{Reader: stream, Writer: stream})
	})
	overHTTP := client.RedialHTTP(func(ctx context.Context, url string, c *http.Client) (client.Client, error) {
		return connect(ctx, newClient(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: c})
	})
	return func(ctx context.Context, s *client.Server) (client.Client, error) {
		if s.URL != "" {
			return overHTTP(ctx, s)
		}
		return overStream(ctx, s)
	}
}

func connect(ctx context.Context, c *mcp.Client, t mcp.Transport) (client.Client, error) {
	calls := &client.ProgressCalls{}
	c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if p, ok := r.GetParams().(*mcp.ProgressNotificationParams); ok {
				calls.Tell(p.ProgressToken, p.Message)
			}
			return next(ctx, method, r)
		}
	})
	s, err := c.Connect(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	return &progressSession{newSession(s), calls}, nil
}

// Session returns the client of one session.
func Session(s *mcp.ClientSession) client.Client { return newSession(s) }

func newSession(s *mcp.ClientSession) *session {
	c := &session{ClientSession: s, ended: make(chan struct{})}
	go func() {
		_ = s.Wait() // the reason shows in the requests that fail
		close(c.ended)
	}()
	return c
}

// progressSession is a session that tells of progress.
type progressSession struct {
	*session
	calls *client.ProgressCalls
}

// CallWithProgress implements client.ProgressCaller.
func (s *progressSession) CallWithProgress(ctx context.Context, tool string, arguments map[string]any, progress func(string)) (string, error) {
	token, done := s.calls.Begin(progress)
	defer done()
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken(token)
	return s.callTool(ctx, params)
}

// session implements client.Client.
type session struct {
	*mcp.ClientSession
	ended chan struct{}
}

// Lost reports whether the session has ended.
func (s *session) Lost() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Tools implements client.Client: it asks the server each time, as a program does that keeps no list of its own.
func (s *session) Tools(ctx context.Context) (names []string, err error) {
	for t, err := range s.ClientSession.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, t.Name)
	}
	return names, nil
}

// Call implements client.Client.
func (s *session) Call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	return s.callTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
}

func (s *session) callTool(ctx context.Context, params *mcp.CallToolParams) (string, error) {
	r, err := s.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			return text.Text, nil
		}
	}
	return "", fmt.Errorf("the result holds no text")
}
