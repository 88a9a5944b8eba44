package e2e_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// cuttableProxy is a TCP proxy that can be cut: bytes go no further then, and no connection is closed. That is what a peer looks
// like whose machine lost its power, or whose NAT forgot the connection.
type cuttableProxy struct {
	net.Listener
	cut atomic.Bool
	wg  sync.WaitGroup
}

// startProxy leads to the address to.
func startProxy(t *testing.T, to string) *cuttableProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cuttableProxy{Listener: l}
	var mu sync.Mutex
	var open []net.Conn
	ended := false
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		ended = true
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		c.wg.Wait()
	})
	// keepOpen keeps a connection until the end of the test, which may have begun since it was accepted.
	keepOpen := func(conn net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			_ = conn.Close()
			return
		}
		open = append(open, conn)
	}
	c.wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			keepOpen(near)
			if c.cut.Load() {
				continue // accepted by the kernel in between, and never answered
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			keepOpen(far)
			c.wg.Go(func() { c.copyBytes(near, far) })
			c.wg.Go(func() { c.copyBytes(far, near) })
		}
	})
	return c
}

func (c *cuttableProxy) copyBytes(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if c.cut.Load() {
			if err != nil {
				return
			}
			continue
		}
		if n > 0 {
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			if err == io.EOF {
				_ = to.Close()
			}
			return
		}
	}
}

// TestAHalfOpenConnectionIsNoticed: a remote server that vanished without closing a connection is noticed without a call,
// within ProbeEvery + ProbeStrikes × ProbeTimeout, and connected again when it can be reached.
func TestAHalfOpenConnectionIsNoticed(t *testing.T) {
	seeds.Shows(t, "001.1.health-half-open")
	checkLeaks(t)
	l := startServer(t, goodWebServer)
	c := startProxy(t, l.address())
	const every, timeout, strikes = 300 * time.Millisecond, time.Second, 3 // a machine at work answers within timeout
	m := startManager(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{"far": {Type: messages.HTTP, URL: "http://" + c.Addr().String() + "/mcp"}},
		Timing:  actors.Timing{ProbeEvery: every, ProbeTimeout: timeout, ProbeStrikes: strikes},
	})
	awaitConnected(t, m, "far")
	time.Sleep(2 * every) // asked and answered
	if st := statusOf(t, m, "far"); st.Status != messages.Connected || st.Restarts != 0 {
		t.Fatalf("%+v", st)
	}
	c.cut.Store(true)
	begin := time.Now()
	eventually(t, "it is noticed", func() bool { return statusOf(t, m, "far").Status != messages.Connected })
	t.Logf("noticed after %v; the bound is %v", time.Since(begin).Round(time.Millisecond), every+strikes*timeout)
	c.cut.Store(false)
	awaitConnected(t, m, "far")
	checkText(t, m, "far", "echo", object{"text": "again"}, "again")
}
