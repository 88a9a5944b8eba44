package stdio_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

func init() {
	ordinary = append(ordinary, "TestFilesMoveBetweenFolders", "TestAnIsolatedServerLeavesOthersAlone", "TestAServerWithoutIsolationDoesWhatItLikes",
		"TestABoundedServerHasNoTerminal", "TestAKernelWithoutLandlockIsNamed", "TestAServerThatWatchesItsParentIsExplained",
		"TestAServerWithoutNetworkHasNoSockets", "TestAServerWithItsOwnLoopbackReachesNobodyElse")
	attempts["move"] = func(dir string) error {
		return os.Rename(filepath.Join(dir, "one", "f"), filepath.Join(dir, "two", "f"))
	}
	attempts["link"] = func(dir string) error {
		return os.Link(filepath.Join(dir, "one", "g"), filepath.Join(dir, "two", "g"))
	}
	attempts["probe"] = func(string) error { return unix.Kill(unix.Getppid(), 0) }
	attempts["limit"] = func(string) error {
		return unix.Prlimit(unix.Getppid(), unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	}
	attempts["ownLimit"] = func(string) error {
		var l unix.Rlimit
		return unix.Prlimit(0, unix.RLIMIT_CORE, nil, &l)
	}
	attempts["pin"] = func(string) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(unix.Getppid(), &set)
	}
	attempts["slow"] = func(string) error { return unix.Setpriority(unix.PRIO_PROCESS, unix.Getppid(), 5) }
	attempts["datagrams"] = func(string) error {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	}
	attempts["user"] = func(string) error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
		return cmd.Run()
	}
	attempts["mount"] = func(dir string) error {
		cmd := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "x", dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	}
	attempts["traceChild"] = func(string) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		_ = cmd.Wait()
		_ = unix.PtraceDetach(cmd.Process.Pid)
		return nil
	}
	attempts["unrestricted"] = func(string) error {
		b, err := os.ReadFile("/proc/thread-self/status")
		if err == nil && (!strings.Contains(string(b), "NoNewPrivs:\t0") || !strings.Contains(string(b), "Seccomp:\t0")) {
			err = errors.New("it is restricted")
		}
		return err
	}
	// withoutLandlock is a kernel without it: an older one, or a container that forbids it. Its argument is a manager's role.
	roles["withoutLandlock"] = func(role string) {
		if err := answerNoLandlock(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(94)
		}
		name, arg, _ := strings.Cut(role, ":")
		roles[name](arg)
	}
	// named is a manager with one server, which says what that is kept from.
	roles["named"] = func(arg string) {
		var i messages.Isolation
		if err := json.Unmarshal([]byte(arg), &i); err != nil {
			os.Exit(95)
		}
		cfg := asRole("attempts:temp")
		cfg.Isolation = &i
		c, err := stdio.New(cfg).Dial(context.Background(), &transporttest.Recorder{})
		var text string
		if err != nil {
			text = "! " + err.Error()
		} else {
			text = c.Info().Isolation.String()
		}
		line, _ := json.Marshal(map[string]string{"said": text})
		fmt.Printf("%s\n", line)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	// watchdog ends when its parent seems to be gone.
	roles["watchdog"] = func(string) {
		fmt.Println(`{"ready":true}`)
		for unix.Kill(unix.Getppid(), 0) == nil {
			time.Sleep(10 * time.Millisecond)
		}
		os.Exit(1)
	}
}

// answerNoLandlock makes the kernel answer ENOSYS to what asks for Landlock, for this whole process and what it starts.
func answerNoLandlock() error {
	program := []unix.SockFilter{
		{Code: 0x20, K: 0}, // the number of the call; the same on every architecture
		{Code: 0x35, Jf: 2, K: unix.SYS_LANDLOCK_CREATE_RULESET},
		{Code: 0x25, Jt: 1, K: unix.SYS_LANDLOCK_RESTRICT_SELF},
		{Code: 0x06, K: 0x00050000 | uint32(unix.ENOSYS)},
		{Code: 0x06, K: 0x7fff0000},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&f)))
	if errno != 0 {
		return errno
	}
	return nil
}

// isolationKinds are isolations of every kind for a server that works in dir.
func isolationKinds(dir string) map[string]messages.Isolation {
	return map[string]messages.Isolation{
		"true":     *messages.DefaultIsolation(),
		"write":    {PrivateTemp: true, Write: []string{dir}},
		"read":     {PrivateTemp: true, Read: []string{dir}},
		"both":     {PrivateTemp: true, Write: []string{dir}, Read: []string{dir}},
		"none":     {Network: messages.NetworkNone},
		"loopback": {Network: messages.NetworkLoopback},
		"limits":   {NoNewPrivileges: true, Files: 256},
		"browser":  {Write: []string{dir}, Read: []string{dir}, Network: messages.NetworkLoopback, OwnSandbox: true},
	}
}

// needsLandlock skips a test of what a Landlock of that version does.
func needsLandlock(t *testing.T, version int) {
	t.Helper()
	if can := stdio.Capabilities(t.Context()); can.Landlock < version {
		t.Skipf("Landlock has version %d here, not %d", can.Landlock, version)
	}
}

