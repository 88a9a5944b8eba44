package supervisor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	gomcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// callerSigner gives each request the credentials of its caller, as a program does that acts for many people.
type callerSigner struct{}

func (callerSigner) Authorize(ctx context.Context, h http.Header) error {
	h.Set("Authorization", "Bearer token-of-"+supervisor.CallerOf(ctx))
	return nil
}

func (callerSigner) Refused(context.Context, int, *messages.Challenge, http.Header) (bool, error) {
	return false, nil
}

// serveWhoami serves over HTTP a server with one tool that answers with the Authorization of its own request. It refuses the token
// of the caller mallory.
func serveWhoami(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		var result string
		switch {
		case r.Header.Get("Authorization") == "Bearer token-of-mallory":
			http.Error(w, "no", http.StatusUnauthorized)
			return
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"whoami","inputSchema":{"type":"object"}}]}`
		default:
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, r.Header.Get("Authorization"))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestTheAuthorizerSeesTheCaller: one connection, many callers, and each request carries its own caller's credentials. A caller
// whose credentials are refused is refused alone: the server stays connected for the others.
func TestTheAuthorizerSeesTheCaller(t *testing.T) {
	m := startWith(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{"who": {URL: serveWhoami(t), Era: messages.EraLegacy}},
		AuthProvider: func(string, supervisor.Spec) (transports.Authorizer, error) {
			return callerSigner{}, nil
		},
	})
	if err := m.Ready(t.Context(), "who"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, caller := range []string{"anna", "ben", ""} {
		all.Go(func() {
			for range 20 {
				res, err := m.CallServerTool(supervisor.WithCaller(t.Context(), caller), "who", "whoami", nil)
				if err != nil || res.Text() != "Bearer token-of-"+caller {
					t.Errorf("%q was answered %v, %v", caller, res, err)
					return
				}
			}
		})
	}
	all.Wait()
	_, err := m.CallServerTool(supervisor.WithCaller(t.Context(), "mallory"), "who", "whoami", nil)
	if !errors.Is(err, supervisor.ErrRejected) || !errors.Is(err, supervisor.ErrNeedsAuth) || !errors.Is(err, supervisor.ErrCallerRefused) {
		t.Errorf("the call of the refused caller ended as %v", err)
	}
	if res, err := m.CallServerTool(supervisor.WithCaller(t.Context(), "anna"), "who", "whoami", nil); err != nil {
		t.Errorf("after that, anna's call ended as %v, %v", res, err)
	}
	if now := phase(t, m, "who"); now != messages.Connected {
		t.Errorf("the server is %s", now)
	}
}

// TestInProcessHandlersSeeTheCaller: in the context of a handler that was written with either SDK.
func TestInProcessHandlersSeeTheCaller(t *testing.T) {
	a := server.NewMCPServer("a", "1")
	a.AddTool(mcp.NewTool("whoami"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("I am " + supervisor.CallerOf(ctx)), nil
	})
	b := gomcp.NewServer(&gomcp.Implementation{Name: "b", Version: "1"}, nil)
	gomcp.AddTool(b, &gomcp.Tool{Name: "whoami"}, func(ctx context.Context, _ *gomcp.CallToolRequest, _ struct{}) (*gomcp.CallToolResult, any, error) {
		return &gomcp.CallToolResult{Content: []gomcp.Content{&gomcp.TextContent{Text: "I am " + supervisor.CallerOf(ctx)}}}, nil, nil
	})
	m := startWith(t, supervisor.Config{
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"a": mcpgo.Serve(a), "b": gosdk.Serve(b)},
		Servers:   map[string]supervisor.Spec{"a": {Type: messages.SDK}, "b": {Type: messages.SDK}},
	})
	for _, name := range []string{"a", "b"} {
		if err := m.Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				caller := fmt.Sprint("caller ", i%8)
				res, err := m.CallServerTool(supervisor.WithCaller(t.Context(), caller), name, "whoami", nil)
				if err != nil || res.Text() != "I am "+caller {
					t.Errorf("%s answered %s: %v, %v", name, caller, res, err)
				}
			})
		}
		all.Wait()
	}
}

// serveSessions serves a legacy server with sessions that belong to who began them: a request on a session with other credentials
// than its initialize had is answered with 403, and counted.
func serveSessions(t *testing.T) (url string, crossed *atomic.Int64) {
	crossed = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		who, session := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("Mcp-Session-Id")
		if m.Method != "initialize" && session != "session-of-"+who {
			crossed.Add(1)
			http.Error(w, "not your session", http.StatusForbidden)
			return
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, session)
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "session-of-"+who)
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"whoami","inputSchema":{"type":"object"}}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, crossed
}

// TestASessionOverHTTPIsItsPrincipals: with share "principal" every request of an instance carries its principal's credentials, those
// that belong to no call included; no session is used with another's. The record names the server and the caller.
func TestASessionOverHTTPIsItsPrincipals(t *testing.T) {
	url, crossed := serveSessions(t)
	var record bytes.Buffer
	var asked []string
	m := startWith(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{"who": {URL: url, Era: messages.EraLegacy, Share: messages.SharePrincipal}},
		AuthProvider: func(server string, spec supervisor.Spec) (transports.Authorizer, error) {
			asked = append(asked, server+" for "+spec.Principal)
			return callerSigner{}, nil
		},
		Audit: &record,
	})
	if err := m.Ready(t.Context(), "who"); err != nil {
		t.Fatal(err)
	}
	for _, caller := range []string{"anna", "ben", "", "anna"} {
		res, err := m.CallTool(supervisor.WithCaller(t.Context(), caller), "mcp__who__whoami", nil)
		if err != nil || res.Text() != "session-of-token-of-"+caller {
			t.Errorf("%q was answered %v, %v", caller, res, err)
		}
	}
	if err := m.Refresh(t.Context(), "who@anna"); err != nil {
		t.Error(err)
	}
	closeAll(t, m)
	if n := crossed.Load(); n != 0 {
		t.Errorf("%d requests were sent on another principal's session", n)
	}
	if want := []string{"who for ", "who for anna", "who for ben"}; !slices.Equal(asked, want) {
		t.Errorf("the provider was asked for %q", asked)
	}
	calls := 0
	for line := range strings.Lines(record.String()) {
		if !strings.Contains(line, `"kind":"call"`) {
			continue
		}
		calls++
		if !strings.Contains(line, `"server":"who"`) || strings.Contains(line, "who@") {
			t.Errorf("the record of a call does not name the server: %s", line)
		}
	}
	if calls != 4 || strings.Count(record.String(), `"who":"anna"`) < 2 {
		t.Errorf("the record has %d calls: %s", calls, &record)
	}
}
