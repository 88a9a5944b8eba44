package auth_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// The tests need other processes that share a store. They are this test binary, started again with a role.
const roleVariable = "AUTH_TEST_ROLE"

func TestMain(m *testing.M) {
	auth.Cheap()
	role, arg, _ := strings.Cut(os.Getenv(roleVariable), ":")
	if play, ok := roles[role]; ok {
		if err := play(arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var roles = map[string]func(arg string) error{}

// inRole is this binary in a role.
func inRole(t *testing.T, role string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	// A binary with the race detector sleeps 1 s at its end otherwise.
	cmd.Env = append(os.Environ(), append(env, roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")...)
	return cmd
}