func TestFilesMoveBetweenFolders(t *testing.T) {
	for name := range isolationKinds("") {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, d := range []string{"one", "two"} {
				if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range []string{"f", "g"} {
				if err := os.WriteFile(filepath.Join(dir, "one", f), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			i := isolationKinds(dir)[name]
			skipWithout(t, i)
			_, said := attemptIsolated(t, i, "move "+dir, "link "+dir)
			expectAttempts(t, said, map[string]string{"move": "", "link": ""})
		})
	}
}

// The manager of these attempts is this test's process, and the neighbour another server of it.
func TestAnIsolatedServerLeavesOthersAlone(t *testing.T) {
	needsLandlock(t, 6)
	neighbour := startServer(t, asRole("attempts:temp", "NEIGHBOURS_TOKEN=x"))
	neighbour.waitLine(0)
	dir := t.TempDir()
	for name, i := range isolationKinds(dir) {
		t.Run(name, func(t *testing.T) {
			skipWithout(t, i)
			list := []string{"trace " + strconv.Itoa(os.Getpid())}
			want := map[string]string{"trace": "denied"}
			if os.Getuid() != 0 { // root reads the environment of every process
				list = append(list, "environment "+strconv.Itoa(neighbour.Info().PID))
				want["environment"] = "denied"
			}
			if name != "true" && name != "limits" {
				list = append(list, "probe", "limit", "ownLimit", "pin", "slow", "start /bin/true")
				for _, what := range []string{"probe", "limit", "pin", "slow"} {
					want[what] = "operation not permitted"
				}
				want["ownLimit"], want["start"] = "", ""
				if name != "loopback" && name != "none" {
					want["start"] = ""
				}
				if name != "browser" {
					list = append(list, "user", "traceChild")
					want["user"], want["traceChild"] = "operation not permitted", "operation not permitted"
				}
			}
			if name == "none" {
				list = append(list, "pair", "datagrams")
				want["pair"], want["datagrams"] = "", "permission denied"
			}
			if name == "browser" && os.Getuid() != 0 {
				list = append(list, "traceChild")
				want["traceChild"] = ""
			}
			_, said := attemptIsolated(t, i, list...)
			expectAttempts(t, said, want)
		})
	}
}

// Without isolation nothing is taken from a server that is not the manager's.
func TestAServerWithoutIsolationDoesWhatItLikes(t *testing.T) {
	list := []string{"unrestricted", "probe", "ownLimit", "datagrams", "traceChild"}
	want := map[string]string{"unrestricted": "", "probe": "", "ownLimit": "", "datagrams": "", "traceChild": ""}
	if stdio.Capabilities(t.Context()).NoNamespace == "" {
		list, want["user"] = append(list, "user"), ""
		if _, err := exec.LookPath("unshare"); err == nil {
			list, want["mount"] = append(list, "mount "+t.TempDir()), ""
		}
	}
	said := map[string]string{}
	if err := json.Unmarshal([]byte(startServer(t, asRole("attempts:"+strings.Join(list, "\n"))).waitLine(0)), &said); err != nil {
		t.Fatal(err)
	}
	expectAttempts(t, said, want)
}

// A server that is kept from files, or from the network, types into no terminal that it opens by name, and with write or read it
// does not read there either.
func TestABoundedServerHasNoTerminal(t *testing.T) {
	needsLandlock(t, 5)
	dir := t.TempDir()
	for name, i := range isolationKinds(dir) {
		if name == "true" || name == "limits" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			skipWithout(t, i)
			said := onTerminal(t, map[string]any{"List": "tty\ntype {tty}\npaste {tty}\ntypeFar {tty}\nlisten {tty}", "Isolation": &i})
			for _, what := range []string{"tty", "type", "paste", "typeFar"} {
				if said[what] == "ok" {
					t.Errorf("%s: %s", what, said[what])
				}
			}
			if name != "none" && name != "loopback" && said["listen"] == "ok" {
				t.Error("it reads what is typed")
			}
		})
	}
}

// A machine without Landlock keeps what it has, and says what it has not.
func TestAKernelWithoutLandlockIsNamed(t *testing.T) {
	for arg, want := range map[string]string{
		`{"privateTemp": true, "noNewPrivileges": true}`: "no look into other processes (it has no Landlock",
		`{"network": "none"}`:                            "no look into other processes (it has no Landlock",
		`{"write": []}`:                                  "! isolation.write cannot be enforced on this machine: it has no Landlock",
	} {
		cfg := asRole("withoutLandlock:named:" + arg)
		if line := startServer(t, cfg).waitLine(0); !strings.Contains(line, want) {
			t.Errorf("%s: %s", arg, line)
		}
	}
}

func TestAServerThatWatchesItsParentIsExplained(t *testing.T) {
	needsLandlock(t, 6)
	for fix, i := range map[string]*messages.Isolation{
		"kill(ppid, 0)": {Network: messages.NetworkLoopback}, "": {NoNewPrivileges: true},
	} {
		cfg := asRole("watchdog")
		if cfg.Isolation = i; fix == "" {
			s := startServer(t, cfg)
			s.waitLine(0)
			time.Sleep(50 * time.Millisecond)
			if d := s.Downs(); len(d) > 0 {
				t.Error(d)
			}
			continue
		}
		skipWithout(t, *i)
		s := startServer(t, cfg)
		s.expectReleased()
		var e *transports.Error
		if d := s.Downs(); len(d) != 1 || !errors.As(d[0], &e) || !strings.Contains(e.Fix, fix) {
			t.Errorf("%v", d)
		}
	}
}
