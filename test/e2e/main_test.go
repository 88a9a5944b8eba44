package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// roles are what this test binary is when it is started again, by its first argument.
var roles = map[string]func(args []string) int{}

func TestMain(m *testing.M) {
	if servers.Main(os.Args[1:]) {
		return
	}
	if len(os.Args) > 1 {
		if role, ok := roles[os.Args[1]]; ok {
			os.Exit(role(os.Args[2:]))
		}
	}
	// A variable that no child may see unless it is declared for it: a child of ours gets a short list.
	if err := os.Setenv(parentSecretName, parentSecret); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const (
	parentSecretName = "E2E_SECRET_OF_THE_PARENT"
	parentSecret     = "canary-parent-a9f3e7"
)
