package messages_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

func TestSecretsAreWhatRedactedHides(t *testing.T) {
	spec := messages.Spec{
		Command: "run",
		Args: []string{"--token=canary-equals", "--api-key", "canary-next", "-H", "X-Key: canary-header", "--verbose",
			"plain-word",
			"postgres://me:canary-password@db.example/x?sslkey=canary-query"},
		Env:     map[string]string{"LEVEL": "debug", "ANY": "canary-env value"},
		URL:     "https://user:canary-user@host.example/mcp/ghp_0123456789abcdefABCD?key=canary%20url&b=2#canary-fragment",
		Headers: map[string]string{"Authorization": "Bearer canary-bearer"},
		Auth:    &messages.Auth{Type: "api_key", APIKey: "canary-auth"},
	}
	secrets := spec.Secrets()
	for _, want := range []string{"canary-equals", "canary-next", "canary-password", "canary-query", "canary-env value",
		"canary-user", "canary url", "canary+url", "canary-fragment", "canary-bearer", "Bearer canary-bearer", "canary-auth",
		"ghp_0123456789abcdefABCD"} {
		if !slices.Contains(secrets, want) {
			t.Errorf("%q is missing in %q", want, secrets)
		}
	}
	raw, err := json.Marshal(spec.Redacted())
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range secrets {
		if strings.Contains(string(raw), s) {
			t.Errorf("%q is no secret, Redacted shows it: %s", s, raw)
		}
		if len(s) < 6 || i > 0 && len(s) > len(secrets[i-1]) {
			t.Errorf("%q is too short, or after a shorter one: %q", s, secrets)
		}
	}
	text := "debug: run --verbose plain-word with canary-bearer, canary-env value and (canary-header)"
	got := spec.RedactText(text)
	if strings.Contains(got, "canary") || !strings.HasPrefix(got, "debug: run --verbose plain-word with ") {
		t.Errorf("hidden: %q", got)
	}
}
