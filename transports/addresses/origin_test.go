package addresses_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

func TestOriginIsTheSameForWebSockets(t *testing.T) {
	for text, want := range map[string]string{
		"https://a.example/mcp": "https://a.example", "wss://a.example/other": "https://a.example", "ws://a.example:81": "http://a.example:81",
		"http://a.example:81/": "http://a.example:81", "": "", "npx": "", "http://[": "",
	} {
		if got := addresses.OriginOf(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}
