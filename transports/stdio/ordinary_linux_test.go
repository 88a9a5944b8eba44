package stdio_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ordinary are the tests whose promise is one to ordinary users: what root may is another question. A test adds itself in an
// init function.
var ordinary []string

// nobody is a user without any right.
const nobody = 65534

// TestAsAnOrdinaryUser runs them as one. They also run as who runs the tests.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("they are run as an ordinary user already")
	}
	t.Parallel()
	dir, program := public(t)
	cmd := exec.Command(program, "-test.run=^("+strings.Join(ordinary, "|")+")$", "-test.timeout=5m")
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", setuidCopy(t, dir)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// public makes a folder that the user nobody owns, with this program in it: what "go test" builds can be read by nobody else.
func public(t *testing.T) (dir, program string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "public")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "stdio.test")
	if err := os.WriteFile(program, b, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return dir, program
}
