package serve

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"weak"
)

// A credential lasts for as long as the endpoint, and has as many sessions one after the other as its agent likes: it keeps none that has ended.
func TestACredentialKeepsNoSessionThatHasEnded(t *testing.T) {
	tokens := NewTokens(map[string]Principal{"word": {Name: "anna"}})
	h := NewHandler(Options{Service: newService(), Authenticate: tokens.Authenticate})
	id := open(t, h, "Authorization", "Bearer word")
	kept := weak.Make(h.sessions.byID[id])
	if kept.Value() == nil {
		t.Fatal("there is no session")
	}
	r := httptest.NewRequest(http.MethodDelete, "http://localhost/mcp", nil)
	r.Header.Set("Mcp-Session-Id", id)
	r.Header.Set("Authorization", "Bearer word")
	if w := do(h, r); w.Code/100 != 2 {
		t.Fatalf("it does not end: %d", w.Code)
	}
	for range 10 {
		runtime.GC()
	}
	if kept.Value() != nil {
		t.Error("the session is kept")
	}
	if open(t, h, "Authorization", "Bearer word") == id { // the credential is still good
		t.Error("the session is back")
	}
	_ = h.Close(t.Context())
}

// An endpoint keeps nothing of a principal whose last session has ended.
func TestNothingIsKeptOfAPrincipalWithoutSessions(t *testing.T) {
	tokens := NewTokens(map[string]Principal{"one": {Name: "anna"}, "two": {Name: "bert"}})
	h := NewHandler(Options{Service: newService(), Authenticate: tokens.Authenticate})
	defer h.Close(t.Context())
	end := func(id, token string) {
		r := httptest.NewRequest(http.MethodDelete, "http://localhost/mcp", nil)
		r.Header.Set("Mcp-Session-Id", id)
		r.Header.Set("Authorization", "Bearer "+token)
		if w := do(h, r); w.Code/100 != 2 {
			t.Fatalf("it does not end: %d", w.Code)
		}
	}
	annas, berts := open(t, h, "Authorization", "Bearer one"), open(t, h, "Authorization", "Bearer two")
	if end(annas, "one"); len(h.sessions.orders) != 1 || len(h.sessions.byID) != 1 {
		t.Errorf("%d principals, %d sessions", len(h.sessions.orders), len(h.sessions.byID))
	}
	if end(berts, "two"); len(h.sessions.orders) != 0 || len(h.sessions.byID) != 0 {
		t.Errorf("%d principals, %d sessions at the end", len(h.sessions.orders), len(h.sessions.byID))
	}
}
