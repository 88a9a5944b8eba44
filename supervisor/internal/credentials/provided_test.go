package credentials

import (
	"net/http"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A provided token comes before the configured one until the server refuses it, and is never sent again then.
func TestRefusedTokenOfTheProgramIsDropped(t *testing.T) {
	spec := &messages.Spec{Type: messages.HTTP, URL: "https://example.com/mcp", Auth: &messages.Auth{Type: messages.AuthBearer, Token: "configured"}}
	c, err := New(Options{}).CredentialFor(t.Context(), "s", spec)
	if err != nil {
		t.Fatal(err)
	}
	send := func() http.Header {
		t.Helper()
		h := http.Header{}
		if err := c.Authorize(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	refuse := func(status int, used http.Header) bool {
		t.Helper()
		retry, err := c.Refused(t.Context(), status, nil, used)
		if err != nil {
			t.Fatal(err)
		}
		return retry
	}
	c.ProvideToken("old")
	old := send()
	c.ProvideToken("new")
	if sent := send().Get("Authorization"); sent != "Bearer new" {
		t.Fatalf("the request carried %q", sent)
	}
	if !refuse(http.StatusUnauthorized, old) || !c.IsProvided() {
		t.Error("the refusal of the token before counted for the new one")
	}
	if refuse(http.StatusForbidden, send()); !c.IsProvided() {
		t.Error("a 403, which is about what the token may do, counted as one about the token")
	}
	if !refuse(http.StatusUnauthorized, send()) {
		t.Error("the configured token is not tried")
	}
	if sent := send().Get("Authorization"); sent != "Bearer configured" || c.IsProvided() {
		t.Errorf("after the refusal of the provided token the request carried %q", sent)
	}
}
