package edge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/test/servers"
	fixtures "github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

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

// contender is one way to make a call: to the bare edge, to the gateway, or to the server itself.
type contender struct {
	name, url, session string
}

// turnOf is what one contender did in one turn: the median time of a call, and the calls in a second.
type turnOf struct{ median, rate float64 }

// callRatios are what the rounds say: each value is the median of the ratios of turns that stood side by side, because the machine is
// another one a moment later.
type callRatios struct {
	edge, gateway turnOf
	// median and rate are those of the gateway in shares of the bare edge; direct is the median in shares of a direct call, 0 if
	// there is none.
	median, rate, direct float64
}

// measureCalls measures calls of one kind of server with a number of callers.
func measureCalls(ctx context.Context, upstream string, callers, rounds int, turn time.Duration) (r callRatios, err error) {
	spec, direct := supervisor.Spec{Era: messages.EraLegacy}, ""
	if upstream == "http" {
		server := httptest.NewServer(fixtures.Good())
		defer server.Close()
		spec.Type, spec.URL = messages.HTTP, server.URL+"/mcp"
		direct = spec.URL
	} else {
		spec.Command, spec.Args = servers.Command("cheap")
	}
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": spec}}
	gateway.PassQuestions(&cfg)
	m, err := supervisor.Start(ctx, cfg)
	if err != nil {
		return r, err
	}
	defer func() { err = cmp.Or(err, m.Close(context.WithoutCancel(ctx))) }()
	if err := m.Ready(ctx, "one"); err != nil {
		return r, err
	}
	g := gateway.New(gateway.Config{Manager: m, Prefix: gateway.PrefixNever})
	defer g.Close()
	edge, through := httptest.NewServer(bareEdge(m)), httptest.NewServer(serve.NewHandler(serve.Options{Service: g}))
	defer edge.Close()
	defer through.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	all := []contender{{name: "edge", url: edge.URL}, {name: "gateway", url: through.URL + "/mcp"}}
	if direct != "" {
		all = append(all, contender{name: "direct", url: direct})
	}
	for i := range all {
		if all[i].name == "edge" {
			continue
		}
		if all[i].session, err = openSession(ctx, client, all[i].url); err != nil {
			return r, err
		}
	}
	turns := make([][]turnOf, len(all))
	for round := range rounds + 1 {
		for i := range all {
			k := (i + round) % len(all)
			t, err := takeTurn(ctx, client, all[k], callers, turn)
			if err != nil {
				return r, err
			}
			if round > 0 { // in the first one connections are made
				turns[k] = append(turns[k], t)
			}
		}
	}
	return ratiosOf(turns), nil
}

func ratiosOf(turns [][]turnOf) (r callRatios) {
	var medians, rates, directs []float64
	for i := range turns[0] {
		medians = append(medians, turns[1][i].median/turns[0][i].median)
		rates = append(rates, turns[1][i].rate/turns[0][i].rate)
		if len(turns) > 2 {
			directs = append(directs, turns[1][i].median/turns[2][i].median)
		}
	}
	for k, to := range []*turnOf{&r.edge, &r.gateway} {
		var m, rate []float64
		for _, t := range turns[k] {
			m, rate = append(m, t.median), append(rate, t.rate)
		}
		to.median, to.rate = middle(m), middle(rate)
	}
	r.median, r.rate, r.direct = middle(medians), middle(rates), middle(directs)
	return r
}

// openSession begins a session of the legacy era.
func openSession(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := newPost(ctx, url, []byte(initialize))
	if err != nil {
		return "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return "", err
	}
	return res.Header.Get("Mcp-Session-Id"), nil
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`

func newPost(ctx context.Context, url string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	return req, nil
}

// takeTurn has callers call for a turn.
func takeTurn(ctx context.Context, client *http.Client, c contender, callers int, turn time.Duration) (turnOf, error) {
	times := make([][]float64, callers)
	problems := make([]error, callers)
	begin := time.Now()
	end := begin.Add(turn)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"}}}`,
				i, strings.Repeat("x", 100))
			for time.Now().Before(end) && problems[i] == nil {
				start := time.Now()
				problems[i] = callOnce(ctx, client, c, body)
				times[i] = append(times[i], float64(time.Since(start).Nanoseconds())/1e3)
			}
		})
	}
	all.Wait()
	took := time.Since(begin).Seconds()
	flat := slices.Concat(times...)
	for _, err := range problems {
		if err != nil {
			return turnOf{}, err
		}
	}
	return turnOf{middle(flat), float64(len(flat)) / took}, nil
}

func callOnce(ctx context.Context, client *http.Client, c contender, body []byte) error {
	req, err := newPost(ctx, c.url, body)
	if err != nil {
		return err
	}
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

// middle returns the median, 0 of nothing.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
