package web_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

type exchange func(*http.Request) (*http.Response, error)

func (f exchange) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAMinuteOf401 is H7, in virtual time: a server that answers 401 for a minute, while a caller calls ten times a
// second, gets one request, one refresh and one repetition.
func TestAMinuteOf401(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests, start := 0, time.Now()
		rt := exchange(func(r *http.Request) (*http.Response, error) {
			requests++
			_, _ = io.Copy(io.Discard, r.Body)
			if time.Since(start) < time.Minute {
				return &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: http.NoBody,
					Request: r}, nil
			}
			return &http.Response{StatusCode: http.StatusOK, Request: r,
				Header: http.Header{"Content-Type": {"application/json"}},
				Body:   io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":{}}`))}, nil
		})
		k := conntest.NewNumberedTokens(1)
		tr := web.NewHTTP(web.Config{URL: "https://example.com/mcp", Auth: k,
			Client: &http.Client{Transport: rt}})
		conn, err := tr.Dial(t.Context(), &transporttest.Recorder{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		call := transports.Message{ID: 1, Method: "tools/call", Body: []byte(`{"jsonrpc":"2.0","id":1}`)}
		for time.Since(start) < time.Minute {
			_, err := conn.Send(t.Context(), call)
			if e := conntest.BoundaryError(t, err); e.Class != messages.ClassUnauthorized {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := k.RefusedCalls.Load(); requests != 2 || n != 1 {
			t.Errorf("%d requests and %d refreshes", requests, n)
		}
		// A new token, from wherever, is tried at once.
		k.Number.Add(1)
		if _, err := conn.Send(t.Context(), call); err != nil || requests != 3 {
			t.Errorf("%v after %d requests", err, requests)
		}
	})
}
