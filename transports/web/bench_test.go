package web_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// BenchmarkHTTP is one Send and its answer on loopback, next to what net/http alone takes for the same exchange.
func BenchmarkHTTP(b *testing.B) {
	answer := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`
	for _, c := range []struct {
		name, kind, body string
	}{
		{"JSON", "application/json", answer},
		{"events", "text/event-stream", "event: message\ndata: " + answer + "\n\n"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", c.kind)
			_, _ = io.WriteString(w, c.body)
		}))
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
		conn, err := web.NewHTTP(web.Config{URL: s.URL, Client: client}).Dial(b.Context(), &conntest.DroppingSink{})
		if err != nil {
			b.Fatal(err)
		}
		request := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`)
		m := transports.Message{ID: 1, Method: "tools/call", Body: request}
		send := func(ctx context.Context) error {
			_, err := conn.Send(ctx, m)
			return err
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := send(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/64 callers", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32) // times GOMAXPROCS
			var failed atomic.Pointer[error]
			b.RunParallel(func(pb *testing.PB) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				for pb.Next() {
					if err := send(ctx); err != nil {
						failed.Store(&err)
						return
					}
				}
			})
			if err := failed.Load(); err != nil {
				b.Fatal(*err)
			}
		})
		b.Run(c.name+"/net-http alone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.Post(s.URL, "application/json", bytes.NewReader(request))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadAll(resp.Body); err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
			}
		})
		_ = conn.Close(context.Background())
		client.CloseIdleConnections()
		s.Close()
	}
}

// BenchmarkHTTPIdle shows what one connection costs that does nothing and has no stream open.
func BenchmarkHTTPIdle(b *testing.B) {
	const n = 5000
	for b.Loop() {
		heap, _ := conntest.MeasureMemory()
		conns := make([]transports.Conn, n)
		for i := range conns {
			tr := web.NewHTTP(web.Config{
				URL: fmt.Sprintf("http://host-%d.invalid/mcp", i), Headers: map[string]string{"Authorization": "Bearer x"}})
			conns[i], _ = tr.Dial(b.Context(), &conntest.DroppingSink{})
		}
		more, _ := conntest.MeasureMemory()
		b.ReportMetric(float64(more-heap)/n, "heapB/conn")
		for _, c := range conns {
			_ = c.Close(context.Background())
		}
	}
}
