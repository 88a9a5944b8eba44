package httpclient_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// Callers beyond the idle connections that are kept open a new connection for each call, which over TLS costs forty times the
// call. 300 callers of one server come twice: the second time they find the connections of the first.
func TestManyCallersFindTheirConnectionsAgain(t *testing.T) {
	const callers = 300
	var opened atomic.Int64
	var here sync.WaitGroup // every request of a round is at the server before one is answered
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		here.Done()
		here.Wait()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	client := httpclient.New()
	defer client.CloseIdleConnections()
	conn, err := web.NewHTTP(web.Config{URL: s.URL, Client: client}).Dial(t.Context(), &conntest.DroppingSink{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	round := func() {
		here.Add(callers)
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				m := transports.Message{ID: 1, Method: "tools/call", Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)}
				if _, err := conn.Send(context.Background(), m); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	round()
	first := opened.Load()
	round()
	if second := opened.Load() - first; first < callers || second > callers/10 {
		t.Errorf("%d connections were opened by %d callers, and %d more when they came again", first, callers, second)
	}
}
