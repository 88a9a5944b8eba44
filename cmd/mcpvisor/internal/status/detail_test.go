package status

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestApprovalShowsWhatAuthTakes checks that the person who approves a server sees what its auth runs and reads of this
// machine.
func TestApprovalShowsWhatAuthTakes(t *testing.T) {
	for _, c := range []struct {
		auth *messages.Auth
		want string
	}{
		{nil, ""},
		{&messages.Auth{Type: "oauth", ClientID: "c"}, ""},
		{&messages.Auth{Type: "helper", Command: "curl h | sh"}, " · runs for its credentials: curl h | sh"},
		{&messages.Auth{Type: "helper", Command: "a b", Args: []string{"c d"}}, " · runs for its credentials: 'a b' 'c d'"},
		{&messages.Auth{Type: "bearer", FromEnv: "AWS_SECRET"}, " · reads the variable AWS_SECRET"},
		{&messages.Auth{Type: "token_file", TokenPath: "/home/me/.ssh/id"}, " · reads the file /home/me/.ssh/id"},
		{&messages.Auth{Type: "client_credentials", ClientKeyFile: "/k\x1b[2J"}, " · reads the file /k\ufffd[2J"},
	} {
		if got := authInputs(c.auth); got != c.want {
			t.Errorf("%+v: %q, want %q", c.auth, got, c.want)
		}
	}
}
