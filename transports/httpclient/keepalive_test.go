package httpclient_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// TestDeadHTTP2: the way to the server passes nothing any more, in either direction, and every part of it that can be
// seen from here is alive. HTTP/2 finds out, by its pings.
func TestDeadHTTP2(t *testing.T) {
	arrived := make(chan struct{}, 10)
	s := conntest.SilenceErrorLog(httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("%s", r.Proto)
		}
		conntest.ReadRequest(r)
		arrived <- struct{}{}
		<-r.Context().Done()
	})))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	var frozen atomic.Bool
	pass := func(to, from net.Conn) {
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			if frozen.Load() {
				continue
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
	addr := conntest.StartTCPServer(t, func(c net.Conn) {
		up, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			return
		}
		defer func() { _ = up.Close() }()
		go pass(c, up)
		pass(up, c)
	})
	cfg := conntest.ConfigWithSecrets(t, "https://"+addr)
	cfg.Client = httpclient.New()
	httpclient.SetDeadAfter(cfg.Client, time.Second)
	tr := cfg.Client.Transport.(*http.Transport)
	tr.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	tr.TLSClientConfig.NextProtos = nil
	tr.TLSClientConfig.ServerName = "example.com"
	t.Cleanup(tr.CloseIdleConnections)
	c := conntest.Dial(t, web.NewHTTP(cfg))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done := make(chan *transports.Error, 1)
	go func() {
		_, d, err := c.TrySend(ctx, "tools/call", `{}`)
		if d != transports.MaybeWritten {
			t.Errorf("%v", d)
		}
		done <- err
	}()
	<-arrived
	frozen.Store(true)
	if err := <-done; err == nil || err.Class != messages.ClassNetwork {
		t.Errorf("%v", err)
	}
}
