package edge

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// listTools has the first session of a crowd list the tools: what nobody has listed, nobody is told of.
func listTools(ctx context.Context, c *crowd) error {
	if w := listOnce(ctx, c.handler, c.ids[0]); !strings.Contains(w.Body.String(), `"echo"`) && !strings.Contains(w.Body.String(), `__echo"`) {
		return fmt.Errorf("the list is %s", w.Body)
	}
	return nil
}

func listOnce(ctx context.Context, h http.Handler, id string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Session-Id", id)
	h.ServeHTTP(w, r)
	return w
}

// measureList returns the median time of a list that was asked for before.
func measureList(ctx context.Context, h http.Handler, rounds int) float64 {
	id := openSilently(ctx, h)
	listOnce(ctx, h, id) // it is rendered, once
	var times []float64
	for range rounds {
		begin := time.Now()
		listOnce(ctx, h, id)
		times = append(times, float64(time.Since(begin).Microseconds())/1000)
	}
	return middle(times)
}
