package stdio_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

func init() {
	roles["starved"] = func(string) { playStarved() }
	// unguarded is a manager without a guardian. Its server ignores everything that can be ignored.
	roles["unguarded"] = func(string) {
		r := &transporttest.Recorder{}
		c, err := stdio.New(asRole("deaf")).Dial(context.Background(), r)
		if err != nil {
			os.Exit(97)
		}
		for len(r.Messages()) == 0 {
			time.Sleep(time.Millisecond)
		}
		fmt.Printf("{\"child\":%d}\n", c.Info().PID)
		time.Sleep(5 * time.Minute)
	}
}

// P1 without a guardian: the kernel ends the child itself when its manager is killed.
func TestKernelEndsTheChildOfAKilledManager(t *testing.T) { endsWithItsManager(t, "unguarded") }

// endsWithItsManager kills the manager that plays the role, and waits for the end of the one server it has started.
func endsWithItsManager(t *testing.T, role string) {
	t.Helper()
	manager := startServer(t, asRole(role))
	manager.waitLine(0)
	server := children(manager.Recorder)
	if len(server) != 1 || !running(server[0]) {
		t.Fatalf("the server %v does not run", server)
	}
	if err := syscall.Kill(manager.Info().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitGone(t, childBound, server...)
}

// The kernel takes the end of the thread that has started a child for the end of the parent. Threads come and go.
func TestChildOutlivesTheThreadThatDialled(t *testing.T) {
	var s *child
	dialled := make(chan struct{})
	go func() {
		defer close(dialled)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		s = startServer(t, asRole("script"))
	}()
	<-dialled
	s.expectEcho()
	time.Sleep(100 * time.Millisecond)
	s.expectEcho()
	if d := s.Downs(); len(d) > 0 {
		t.Errorf("the child has ended: %v", d)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// childStates lists the children of this process by state, zombies included.
func childStates(t *testing.T) (list []string) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) > 1 && f[1] == fmt.Sprint(os.Getpid()) {
			list = append(list, e.Name()+" "+f[0])
		}
	}
	return list
}

func status(t *testing.T, field string) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), field+":")
	_, err = fmt.Sscan(rest, &n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// P1, P12, P15: whatever way a connection ends, or does not begin, descriptors, goroutines and children are back where
// they were.
func TestNothingIsLeft(t *testing.T) {
	cycle := func() {
		runaway := asRole("runaway:deaf")
		runaway.Grace = 20 * time.Millisecond
		ends := []*child{
			startServer(t, asRole("script")), startServer(t, asRole("exit:1")), startServer(t, asRole("script")),
			startServer(t, runaway),
		}
		ends[0].expectEcho()
		_ = syscall.Kill(ends[2].Info().PID, syscall.SIGKILL)
		for _, s := range ends {
			s.close()
		}
		for _, command := range []string{"/no/such/command", "/etc/passwd"} {
			cfg := asRole("script")
			cfg.Command = command
			if c, err := stdio.New(cfg).Dial(context.Background(), &transporttest.Recorder{}); err == nil {
				_ = c.Close(context.Background())
				t.Fatalf("%s was started", command)
			}
		}
	}
	cycle() // what is opened once: the poller
	fds, goroutines, kin := descriptors(t), runtime.NumGoroutine(), childStates(t)
	for range 15 {
		cycle()
	}
	deadline := time.Now().Add(childBound)
	for {
		f, g, k := descriptors(t), runtime.NumGoroutine(), childStates(t)
		if f <= fds && g <= goroutines && len(k) <= len(kin) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("descriptors %d, before %d; goroutines %d, before %d; children %v, before %v",
				f, fds, g, goroutines, k, kin)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Waiting for a child costs no thread, and the thread that starts children is one.
func TestChildrenCostNoThreads(t *testing.T) {
	const n = 60
	before := status(t, "Threads")
	servers := make([]*child, n)
	for i := range servers {
		servers[i] = startServer(t, asRole("script"))
	}
	for _, s := range servers {
		s.expectEcho()
	}
	if now := status(t, "Threads"); now > before+n/2 {
		t.Errorf("%d threads for %d children, %d before", now, n, before)
	}
	for _, s := range servers {
		go func() { _ = s.Close(context.Background()) }()
	}
	for _, s := range servers {
		s.expectReleased()
	}
}

// P15: without descriptors a start fails as our own shortage, and the connection that lives goes on. The limit is the
// process's, so this is played in one of its own.
func TestWithoutDescriptors(t *testing.T) {
	s := startServer(t, asRole("starved"))
	if got, want := s.waitLine(0), `{"class":"exhausted","echo":true,"after":true}`; got != want {
		t.Errorf("got %s, want %s; %s", got, want, s.Info().StderrTail)
	}
}

func playStarved() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(96)
		}
	}
	ctx := context.Background()
	r := &transporttest.Recorder{}
	alive, err := stdio.New(asRole("script")).Dial(ctx, r)
	fail(err)
	echo := func(id int64) bool {
		body := fmt.Appendf(nil, `{"id":%d,"method":"echo","params":{}}`, id)
		_, err := alive.Send(ctx, transports.Message{ID: id, Body: body})
		for deadline := time.Now().Add(childBound); r.Answers(id) == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		return err == nil && r.Answers(id) == 1
	}
	var old syscall.Rlimit
	fail(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	list, err := os.ReadDir("/proc/self/fd")
	fail(err)
	class := messages.ClassNone
	// Two, four, six descriptors are enough for one, two, three pipes; each failure is on another way out.
	for spare := range uint64(7) {
		fail(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(len(list)-1) + spare, Max: old.Max}))
		_, err = stdio.New(asRole("script")).Dial(ctx, &transporttest.Recorder{})
		var e *transports.Error
		if !errors.As(err, &e) || e.Class != messages.ClassExhausted {
			fail(fmt.Errorf("with %d descriptors: %w", spare, err))
		}
		class = e.Class
	}
	during := echo(1)
	fail(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old))
	second, err := stdio.New(asRole("exit:0")).Dial(ctx, &transporttest.Recorder{})
	fail(err)
	fail(second.Close(ctx))
	fmt.Printf("{\"class\":%q,\"echo\":%v,\"after\":%v}\n", class, during, echo(2))
	fail(alive.Close(ctx))
}
