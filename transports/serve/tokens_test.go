package serve

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
)

// With a token everything ends that was begun by it: its sessions with their requests, its streams, and what stands in the modern
// era. What was begun with another token of the same principal goes on.
func TestWhatATokenBeganEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newService()
		tokens := NewTokens(map[string]Principal{"old": {Name: "a"}, "kept": {Name: "a"}})
		h := NewHandler(Options{Service: v, Authenticate: tokens.Authenticate})
		defer func() { _ = h.Close(t.Context()) }()
		var ended sync.Map
		var all sync.WaitGroup
		begin := func(name string, r *http.Request) {
			all.Go(func() {
				do(h, r)
				ended.Store(name, true)
			})
			synctest.Wait()
		}
		stream := func(token, id string) *http.Request {
			r := request("", "Authorization", "Bearer "+token, "Mcp-Session-Id", id)
			r.Method = http.MethodGet
			return r
		}
		for _, token := range []string{"old", "kept"} {
			id := open(t, h, "Authorization", "Bearer "+token)
			begin(token+" call", request(`{"jsonrpc":"2.0","id":1,"method":"hang"}`, "Mcp-Session-Id", id, "Authorization", "Bearer "+token))
			begin(token+" stream", stream(token, id))
			begin(token+" modern call", modern("hang", "", "Authorization", "Bearer "+token))
		}
		if n := h.Sessions(); n != 2 {
			t.Fatalf("%d sessions", n)
		}
		tokens.Set(map[string]Principal{"kept": {Name: "a"}, "new": {Name: "a"}})
		synctest.Wait()
		for _, what := range []string{" call", " stream", " modern call"} {
			if _, ok := ended.Load("old" + what); !ok {
				t.Errorf("the%s of a token that is gone goes on", what)
			}
			if _, ok := ended.Load("kept" + what); ok {
				t.Errorf("the%s of a token that stayed has ended", what)
			}
		}
		if n := h.Sessions(); n != 1 || v.countClosed() != 1 {
			t.Errorf("%d sessions, %d told as closed", n, v.countClosed())
		}
		open(t, h, "Authorization", "Bearer new")
		// A token that leads to another view is another credential.
		tokens.Set(map[string]Principal{"kept": {Name: "a", View: "narrow"}})
		synctest.Wait()
		if n := h.Sessions(); n != 0 {
			t.Errorf("%d sessions outlived the change of their view", n)
		}
		all.Wait()
	})
}

// A principal may have bounds of its own, which all of its tokens share.
func TestPrincipalsHaveTheirOwnBounds(t *testing.T) {
	v := newService()
	few := Principal{Name: "few", MaxSessions: 1, MaxRequests: 1}
	tokens := NewTokens(map[string]Principal{"one": few, "two": few, "free": {Name: "free"}})
	h := NewHandler(Options{Service: v, Authenticate: tokens.Authenticate})
	first := open(t, h, "Authorization", "Bearer one")
	second := open(t, h, "Authorization", "Bearer two")
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if w := do(h, request(ping, "Mcp-Session-Id", first, "Authorization", "Bearer one")); w.Code != 404 {
		t.Errorf("the second session of one that may have one did not displace the first: %d", w.Code)
	}
	var call sync.WaitGroup
	call.Go(func() {
		do(h, request(`{"jsonrpc":"2.0","id":1,"method":"hang"}`, "Mcp-Session-Id", second, "Authorization", "Bearer two"))
	})
	<-v.hung
	if w := do(h, modern("echo", "", "Authorization", "Bearer one")); w.Code != 429 {
		t.Errorf("a second request of one that may have one: %d", w.Code)
	}
	// A notification is no request: an agent at its bound can still take one back.
	if w := do(h, request(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		"Mcp-Session-Id", second, "Authorization", "Bearer two")); w.Code != 202 {
		t.Errorf("a cancellation at the bound: %d", w.Code)
	}
	call.Wait()
	if w := do(h, modern("echo", "", "Authorization", "Bearer free")); w.Code != 200 {
		t.Errorf("another principal: %d", w.Code)
	}
}
