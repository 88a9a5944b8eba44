package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/test/servers/built"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// countingTransport is a stdio transport that counts how many of its kind are starting: from the dial to the first message,
// which is the answer to the handshake.
type countingTransport struct {
	transports.Transport
	starts *startCounts
}

type startCounts struct{ now, most, all atomic.Int64 }

func (s *startCounts) countStart() (end func()) {
	s.all.Add(1)
	n := s.now.Add(1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	return sync.OnceFunc(func() { s.now.Add(-1) })
}

func (c countingTransport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	end := c.starts.countStart()
	conn, err := c.Transport.Dial(ctx, startedSink{sink, end})
	if err != nil {
		end()
	}
	return conn, err
}

type startedSink struct {
	transports.Sink
	started func()
}

func (s startedSink) Message(body []byte) { s.started(); s.Sink.Message(body) }
func (s startedSink) Down(err error)      { s.started(); s.Sink.Down(err) }

// P13: many processes start through the gate: never more at once than it has slots, and all of them connect. They
// answer, and all of them are gone after Close.
func TestManyProcessesStartThroughTheGate(t *testing.T) {
	seeds.Shows(t, "004.fr2.ac-multiple", "004.fr6.connected-servers", "004.fr6.connect-all")
	checkLeaks(t)
	n := 500
	if testing.Short() {
		n = 60
	}
	program := built.Fixture(t)
	specs := map[string]supervisor.Spec{}
	for i := range n {
		specs[fmt.Sprintf("s%03d", i)] = supervisor.Spec{
			Command: program, Args: servers.Args("good"), ConnectTimeout: toDuration(300),
		}
	}
	limits := restart.DefaultLimits(runtime.GOMAXPROCS(0))
	limits.Hold = time.Hour // a slow machine would let more start while slow ones go on without a slot
	var counted startCounts
	begin := time.Now()
	m := startManager(t, supervisor.Config{Servers: specs, Gate: limits,
		Transport: func(_ string, spec supervisor.Spec) (transports.Transport, error) {
			env, _ := stdio.ChildEnv(os.Environ(), spec.Env, false)
			return countingTransport{stdio.New(stdio.Config{
				Command: spec.Command, Args: spec.Args, Env: env,
			}), &counted}, nil
		}})
	if err := m.Settled(testContext(t, 10*time.Minute)); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	if got := len(m.ConnectedServers()); got != n {
		t.Fatalf("%d of %d are connected", got, n)
	}
	if counted.most.Load() > int64(limits.Processes) || counted.all.Load() != int64(n) {
		t.Errorf("%d starts, at most %d at once; the gate has %d slots", counted.all.Load(), counted.most.Load(),
			limits.Processes)
	}
	if got := len(m.Tools().Server("s000")) * n; m.Tools().Len() != got {
		t.Errorf("%d tools in the catalog, want %d", m.Tools().Len(), got)
	}
	calling := time.Now()
	var wg sync.WaitGroup
	for name := range specs {
		wg.Go(func() {
			res, err := m.CallServerTool(context.Background(), name, "echo", object{"text": name})
			if err != nil || res.Text() != name {
				t.Errorf("%s: %v, %v", name, res, err)
			}
		})
	}
	wg.Wait()
	called := time.Since(calling)
	closing := time.Now()
	closeManager(t, m)
	if pids := childrenOf(t, os.Getpid()); len(pids) != 0 {
		t.Errorf("%d processes are left after Close", len(pids))
	}
	t.Logf("%d processes: connected in %v with at most %d starting at once, one call on each in %v, closed in %v", n,
		took.Round(time.Millisecond), counted.most.Load(), called.Round(time.Millisecond),
		time.Since(closing).Round(time.Millisecond))
}

// Ten servers that never answer are listed first and delay no other: the others are connected while those still hang.
func TestServersThatNeverAnswerDelayNobody(t *testing.T) {
	checkLeaks(t)
	specs := map[string]supervisor.Spec{}
	hole := web.Serve(t, web.BlackHole())
	good := web.Serve(t, web.Good())
	for i := range 10 {
		hangs := func(s *supervisor.Spec) { s.ConnectTimeout, s.StopGrace = toDuration(600), toDuration(0.5) }
		specs[fmt.Sprintf("a-silent-%d", i)] = changeSpec(fixtureSpec("silent"), hangs)
		specs[fmt.Sprintf("a-hole-%d", i)] = changeSpec(supervisor.Spec{Type: messages.HTTP, URL: hole + "/mcp"}, hangs)
	}
	var healthy []string
	for i := range 20 {
		healthy = append(healthy, fmt.Sprintf("z-stdio-%d", i), fmt.Sprintf("z-http-%d", i))
		specs[healthy[2*i]] = fixtureSpec("good")
		specs[healthy[2*i+1]] = supervisor.Spec{Type: messages.HTTP, URL: good + "/mcp"}
	}
	begin := time.Now()
	m := startManager(t, supervisor.Config{Servers: specs})
	awaitConnected(t, m, healthy...)
	t.Logf("%d servers were connected after %v, behind %d that never answer", len(healthy),
		time.Since(begin).Round(time.Millisecond), len(specs)-len(healthy))
	for name := range specs {
		if st := statusOf(t, m, name); strings.HasPrefix(name, "a-") && st.Status != messages.Pending {
			t.Errorf("%s is %s: %s", name, st.Status, st.Error)
		}
	}
	for _, name := range healthy {
		checkText(t, m, name, "echo", object{"text": "hi"}, "hi")
	}
	for i := range 10 { // they end when they are told to, too
		if err := m.Disconnect(testContext(t, bound), fmt.Sprintf("a-silent-%d", i)); err != nil {
			t.Error(err)
		}
	}
}

// serveMinimal is as little of a server as there can be, so that what is measured is ours.
func serveMinimal(ctx context.Context, peer inprocess.Peer) error {
	for {
		msg, err := peer.Read(ctx)
		if err != nil {
			return err
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(msg, &m); err != nil {
			return err
		}
		if m.ID == nil {
			continue
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":"done"}]}`
		}
		if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)); err != nil {
			return err
		}
	}
}

