// Package edge measures a call through the gateway beside a call through a bare edge: an http.Handler that does nothing but decode the
// call, make it, and write its result, without any duty of a gateway. Both stand before the same manager and the same server, in one
// process and one run, and take turns, so that the ratio of the two means something on a noisy machine.
//
//	go test ./test/bench/edge -bench . -benchtime 20x
package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/test/servers/built"
	fixtures "github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// turn is how long each contender is measured in each round.
const turn = 150 * time.Millisecond

// bareEdge calls tools for whoever asks.
func bareEdge(m *supervisor.Manager) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var message struct {
			ID     json.RawMessage
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if err == nil {
			err = json.Unmarshal(body, &message)
		}
		var res *supervisor.Result
		if err == nil {
			res, err = m.CallServerTool(r.Context(), "one", message.Params.Name, message.Params.Arguments)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, message.ID, res.Raw)
	})
}

// contender is one way to make a call; samples are the times of all calls of all turns, calls and took their sums by turn.
type contender struct {
	name, url, session string
	medians, rates     []float64
}

func BenchmarkEdge(b *testing.B) {
	b.Run("stdio", func(b *testing.B) {
		benchmarkEdge(b, supervisor.Spec{Command: built.Fixture(b), Args: []string{"cheap"}, Era: messages.EraLegacy})
	})
	b.Run("http", func(b *testing.B) {
		server := httptest.NewServer(fixtures.Good())
		defer server.Close()
		benchmarkEdge(b, supervisor.Spec{Type: messages.HTTP, URL: server.URL + "/mcp", Era: messages.EraLegacy})
	})
}

func benchmarkEdge(b *testing.B, spec supervisor.Spec) {
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": spec}}
	gateway.PassQuestions(&cfg)
	m, err := supervisor.Start(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	if err := m.Ready(b.Context(), "one"); err != nil {
		b.Fatal(err)
	}
	g := gateway.New(gateway.Config{Manager: m, Prefix: gateway.PrefixNever})
	defer g.Close()
	edge, through := httptest.NewServer(bareEdge(m)), httptest.NewServer(serve.NewHandler(serve.Options{Service: g}))
	defer edge.Close()
	defer through.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	session := openSession(b, client, through.URL+"/mcp")
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			all := []*contender{{name: "edge", url: edge.URL}, {name: "gateway", url: through.URL + "/mcp", session: session}}
			for _, c := range all {
				measure(b, client, c, callers) // connections are made
				c.medians, c.rates = nil, nil
			}
			b.ResetTimer()
			for n := range b.N {
				for i := range all {
					measure(b, client, all[(i+n)%2], callers)
				}
			}
			for _, c := range all {
				b.ReportMetric(middle(c.medians), c.name+"-p50-µs")
				b.ReportMetric(middle(c.rates), c.name+"-calls/s")
			}
			b.ReportMetric(middle(all[1].medians)/middle(all[0].medians), "p50÷edge")
			b.ReportMetric(middle(all[1].rates)/middle(all[0].rates), "rate÷edge")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// openSession begins a session of the legacy era.
func openSession(b *testing.B, client *http.Client, url string) string {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url,
		strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	return res.Header.Get("Mcp-Session-Id")
}

// measure has callers call for a turn, and keeps the median of their times and the rate of all.
func measure(b *testing.B, client *http.Client, c *contender, callers int) {
	times := make([][]float64, callers)
	begin := time.Now()
	end := begin.Add(turn)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"}}}`,
				i, strings.Repeat("x", 100))
			for time.Now().Before(end) {
				start := time.Now()
				if err := callOnce(b.Context(), client, c, body); err != nil {
					b.Error(err)
					return
				}
				times[i] = append(times[i], float64(time.Since(start).Nanoseconds())/1e3)
			}
		})
	}
	all.Wait()
	took := time.Since(begin).Seconds()
	flat := slices.Concat(times...)
	c.medians, c.rates = append(c.medians, middle(flat)), append(c.rates, float64(len(flat))/took)
}

func callOnce(ctx context.Context, client *http.Client, c *contender, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && !bytes.Contains(answer, []byte("xxx")) {
		err = fmt.Errorf("%s answered %s", c.name, answer)
	}
	return err
}

// middle returns the median.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
