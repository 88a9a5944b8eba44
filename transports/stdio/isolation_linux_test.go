package stdio_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

func init() {
	// attempts tries what is listed ("write /x\nread /y"), says what became of each, and lives until its input ends.
	roles["attempts"] = func(list string) {
		said := map[string]string{}
		for what := range strings.SplitSeq(list, "\n") {
			verb, arg, _ := strings.Cut(what, " ")
			said[verb] = "ok"
			if err := attempts[verb](arg); err != nil {
				said[verb] = err.Error()
			}
		}
		line, _ := json.Marshal(said)
		fmt.Printf("%s\n", line)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// attempts are the actions that an isolated child tries.
var attempts = map[string]func(arg string) error{
	"write":  func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
	"append": func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
	"empty":  func(path string) error { return os.Truncate(path, 0) },
	"remove": os.Remove,
	"rename": func(path string) error { return os.Rename(path, path+".new") },
	"read": func(path string) error {
		_, err := os.ReadFile(path)
		return err
	},
	"list": func(path string) error {
		_, err := os.ReadDir(path)
		return err
	},
	"dial": reach,
	"udp": func(string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	},
	"pair": func(string) error {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return err
	},
	"loopback": func(string) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		return reach(l.Addr().String())
	},
	"trace": func(pid string) error {
		f, err := os.Open("/proc/" + pid + "/mem")
		if err == nil {
			_ = f.Close()
		}
		return err
	},
	"temp": func(string) error { return fmt.Errorf("%s", os.TempDir()) },
	"inTemp": func(string) error {
		return os.WriteFile(filepath.Join(os.TempDir(), "x"), []byte("x"), 0o600)
	},
	"privileges": func(string) error {
		b, err := os.ReadFile("/proc/thread-self/status")
		if err == nil && !strings.Contains(string(b), "NoNewPrivs:\t1") {
			err = errors.New("it may get new privileges")
		}
		return err
	},
	"capabilities": func(string) error {
		b, err := os.ReadFile("/proc/thread-self/status")
		if err == nil && !strings.Contains(string(b), "CapEff:\t0000000000000000") {
			err = errors.New("it has capabilities")
		}
		return err
	},
	"files": func(string) error {
		for range 300 {
			f, err := os.Open("/dev/null")
			if err != nil {
				return err
			}
			defer f.Close()
		}
		return nil
	},
	"large": func(path string) error {
		signal.Ignore(syscall.SIGXFSZ)
		return os.WriteFile(path, make([]byte, 2<<20), 0o600)
	},
	"memory": func(string) error {
		_, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		return err
	},
	"start": func(program string) error { return exec.Command(program).Run() },
}

func reach(addr string) error {
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	c, err := net.Dial(network, addr)
	if err == nil {
		_ = c.Close()
	}
	return err
}

// attemptIsolated starts an isolated child and returns what became of what it tried.
func attemptIsolated(t *testing.T, i messages.Isolation, list ...string) (*child, map[string]string) {
	t.Helper()
	cfg := asRole("attempts:" + strings.Join(list, "\n"))
	cfg.Isolation = &i
	s := startServer(t, cfg)
	said := map[string]string{}
	if err := json.Unmarshal([]byte(s.waitLine(0)), &said); err != nil {
		t.Fatal(err)
	}
	return s, said
}

// expectAttempts compares what became of attempts: "" is success, else a part of the error.
func expectAttempts(t *testing.T, said, want map[string]string) {
	t.Helper()
	for what, text := range want {
		if got := said[what]; text == "" && got != "ok" || text != "" && !strings.Contains(got, text) {
			t.Errorf("%s: %s, want %q", what, got, text)
		}
	}
}

// skipWithout skips a test of what this kernel cannot do: that it is refused then is tested by
// TestWhatCannotBeEnforcedIsRefusedAndNeverWeaker of package isolation.
func skipWithout(t *testing.T, i messages.Isolation) {
	t.Helper()
	if _, err := isolation.Plan(&i, stdio.Capabilities(context.Background())); err != nil {
		t.Skip(err)
	}
}

// fullIsolation asks for all that there is, as far as this kernel has it.
func fullIsolation(network string) *messages.Isolation {
	return &messages.Isolation{
		PrivateTemp: true, NoNewPrivileges: true, Write: []string{}, Read: []string{filepath.Dir(os.Args[0])}, Network: network,
		Memory: 8 << 30, FileSize: 1 << 30, Files: 512, CPUTime: messages.Duration(time.Hour), BestEffort: true,
	}
}

// Being isolated changes nothing of what a transport promises.
func TestIsolatedStdioContract(t *testing.T) { stdioContract(t, fullIsolation(messages.NetworkNone)) }

// The kernel ends an isolated child too when its manager is killed, in a namespace of its own as well.
func TestKernelEndsTheIsolatedChildOfAKilledManager(t *testing.T) {
	for _, network := range []string{messages.NetworkNone, messages.NetworkLoopback} {
		t.Run(network, func(t *testing.T) {
			endsWithItsManager(t, "isolating:"+network)
		})
	}
}

// The environment and the arguments of a server are on no command line but its own, and what it is given does not act on
// the launcher.
func TestALauncherTellsNothingAndHearsNothing(t *testing.T) {
	cfg := asRole("print:LD_PRELOAD", "LD_PRELOAD=/no/such/library.so", "GODEBUG=inittrace=1")
	cfg.Isolation = messages.DefaultIsolation()
	s := startServer(t, cfg)
	if line := s.waitLine(0); !strings.Contains(line, `"env":"/no/such/library.so"`) {
		t.Error(line)
	}
	s.expectReleased()
	// Each Go program that has the variable traces its own beginning once.
	if n := strings.Count(s.Info().StderrTail, "init internal/bytealg"); n > 1 {
		t.Errorf("the launcher was given the variables of the server:\n%s", s.Info().StderrTail)
	}
}

// What is not asked for costs nothing: the child is started as ever.
func TestWithoutIsolationNoLauncherRuns(t *testing.T) {
	for _, i := range []*messages.Isolation{nil, {}, {BestEffort: true}} {
		cfg := asRole("print:TMPDIR")
		cfg.Isolation = i
		s := startServer(t, cfg)
		if line := s.waitLine(0); !strings.Contains(line, `"env":""`) || s.Info().Isolation != nil {
			t.Errorf("%+v: %s, %v", i, line, s.Info().Isolation)
		}
	}
}

func TestAReadOnlyServerWritesOnlyWhereItMay(t *testing.T) {
	seeds.Shows(t, "002.9.sandbox")
	data, other := t.TempDir(), t.TempDir()
	for _, f := range []string{filepath.Join(data, "old"), filepath.Join(other, "old")} {
		if err := os.WriteFile(f, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i := messages.Isolation{PrivateTemp: true, Write: []string{data}}
	skipWithout(t, i)
	s, said := attemptIsolated(t, i, "write "+filepath.Join(data, "new"), "append "+filepath.Join(other, "old"),
		"empty "+filepath.Join(other, "old"), "remove "+filepath.Join(other, "old"), "rename "+filepath.Join(data, "old"),
		"read "+filepath.Join(other, "old"), "inTemp", "privileges", "trace "+fmt.Sprint(os.Getpid()))
	expectAttempts(t, said, map[string]string{
		"write": "", "append": "permission denied", "empty": "permission denied", "remove": "permission denied", "rename": "",
		"read": "", "inTemp": "", "privileges": "", "trace": "permission denied",
	})
	if b, _ := os.ReadFile(filepath.Join(other, "old")); string(b) != "old" {
		t.Errorf("the file outside holds %q", b)
	}
	want := "private temp, no new privileges, read-only except " + data + " and its temp, no look into other processes"
	if got := s.Info().Isolation.String(); !strings.HasPrefix(got, want) {
		t.Errorf("in force: %s\nwant: %s", got, want)
	}
}

func TestAServerReadsOnlyWhatItMay(t *testing.T) {
	data, secret := t.TempDir(), t.TempDir()
	for _, dir := range []string{data, secret} {
		if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i := messages.Isolation{PrivateTemp: true, Read: []string{data}}
	skipWithout(t, i)
	_, said := attemptIsolated(t, i, "read "+filepath.Join(data, "f"), "list "+secret, "inTemp", "start /bin/true")
	expectAttempts(t, said, map[string]string{"read": "", "list": "permission denied", "inTemp": "", "start": ""})
	_, said = attemptIsolated(t, i, "read "+filepath.Join(secret, "f"))
	expectAttempts(t, said, map[string]string{"read": "permission denied"})
}

// A relative path starts where the server does.
func TestRelativePathsStartAtTheWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	i := messages.Isolation{Write: []string{"./data"}}
	skipWithout(t, i)
	cfg := asRole("attempts:write data/x")
	cfg.Dir, cfg.Isolation = dir, &i
	if got := startServer(t, cfg).waitLine(0); got != `{"write":"ok"}` {
		t.Error(got)
	}
	i.Write = []string{"./absent"}
	_, err := stdio.New(cfg).Dial(context.Background(), &transporttest.Recorder{})
	var e *transports.Error
	if !errors.As(err, &e) || e.Class != messages.ClassConfig || !strings.Contains(e.Text, `isolation.write: "./absent" cannot be used`) {
		t.Error(err)
	}
}

func TestAServerWithoutNetworkHasNoSockets(t *testing.T) {
	seeds.Shows(t, "002.9.sandbox")
	i := messages.Isolation{Network: messages.NetworkNone}
	skipWithout(t, i)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	path := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for addr, denied := range map[string]messages.Isolation{tcp.Addr().String(): i, path: i} {
		_, said := attemptIsolated(t, messages.Isolation{NoNewPrivileges: true}, "dial "+addr)
		expectAttempts(t, said, map[string]string{"dial": ""})
		_, said = attemptIsolated(t, denied, "dial "+addr, "udp", "pair", "loopback", "privileges", "start /bin/true")
		expectAttempts(t, said, map[string]string{
			"dial": "permission denied", "udp": "permission denied", "pair": "", "loopback": "permission denied",
			"privileges": "", "start": "",
		})
	}
}

func TestAServerWithItsOwnLoopbackReachesNobodyElse(t *testing.T) {
	i := messages.Isolation{Network: messages.NetworkLoopback}
	skipWithout(t, i)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	_, said := attemptIsolated(t, i, "dial "+tcp.Addr().String(), "loopback", "privileges", "capabilities")
	expectAttempts(t, said, map[string]string{"dial": "connection refused", "loopback": "", "privileges": "", "capabilities": ""})
}

func TestLimitsBite(t *testing.T) {
	_, said := attemptIsolated(t, messages.Isolation{Files: 64, FileSize: 1 << 20, Memory: 512 << 20},
		"files", "large "+filepath.Join(t.TempDir(), "f"), "memory")
	expectAttempts(t, said, map[string]string{
		"files": "too many open files", "large": "file too large", "memory": "cannot allocate memory",
	})
}

func TestAServerThatUsesItsProcessorTimeIsKilled(t *testing.T) {
	cfg := asRole("spin")
	cfg.Isolation = &messages.Isolation{CPUTime: messages.Duration(time.Second)}
	s := startServer(t, cfg)
	s.Wait(t, 2*time.Minute, "Down", func() bool { return len(s.Downs()) > 0 }) // a second of a busy machine takes long
	s.expectDown(messages.ClassExited, "signal")
}

func TestThePrivateTempFolderGoesWithItsServer(t *testing.T) {
	for name, end := range map[string]func(*child){
		"close": func(s *child) { s.close() },
		"kill":  func(s *child) { _ = syscall.Kill(s.Info().PID, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			s, said := attemptIsolated(t, messages.Isolation{PrivateTemp: true}, "temp", "inTemp")
			dir := said["temp"]
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != 0o700 || said["inTemp"] != "ok" {
				t.Fatal(said, err)
			}
			if err := os.Mkdir(filepath.Join(dir, "locked"), 0o500); err != nil {
				t.Fatal(err)
			}
			end(s)
			s.expectReleased()
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", dir, err)
			}
		})
	}
}

// A manager that is killed cannot remove anything: the next one does.
func TestThePrivateTempFolderOfAKilledManagerIsRemovedByTheNext(t *testing.T) {
	base := t.TempDir()
	manager := startServer(t, asRole("tempKeeper", "TMPDIR="+base))
	manager.waitLine(0)
	if left, err := os.ReadDir(base); err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	if err := os.Mkdir(filepath.Join(base, "mcpvisor-tmp-of-nobody"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(manager.Info().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	manager.expectReleased()
	if left, err := os.ReadDir(base); err != nil || len(left) != 2 {
		t.Fatal(left, err)
	}
	second := startServer(t, asRole("tempKeeper", "TMPDIR="+base))
	second.waitLine(0)
	// A folder of that name without the marker of a process belongs to another program, and stays.
	if left, err := os.ReadDir(base); err != nil || len(left) != 2 || left[0].Name() != "mcpvisor-tmp-of-nobody" && left[1].Name() != "mcpvisor-tmp-of-nobody" {
		t.Error(left, err)
	}
	_ = second.Close(context.Background())
}

func init() {
	// isolating is a manager without a guardian, whose isolated server ignores everything that can be ignored.
	roles["isolating"] = func(network string) {
		cfg := asRole("deaf")
		cfg.Isolation = fullIsolation(network)
		r := &transporttest.Recorder{}
		c, err := stdio.New(cfg).Dial(context.Background(), r)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(97)
		}
		for len(r.Messages()) == 0 {
			time.Sleep(time.Millisecond)
		}
		fmt.Printf("{\"child\":%d}\n", c.Info().PID)
		time.Sleep(5 * time.Minute)
	}
	// tempKeeper is a manager with one server that has a private folder.
	roles["tempKeeper"] = func(string) {
		cfg := asRole("attempts:inTemp", "TMPDIR="+os.TempDir())
		cfg.Isolation = &messages.Isolation{PrivateTemp: true}
		r := &transporttest.Recorder{}
		if _, err := stdio.New(cfg).Dial(context.Background(), r); err != nil {
			os.Exit(97)
		}
		for len(r.Messages()) == 0 {
			time.Sleep(time.Millisecond)
		}
		fmt.Println(`{"ready":true}`)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	roles["spin"] = func(string) {
		for {
			_ = slices.Max([]int{1, 2})
		}
	}
}
