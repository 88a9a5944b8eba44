package launcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/internal/launcher"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

func TestMain(m *testing.M) {
	if os.Args[0] == launcher.Name { // the package's init has left it to us
		fmt.Println("not a launcher")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// start runs a program through a launcher and returns its output.
func start(t *testing.T, steps isolation.Steps, path string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := &exec.Cmd{Path: path, Args: append([]string{path}, args...), Env: []string{"A=secret"}, Stdout: &out, Stderr: &out}
	l, err := launcher.Wrap(cmd, steps)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprint(cmd.Args, cmd.Env), "secret") {
		t.Error("the launcher is started with what is for the program")
	}
	if err := cmd.Start(); err != nil {
		l.Abandon()
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err = l.Finish(ctx); err != nil {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait()
	return out.String(), err
}

func TestTheProgramIsTheProcess(t *testing.T) {
	steps := isolation.Steps{NoNewPrivileges: true, Limits: []isolation.Limit{{Key: "files", Most: 77}}}
	out, err := start(t, steps, "/bin/sh", "-c", "ulimit -n; echo $A; [ -e /proc/$$/fd/3 ] || [ -e /proc/$$/fd/4 ] || echo clean")
	if err != nil || out != "77\nsecret\nclean\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestAStepThatFailsIsNamed(t *testing.T) {
	for _, c := range []struct {
		steps isolation.Steps
		path  string
		want  string
		errno syscall.Errno
	}{
		{isolation.Steps{}, "/no/such/program", "exec", syscall.ENOENT},
		{isolation.Steps{}, "/dev/null", "exec", syscall.EACCES},
		{isolation.Steps{Limits: []isolation.Limit{{Key: "processes", Most: 1}}}, "/bin/true", "processes", syscall.EINVAL},
		{isolation.Steps{Filter: []isolation.Instruction{{Code: 0xffff}}, NoNewPrivileges: true}, "/bin/true", "network", syscall.EINVAL},
	} {
		_, err := start(t, c.steps, c.path)
		var failed *launcher.StepError
		if !errors.As(err, &failed) || failed.Step != c.want || !errors.Is(err, c.errno) {
			t.Errorf("%+v: %v, want %s and %v", c.steps, err, c.want, c.errno)
		}
	}
}

// A process that has the name alone becomes the program as it is: a word on the command line makes no launcher.
func TestTheNameAloneMakesNoLauncher(t *testing.T) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{launcher.Name}}
	out, err := cmd.Output()
	if err != nil || string(out) != "not a launcher\n" {
		t.Errorf("%q, %v", out, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	cmd = &exec.Cmd{Path: "/proc/self/exe", Args: []string{launcher.Name, "x"}, ExtraFiles: []*os.File{r, w}}
	if out, err := cmd.Output(); err != nil || string(out) != "not a launcher\n" {
		t.Errorf("with an argument: %q, %v", out, err)
	}
}

// A program that this package was loaded into, and that is not written in Go, would not understand the order. It gets none.
func TestAProgramThatIsNoLauncherIsToldNothing(t *testing.T) {
	for _, script := range []string{"exit 0", "echo hello >&4", "echo no launch >&4; cat <&3 >&4"} {
		cmd := &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Env: []string{}}
		l, err := launcher.Wrap(cmd, isolation.Steps{})
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", script}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		err = l.Finish(context.Background())
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if !errors.Is(err, launcher.ErrNoLauncher) {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// A launcher that does not go on does not hold up its caller for ever.
func TestFinishEndsWithItsContext(t *testing.T) {
	cmd := &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Env: []string{}}
	l, err := launcher.Wrap(cmd, isolation.Steps{})
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Args = "/bin/sleep", []string{"sleep", "100"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := l.Finish(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
