package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// breaking is a server of the legacy era over HTTP. It breaks the stream of the first answer to each of the methods, and only that.
// With "throttled" among them it answers each ping with 429.
func breaking(w http.ResponseWriter, r *http.Request, calls map[string]*atomic.Int64) {
	var req struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&req) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if req.Method == "ping" && calls["throttled"] != nil {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if n := calls[req.Method]; n != nil && n.Add(1) == 1 {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": soon\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	result := map[string]string{
		"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"b","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"look","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":"ok"}]}`, "resources/read": `{"contents":[]}`, "ping": `{}`,
	}[req.Method]
	if req.ID == nil || result == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)
}

// The connection of an HTTP server lives on when the stream of one answer breaks: what may be asked again is asked again over
// it, and no caller waits for another connection. Where the server refuses the ping that finds this out, it lives as well, and where the
// stream of the first ping breaks like that of the request, another one finds it out.
func TestAReadIsRepeatedOverAConnectionThatLives(t *testing.T) {
	for _, c := range []struct {
		trusted bool
		beside  string
	}{{true, ""}, {false, ""}, {true, "throttled"}, {true, "ping"}} {
		trusted := c.trusted
		calls := map[string]*atomic.Int64{"tools/call": {}, "resources/read": {}}
		if c.beside != "" {
			calls[c.beside] = &atomic.Int64{}
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { breaking(w, r, calls) }))
		defer s.Close()
		m, err := supervisor.Start(t.Context(), supervisor.Config{WithdrawAfter: time.Hour, Servers: map[string]supervisor.Spec{
			"b": {Type: messages.HTTP, URL: s.URL, Era: messages.EraLegacy, Trusted: trusted}}})
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(t, m)
		settled(t, m)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // far below what is waited for another connection here
		defer cancel()
		res, err := m.CallServerTool(ctx, "b", "look", nil)
		if n := calls["tools/call"].Load(); trusted && (err != nil || res.Text() != "ok" || n != 2) || !trusted && (err == nil || n != 1) {
			t.Errorf("trusted %v, %q: %v after %d calls", trusted, c.beside, err, n)
		}
		_, err = m.ReadServerResource(ctx, "b", "x:///1")
		if n := calls["resources/read"].Load(); err != nil || n != 2 {
			t.Errorf("trusted %v: %v after %d reads", trusted, err, n)
		}
		// The ping whose stream breaks may be the one by which the manager judges the connection; it begins another one then.
		if st, _ := m.ServerStatus("b"); st.Restarts != 0 && c.beside != "ping" || st.Status != messages.Connected {
			t.Errorf("%s after %d restarts", st.Status, st.Restarts)
		}
	}
}
