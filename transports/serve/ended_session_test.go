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
