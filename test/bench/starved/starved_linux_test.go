package starved_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
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
	rounds  = flag.Int("rounds", 3, "how often each client is measured; the table has medians")
	samples = flag.String("samples", "", "the `file` that the samples are appended to; the table is made of all that are in it")
	readme  = flag.String("readme", "", "the `file` that the table is written to")
)

// longest bounds one run, as the clients that are compared with are bounded.
const longest = 10 * time.Minute

// clients are the measured programs, ours first.
var clients = []string{"mcpvisor", "go-sdk, all at once", "go-sdk, 8 at a time", "typescript, all at once", "typescript, 8 at a time"}

// work is the order to a worker, result its report.
type work struct {
	Client  string
	Servers int
	Command string
	Args    []string
	Folder  string // in which the TypeScript SDK is installed
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

// TestStarved measures each client with each share and each number of servers, the clients in turns, and prints a table. It judges
// nothing: the numbers are those of the machine.
func TestStarved(t *testing.T) {
	if *shares == "" {
		t.Skip("make starved measures; -shares says of what")
	}
	node := peers.NPM(t)
	command, args := node.Command(peers.SequentialThinking)
	folder, version := node.Package(t, "@modelcontextprotocol/sdk")
	for _, n := range numbers(t, *servers) {
		for _, share := range numbers(t, *shares) {
			for round := range *rounds {
				for i := range clients {
					w := work{Client: clients[(i+round)%len(clients)], Servers: n, Command: command, Args: args, Folder: folder}
					s := sample{Share: share, Servers: n, Client: w.Client}
					group, end, err := newGroup(share)
					if err != nil {
						t.Skip("no group with a quota of processor time can be made here: ", err)
					}
					w.Group = group
					s.result, err = start(t.Context(), w)
					end()
					if err != nil {
						t.Errorf("%s: %v", w.Client, err)
						continue
					}
					t.Logf("%3d %% of a processor, %3d servers, %-22s %3d connected after %6.1f s, %6.1f s of processor time",
						share, n, w.Client+":", s.Connected, s.Took.Seconds(), s.CPU.Seconds())
					if err := keep(*samples, s); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	all, err := kept(*samples)
	if err != nil {
		t.Fatal(err)
	}
	text := tableOf(all, version)
	t.Log("\n" + text)
	if *readme != "" {
		if err := os.WriteFile(*readme, []byte(text), 0o600); err != nil {
			t.Fatal(err)
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

// environment holds the variables that the TypeScript SDK hands on to a server by default. All servers get the same: one that
// starts with NODE_EXTRA_CA_CERTS costs a third more.
var environment = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}

func start(ctx context.Context, w work) (r result, err error) {
	text, err := json.Marshal(w)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, longest+5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = []string{workVariable + "=" + string(text)}
	for _, name := range environment {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
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
	slots := w.Servers
	if strings.Contains(w.Client, "8") {
		slots = 8
	}
	switch name, _, _ := strings.Cut(w.Client, ","); name {
	case "mcpvisor":
		r.Connected, r.Took, err = w.supervised(ctx, begin)
	case "typescript":
		r, err = w.typescript(ctx, slots)
	default:
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

// typescript runs the program that connects with the SDK of that language. Its own clock begins when Node has read the SDK.
func (w *work) typescript(ctx context.Context, slots int) (r result, err error) {
	args := append([]string{"client.mjs", w.Folder, strconv.Itoa(w.Servers), strconv.Itoa(slots), w.Command}, w.Args...)
	cmd := exec.CommandContext(ctx, w.Command, args...) // the servers' command is node
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}
