package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// TestKindsOverHTTP: each kind at a server that wants another value than the first one, and then at one that wants none
// and repeats what it got. What was sent is in no error.
func TestKindsOverHTTP(t *testing.T) {
	var wanted atomic.Pointer[string]
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if got := r.Header.Get("X-Key"); got == "" || got != *wanted.Load() {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="%s", scope="%s"`, got, got))
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "no %s, X-Key=%s", got, got)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "value")
	json := filepath.Join(t.TempDir(), "headers")
	set := func(n int) {
		write(t, file, fmt.Sprintf("%s-%d", canary, n))
		write(t, json, fmt.Sprintf(`{"X-Key": "%s-%d"}`, canary, n))
	}
	const path = "PATH=/usr/bin:/bin"
	reads := func(file string) stdio.Config {
		cfg := auth.ShellCommand("cat '" + file + "'")
		cfg.Env = []string{path}
		return cfg
	}
	for name, a := range map[string]transports.Authorizer{
		"file":    auth.APIKey("X-Key", auth.File(file)),
		"command": auth.APIKey("X-Key", auth.Command(reads(file), 0)),
		"helper":  auth.Helper(auth.HelperConfig{Program: reads(json)}),
	} {
		t.Run(name, func(t *testing.T) {
			set(1)
			currentHeaders(t, a) // it has the first value
			set(2)
			second, none := canary+"-2", ""
			wanted.Store(&second)
			conn, err := web.NewHTTP(web.Config{URL: server.URL, Auth: a,
				Client: httpclient.New()}).Dial(t.Context(), silentSink{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(context.Background()) }()
			m := transports.Message{Method: "notifications/x", Body: []byte(`{}`)}
			if _, err := conn.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			wanted.Store(&none)
			before := requests.Load()
			for range 5 {
				_, err := conn.Send(t.Context(), m)
				e := boundaryError(t, err)
				if e.Class != messages.ClassUnauthorized || strings.Contains(fmt.Sprintf("%+v %s", e.Challenge, e.Body), canary) {
					t.Errorf("%v, %+v, %s", e, e.Challenge, e.Body)
				}
			}
			// The value is the same when it is read again, so nothing is repeated, nor sent again.
			if n := requests.Load() - before; n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
