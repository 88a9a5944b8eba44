package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// A level that the program asks for right after the handshake does not reach the server before that of the configuration, which would then be the one
// that counts: the session asked for both in goroutines that knew nothing of each other (found by package drills). A server that does not answer keeps
// the second one for three seconds.
func TestTheLevelOfTheConfigurationIsAskedForFirst(t *testing.T) {
	for _, latency := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var asked []string
			serve := func(ctx context.Context, peer inprocess.Peer) error {
				for {
					body, err := peer.Read(ctx)
					if err != nil {
						return nil //nolint:nilerr // the connection has ended
					}
					var r struct {
						ID     json.RawMessage
						Method string
						Params struct{ Level string }
					}
					if json.Unmarshal(body, &r) != nil || len(r.ID) == 0 {
						continue
					}
					result, wait := `{}`, time.Duration(0)
					switch r.Method {
					case "initialize":
						result = `{"protocolVersion":"2025-11-25","capabilities":{"logging":{}},"serverInfo":{"name":"l","version":"1"}}`
					case "logging/setLevel":
						asked = append(asked, fmt.Sprint(r.Params.Level, " after ", time.Since(began)))
						if wait = latency; len(asked) > 1 {
							wait = 0
						}
					}
					go func() {
						select {
						case <-time.After(wait):
							_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result))
						case <-ctx.Done():
						}
					}()
				}
			}
			s, err := session.Dial(t.Context(), inprocess.New(serve), session.Config{Era: messages.EraLegacy, LogLevel: "error"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Handshake(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.SetLogLevel(t.Context(), "debug", nil); err != nil {
				t.Error(err)
			}
			if want := []string{"error after 0s", "debug after " + min(latency, 3*time.Second).String()}; !slices.Equal(asked, want) {
				t.Errorf("it was asked for %q, want %q", asked, want)
			}
			_ = s.Close(context.Background())
		})
	}
}
