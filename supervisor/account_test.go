package supervisor_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
)

// accounts is an MCP server that gives each account a session and a tool of its own.
type accounts struct {
	scope string // what it says of its list, after a comma
	mu    sync.Mutex
	mixed []string // requests of one account in the session of another
}

func (s *accounts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	body, who, session := string(raw), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("Mcp-Session-Id")
	if session != "" && session != "of-"+who {
		s.mu.Lock()
		s.mixed = append(s.mixed, who+" in "+session)
		s.mu.Unlock()
	}
	if who == "" {
		who = r.Header.Get("X-Who")
	}
	id := "1"
	if _, rest, ok := strings.Cut(body, `"id":`); ok {
		id, _, _ = strings.Cut(strings.ReplaceAll(rest, "}", ","), ",")
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
	}
	switch {
	case strings.Contains(body, `"initialize"`):
		w.Header().Set("Mcp-Session-Id", "of-"+who)
		answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"d","version":"1"}}`)
	case strings.Contains(body, `"tools/list"`):
		answer(`{"tools":[{"name":"tool_of_` + who + `","inputSchema":{"type":"object"}}]` + s.scope + `}`)
	case strings.Contains(body, `"tools/call"`):
		answer(`{"content":[]}`)
	case strings.Contains(body, `"ping"`):
		answer(`{}`)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// person is signed in with an account, which changes without notice, as by a sign-in of another process.
type person struct{ name atomic.Pointer[string] }

func (p *person) Account() string { return *p.name.Load() }

func (p *person) Authorize(_ context.Context, h http.Header) error {
	h.Set("Authorization", "Bearer "+*p.name.Load())
	return nil
}

func (p *person) Refused(context.Context, int, *messages.Challenge, http.Header) (bool, error) {
	return false, nil
}

// TestAnotherAccountIsAnotherSession: when another person has signed in, nothing of that account goes into the session of the
// first, and what the first was shown is not what they are.
func TestAnotherAccountIsAnotherSession(t *testing.T) {
	server := &accounts{}
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	who := &person{}
	ada, bob := "ada", "bob"
	who.name.Store(&ada)
	m := startWith(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{"one": {URL: s.URL, Type: messages.HTTP, Era: messages.EraLegacy}},
		AuthProvider: func(string, supervisor.Spec) (transports.Authorizer, error) {
			return who, nil
		},
	})
	phaseIs(t, m, "one", messages.Connected)
	if _, err := m.CallServerTool(t.Context(), "one", "tool_of_ada", struct{}{}); err != nil {
		t.Fatal(err)
	}
	who.name.Store(&bob)
	_, _ = m.CallServerTool(t.Context(), "one", "tool_of_ada", struct{}{}) // whatever becomes of it
	eventually(t, "the tools of the second account", func() bool {
		_, err := m.CallServerTool(t.Context(), "one", "tool_of_bob", struct{}{})
		return err == nil
	})
	server.mu.Lock()
	defer server.mu.Unlock()
	if len(server.mixed) > 0 {
		t.Errorf("%q", server.mixed)
	}
}
