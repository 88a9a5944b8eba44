package starved_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
)

var (
	shares  = flag.String("shares", "", "percents of one processor, with commas between them; empty measures nothing")
	servers = flag.String("servers", "8,40", "how many servers, with commas between them")
)

// longest bounds one run, as the clients that are compared with are bounded.
const longest = 10 * time.Minute

// work is what a worker is told, result what it says.
type work struct {
	Client  string
	Servers int
	Command string
	Args    []string
	Group   string // the file to write its process id to
}

type result struct {
	Connected int
	Took      time.Duration
	CPU       time.Duration // of the worker and of its servers
}

const workVariable = "MCPVISOR_STARVED_WORK"

// TestMain makes the test binary the worker as well: it enters the group with its quota, and its servers with it.
func TestMain(m *testing.M) {
	text := os.Getenv(workVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	_ = os.Unsetenv(workVariable)
	var w work
	err := json.Unmarshal([]byte(text), &w)
	if err == nil {
		err = tell(w.Group, strconv.Itoa(os.Getpid()))
	}
	var r result
	if err == nil {
		r, err = w.run()
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestStarved prints a table. It judges nothing: the numbers are those of the machine.
func TestStarved(t *testing.T) {
	if *shares == "" {
		t.Skip("make starved measures; -shares says of what")
	}
	node := peers.NPM(t)
	command, args := node.Command(peers.SequentialThinking)
	for _, share := range numbers(t, *shares) {
		for _, n := range numbers(t, *servers) {
			for _, client := range []string{"mcpvisor", "go-sdk, all at once", "go-sdk, 8 at a time"} {
				group, end, err := newGroup(share)
				if err != nil {
					t.Skip("no group with a quota of processor time can be made here: ", err)
				}
				r, err := start(t.Context(), work{Client: client, Servers: n, Command: command, Args: args, Group: group})
				end()
				if err != nil {
					t.Errorf("%s: %v", client, err)
					continue
				}
				t.Logf("%3d %% of a processor, %3d servers, %-20s %3d connected after %6.1f s, %6.1f s of processor time",
					share, n, client+":", r.Connected, r.Took.Seconds(), r.CPU.Seconds())
			}
		}
	}
}

func numbers(t *testing.T, text string) (list []int) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			t.Fatalf("%q is no number", word)
		}
		list = append(list, n)
	}
	return list
}

// newGroup makes a control group with a quota, of version 2 or 1, whichever has the controller. Writing a process id to the file
// puts the process into it.
func newGroup(percent int) (procs string, end func(), err error) {
	const period = 100_000 // µs
	name := fmt.Sprintf("mcpvisor-starved-%d", os.Getpid())
	var errs []string
	for _, v := range []struct{ root, file, text string }{
		{"/sys/fs/cgroup", "cpu.max", fmt.Sprintf("%d %d", percent*period/100, period)},
		{"/sys/fs/cgroup/unified", "cpu.max", fmt.Sprintf("%d %d", percent*period/100, period)},
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", strconv.Itoa(percent * period / 100)},
		{"/sys/fs/cgroup/cpu,cpuacct", "cpu.cfs_quota_us", strconv.Itoa(percent * period / 100)},
	} {
		dir := filepath.Join(v.root, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			errs = append(errs, err.Error())
			continue
		}
		if err := tell(filepath.Join(dir, v.file), v.text); err != nil {
			errs = append(errs, err.Error())
			_ = syscall.Rmdir(dir)
			continue
		}
		return filepath.Join(dir, "cgroup.procs"), func() {
			for range 100 { // until the last process of it is reaped
				if syscall.Rmdir(dir) == nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}, nil
	}
	return "", nil, fmt.Errorf("%s", strings.Join(errs, "; "))
}

// tell writes to a file that the kernel has made. Where it is not there, none is made: a folder may be of no group at all.
func tell(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func start(ctx context.Context, w work) (r result, err error) {
	text, err := json.Marshal(w)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, longest+5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), workVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

func (w *work) run() (r result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	begin := time.Now()
	if w.Client == "mcpvisor" {
		r.Connected, r.Took, err = w.supervised(ctx, begin)
	} else {
		slots := w.Servers
		if strings.Contains(w.Client, "8") {
			slots = 8
		}
		r.Connected, r.Took = w.compared(ctx, begin, slots)
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			r.CPU += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return r, err
}

func (w *work) supervised(ctx context.Context, begin time.Time) (connected int, took time.Duration, err error) {
	specs := map[string]supervisor.Spec{}
	for i := range w.Servers {
		specs[fmt.Sprint("s", i)] = supervisor.Spec{Command: w.Command, Args: w.Args}
	}
	m, err := supervisor.Start(ctx, supervisor.Config{Servers: specs})
	if err != nil {
		return 0, 0, err
	}
	for ctx.Err() == nil && len(m.ConnectedServers()) < w.Servers {
		time.Sleep(50 * time.Millisecond)
	}
	connected, took = len(m.ConnectedServers()), time.Since(begin)
	end, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return connected, took, m.Close(end)
}

func (w *work) compared(ctx context.Context, begin time.Time, slots int) (int, time.Duration) {
	var (
		all       sync.WaitGroup
		connected atomic.Int64
		took      time.Duration
		free      = make(chan struct{}, slots)
		sessions  = make([]*sdk.ClientSession, w.Servers)
	)
	for i := range sessions {
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			client := sdk.NewClient(&sdk.Implementation{Name: "starved", Version: "1"}, nil)
			session, err := client.Connect(ctx, &sdk.CommandTransport{Command: exec.Command(w.Command, w.Args...)}, nil)
			if err != nil {
				return
			}
			sessions[i] = session
			if _, err := session.ListTools(ctx, nil); err == nil {
				connected.Add(1)
			}
		})
	}
	all.Wait()
	took = time.Since(begin)
	for _, session := range sessions {
		if session != nil {
			all.Go(func() { _ = session.Close() })
		}
	}
	all.Wait()
	return int(connected.Load()), took
}
