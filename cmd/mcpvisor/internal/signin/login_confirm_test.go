package signin

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// TestConfirm checks that only a typed "yes" confirms, and that the question names hosts and issuer whole.
func TestConfirm(t *testing.T) {
	binding := oauth.Confirmation{Server: "files", Issuer: "https://as.example.com/tenant", What: "the client secret",
		TokenURL: "https://token.example.net:8443/token?x=y"}
	mixed := binding
	mixed.Page = "https://honest.example/authorize"
	for typed, want := range map[string]bool{
		"yes\n": true, " YES \n": true, "y\n": false, "\n": false, "no\n": false, "": false, "yes please\n": false,
	} {
		for _, q := range []oauth.Confirmation{binding, mixed} {
			var out bytes.Buffer
			s := terminal.Streams{In: strings.NewReader(typed), Err: &out}
			c := &signInDialog{options: &cli.Options{Streams: s, Prompter: ask.NewPrompter(t.Context(), s, nil)}}
			got, err := c.askConfirmation(t.Context(), q)
			if err != nil || got != want {
				t.Errorf("%q: %v, %v", typed, got, err)
			}
			for _, part := range []string{"files", q.Issuer, "token.example.net:8443"} {
				if !strings.Contains(out.String(), part) {
					t.Errorf("%q is not in %s", part, out.String())
				}
			}
			if q.Page != "" && !strings.Contains(out.String(), "page:        honest.example\n") {
				t.Error(out.String())
			}
		}
	}
}

// TestConfirmEscapes checks that nothing in the question acts on a terminal.
func TestConfirmEscapes(t *testing.T) {
	bad := "a\u009b31m\u202e\u200b\x1b[2J\n"
	for _, q := range []oauth.Confirmation{
		{Server: bad, Issuer: bad, TokenURL: "https://" + bad, What: bad},
		{Server: bad, Issuer: bad, TokenURL: "https://x.example/" + bad, What: bad, Page: "https://y.example/" + bad},
	} {
		if text := confirmationText(q); strings.ContainsAny(text, "\u009b\u202e\u200b\x1b") {
			t.Errorf("%q", text)
		}
	}
}
