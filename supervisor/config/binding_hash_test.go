package config_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// TestTheHashOfABinding holds the hash of one binding of version 2. Approvals are stored under it: if this test fails, everything that
// anybody has approved waits again. Then raise BindingVersion, and the version of the store of approvals.
func TestTheHashOfABinding(t *testing.T) {
	b := config.Binding{Version: config.BindingVersion, Server: "a", Path: "/p/.mcp.json", Project: "/p",
		Entry: []byte(`{"args":["1"],"command":"x"}`), Variables: []string{"ONE"}, Files: []string{"a.sh"}}
	const want = "v2:6ace5f17605f52a14d1e0633fc0156bdc56053e67e36ba8a096318f978c811bc"
	if got := b.Hash(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
