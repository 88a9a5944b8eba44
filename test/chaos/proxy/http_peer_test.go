package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/proxy"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// startHTTPProxy stands a proxy in front of a handler, with rules.
func startHTTPProxy(t testing.TB, handler http.Handler, rules ...string) (url string, control *fault.Control, log *safeBuffer) {
	t.Helper()
	server := httptest.NewServer(handler)
	control, err := fault.New(1)
	if err != nil {
		t.Fatal(err)
	}
	control = control.At(fault.HTTP)
	for _, text := range rules {
		addRule(t, control, text)
	}
	log = &safeBuffer{}
	h, err := proxy.NewHTTP(server.URL+"/mcp", "127.0.0.1:0", proxy.Shared{Control: control, Track: true, Log: proxy.NewLog(log, true)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	return h.URL(), control, log
}

func addRule(t testing.TB, control *fault.Control, text string) {
	t.Helper()
	r, err := fault.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := control.Add(r); err != nil {
		t.Fatal(err)
	}
}

// serveStreamable is a small server of streamable HTTP: POST answers with JSON, or with events if the request is asked for so; GET
// is a stream.
func serveStreamable(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"hello\"}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &m) != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"of":%q}}`, m.ID, m.Params.Name)
	if m.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("session-%d", time.Now().UnixNano()))
	}
	if m.Params.Name == "stream" {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n\ndata: %s\n\n", result)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, result)
}

// postRequest asks and gives what came, and how it ended.
func postRequest(t testing.TB, target, body string, header ...string) (*http.Response, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}
