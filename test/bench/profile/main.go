// Command profile keeps a manager busy, with 1,000 callers over servers in process, over stdio and over streamable HTTP, and
// writes profiles of the processor, the heap, and of waiting for locks and channels, for "go tool pprof". It prints the
// functions with the most time of their own, and how the time is spread over the servers: the goroutines of one server carry
// its name in a label; those without one are callers, actors and the garbage collector.
//
//	go run ./test/bench/profile -out .cache/profile -for 10s
//
// "go tool pprof" makes the summary; without a Go tool the command still writes the files.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/bench/scale"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

func main() {
	if servers.Main(os.Args[1:]) || scale.Main(os.Args[1:]) {
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

// run calls the servers of a manager under the profilers, and prints the summaries.
func run() error {
	out := flag.String("out", ".cache/profile", "the `folder` for the profiles")
	long := flag.Duration("for", 10*time.Second, "how long to call")
	callers := flag.Int("callers", 1000, "how many call at once")
	each := flag.Int("servers", 4, "how many servers of each kind")
	flag.Parse()
	if *callers < 1 || *each < 1 || *long <= 0 {
		return errors.New("-callers, -servers and -for must be more than nothing")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	m, end, err := scale.Busy(ctx, *each)
	if err != nil {
		return err
	}
	defer end()
	runtime.SetMutexProfileFraction(10)
	runtime.SetBlockProfileRate(int(10 * time.Microsecond))
	cpu := filepath.Join(*out, "cpu.pprof")
	f, err := os.Create(cpu)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	calls, failed := callServers(ctx, m, *callers, *long)
	pprof.StopCPUProfile()
	for _, name := range []string{"heap", "mutex", "block", "goroutine"} {
		if err := saveProfile(name, filepath.Join(*out, name+".pprof")); err != nil {
			return err
		}
	}
	fmt.Printf("%d calls by %d callers in %s, %d failed; profiles are in %s\n", calls, *callers, *long, failed, *out)
	if failed > 0 {
		return fmt.Errorf("%d of %d calls failed", failed, calls)
	}
	for _, part := range []struct{ title, file, flags string }{
		{"processor, by function", cpu, "-top -nodecount=20"},
		{"processor, by server", cpu, "-tags"},
		{"waiting for locks", filepath.Join(*out, "mutex.pprof"), "-top -nodecount=10"},
	} {
		text, err := exec.CommandContext(ctx, "go", append(append([]string{"tool", "pprof"}, strings.Fields(part.flags)...), part.file)...).Output()
		if err != nil {
			fmt.Printf("\n%s: go tool pprof %s %s\n", part.title, part.flags, part.file)
			continue
		}
		fmt.Printf("\n%s\n%s", part.title, text)
	}
	return nil
}

// saveProfile writes one of the runtime's profiles.
func saveProfile(name, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = pprof.Lookup(name).WriteTo(f, 0)
	return errors.Join(err, f.Close())
}

// callServers calls from many goroutines, each of which goes through all servers. It returns the numbers of calls and of
// failures.
func callServers(ctx context.Context, m *supervisor.Manager, callers int, long time.Duration) (calls, failed int64) {
	var total, failures atomic.Int64
	names := m.Servers()
	until := time.Now().Add(long)
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for n := caller; time.Now().Before(until) && ctx.Err() == nil; n++ {
				server := names[n%len(names)]
				if _, err := m.CallServerTool(ctx, server, scale.BusyTool(server), map[string]any{"text": "x"}); err != nil && ctx.Err() == nil {
					failures.Add(1)
				}
				total.Add(1)
			}
		})
	}
	wg.Wait()
	return total.Load(), failures.Load()
}
