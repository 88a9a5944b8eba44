package httpclient_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// answerOnce reads one request and answers it.
func answerOnce(c net.Conn) bool {
	if !conntest.ReadHTTPRequest(c) {
		return false
	}
	body := conntest.Result(conntest.Request{ID: 1}, `{}`)
	_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "+
		strconv.Itoa(len(body))+"\r\n\r\n"+body)
	return err == nil
}

// dropPackets lets the kernel drop everything that comes for this end of a connection, acknowledgements included: to the
// other end, this one has vanished.
func dropPackets(t *testing.T, c net.Conn) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	drop := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
	err = raw.Control(func(fd uintptr) {
		program := unix.SockFprog{Len: 1, Filter: &drop}
		err := unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
		if err != nil {
			t.Errorf("SO_ATTACH_FILTER: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDeadConnection: the server vanishes without a word, before the message reaches it or while it works. The kernel's
// own patience, a quarter of an hour for bytes that no peer acknowledges, does not count.
func TestDeadConnection(t *testing.T) {
	for _, working := range []bool{false, true} {
		t.Run(map[bool]string{false: "before the message", true: "at work"}[working], func(t *testing.T) {
			t.Parallel()
			vanished := make(chan struct{})
			addr := conntest.StartTCPServer(t, func(c net.Conn) {
				if !answerOnce(c) {
					return
				}
				if working {
					conntest.ReadHTTPRequest(c)
				}
				dropPackets(t, c)
				close(vanished)
				conntest.AwaitClose(c)
			})
			cfg := conntest.ConfigWithSecrets(t, "http://"+addr)
			cfg.Client = httpclient.New()
			httpclient.SetDeadAfter(cfg.Client, 4*time.Second)
			t.Cleanup(cfg.Client.CloseIdleConnections)
			c := conntest.Dial(t, web.NewHTTP(cfg))
			c.Call("first", `{}`)
			if !working {
				<-vanished
			}
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			begun := time.Now()
			_, d, err := c.TrySend(ctx, "second", `{}`)
			if d != transports.MaybeWritten || err == nil || err.Class != messages.ClassNetwork {
				t.Errorf("after %v: %v, %v", time.Since(begun), d, err)
			}
			if took := time.Since(begun); took < time.Second {
				t.Errorf("a live connection was given up after %v", took)
			}
			t.Logf("noticed after %v", time.Since(begun))
		})
	}
}