// Five thousand servers live in one process, at a cost that is bounded, and whoever asks for the status of all has it
// at once.
func TestFiveThousandServersLiveInOneProcess(t *testing.T) {
	checkLeaks(t)
	const n = 5000
	const perServer = 40 << 10 * raceFactor
	specs := map[string]supervisor.Spec{}
	for i := range n {
		specs[fmt.Sprintf("s%04d", i)] = supervisor.Spec{Type: messages.SDK, Name: "tiny", ConnectTimeout: toDuration(300)}
	}
	before := memoryInUse()
	begin := time.Now()
	m := startManager(t, supervisor.Config{Servers: specs,
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"tiny": serveMinimal}})
	if err := m.Settled(testContext(t, 5*time.Minute)); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	if got := len(m.ConnectedServers()); got != n {
		t.Fatalf("%d of %d are connected", got, n)
	}
	each := (memoryInUse() - before) / n
	goroutines := runtime.NumGoroutine()
	if each > perServer {
		t.Errorf("a server takes %d bytes, %d may be", each, perServer)
	}
	asking := time.Now()
	all := m.Status()
	elapsed := time.Since(asking)
	if len(all) != n || elapsed > 10*time.Second {
		t.Errorf("the status of %d servers took %v", len(all), elapsed)
	}
	for i := 0; i < n; i += 7 {
		checkText(t, m, fmt.Sprintf("s%04d", i), "one", nil, "done")
	}
	if m.Tools().Len() != 2*n {
		t.Errorf("%d tools", m.Tools().Len())
	}
	closing := time.Now()
	closeManager(t, m)
	t.Logf("%d servers: connected in %v, %d bytes and %.1f goroutines each (the server's own side included), "+
		"status of all in %v, closed in %v", n, took.Round(time.Millisecond), each, float64(goroutines)/n,
		elapsed.Round(time.Microsecond), time.Since(closing).Round(time.Millisecond))
}

// memoryInUse is what the heap and the stacks occupy, without garbage.
func memoryInUse() int64 {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc + s.StackInuse)
}
