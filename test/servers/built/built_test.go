package built_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/test/servers/built"
)

func TestFixtureIsAServer(t *testing.T) {
	path := built.Fixture(t)
	for _, args := range [][]string{{"good"}, servers.Args("good")} {
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %v, output %q; want a silent end at the end of its input", args, err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), path).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range servers.Kinds() {
		if !strings.Contains(string(out), k.Name+" ") {
			t.Errorf("the list does not name %s", k.Name)
		}
	}
}
