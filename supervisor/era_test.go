package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// TestAWrongMemoryOfTheEraIsGivenUp guards a defect: a server of the modern era that answered nothing in its first connect
// timeout was taken for one of the legacy era, was asked nothing but initialize from then on, and ended each time on that.
func TestAWrongMemoryOfTheEraIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		m, err := supervisor.Start(t.Context(), supervisor.Config{
			Servers: map[string]supervisor.Spec{"p": {Type: messages.SDK, ConnectTimeout: messages.Duration(5 * time.Second)}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{
				"p": func(ctx context.Context, peer inprocess.Peer) error {
					if dials.Add(1) == 1 { // it is slow to start
						<-ctx.Done()
						return ctx.Err()
					}
					for {
						body, err := peer.Read(ctx)
						if err != nil {
							return err
						}
						var r struct {
							ID     json.RawMessage
							Method string
						}
						_ = json.Unmarshal(body, &r)
						if r.Method != "server/discover" {
							return errors.New("a version of the protocol that is not spoken here")
						}
						if err := peer.Write(ctx, []byte(`{"jsonrpc":"2.0","id":`+string(r.ID)+
							`,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`)); err != nil {
							return err
						}
					}
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeAll(t, m) })
		time.Sleep(2 * time.Minute)
		st, err := m.ServerStatus("p")
		if err != nil || phase(t, m, "p") != messages.Connected || st.Era != messages.EraModern {
			t.Errorf("after %d dials: %v, %+v", dials.Load(), err, st)
		}
	})
}

// TestAnAttemptThatTimedOutSaysNothingOfTheEra guards a defect: a server that speaks both eras, and whose first start took longer
// than its connect timeout, came out as one of the legacy era, as it would not have on an idle machine.
func TestAnAttemptThatTimedOutSaysNothingOfTheEra(t *testing.T) {
	for slow := range 3 {
		synctest.Test(t, func(t *testing.T) {
			var dials atomic.Int32
			m, err := supervisor.Start(t.Context(), supervisor.Config{
				Servers: map[string]supervisor.Spec{"p": {Type: messages.SDK, ConnectTimeout: messages.Duration(5 * time.Second)}},
				InProcess: map[string]func(context.Context, inprocess.Peer) error{
					"p": func(ctx context.Context, peer inprocess.Peer) error {
						if int(dials.Add(1)) <= slow {
							<-ctx.Done()
							return ctx.Err()
						}
						for {
							body, err := peer.Read(ctx)
							if err != nil {
								return err
							}
							var r struct {
								ID     json.RawMessage
								Method string
							}
							_ = json.Unmarshal(body, &r)
							result := `{}`
							switch r.Method {
							case "server/discover":
								result = `{"supportedVersions":["2026-07-28"],"capabilities":{}}`
							case "initialize":
								result = `{"protocolVersion":"2025-11-25","capabilities":{}}`
							}
							if r.ID == nil {
								continue
							}
							if err := peer.Write(ctx, []byte(`{"jsonrpc":"2.0","id":`+string(r.ID)+`,"result":`+result+`}`)); err != nil {
								return err
							}
						}
					},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeAll(t, m) })
			time.Sleep(2 * time.Minute)
			st, err := m.ServerStatus("p")
			if err != nil || phase(t, m, "p") != messages.Connected || st.Era != messages.EraModern {
				t.Errorf("%d slow starts: %v, %+v", slow, err, st)
			}
		})
	}
}

// A server that takes the place of another is asked as a new one is: the manager forgets the era that it has learned of the other.
func TestAServerInThePlaceOfAnotherIsAskedAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := map[string]string{}
		serve := func(name string, modern bool) func(context.Context, inprocess.Peer) error {
			return func(ctx context.Context, peer inprocess.Peer) error {
				delete(first, name)
				for {
					body, err := peer.Read(ctx)
					if err != nil {
						return nil //nolint:nilerr // the connection has ended
					}
					var r struct {
						ID     json.RawMessage
						Method string
					}
					_ = json.Unmarshal(body, &r)
					if first[name] == "" {
						first[name] = r.Method
					}
					answer := `"error":{"code":-32601,"message":"no"}`
					switch {
					case r.ID == nil:
						continue
					case r.Method == "server/discover" && modern:
						answer = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`
					case r.Method == "initialize" && !modern:
						answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
					}
					if err := peer.Write(ctx, []byte(`{"jsonrpc":"2.0","id":`+string(r.ID)+`,`+answer+`}`)); err != nil {
						return err
					}
				}
			}
		}
		m, err := supervisor.Start(t.Context(), supervisor.Config{InProcess: map[string]func(context.Context, inprocess.Peer) error{
			"old": serve("old", false), "new": serve("new", true), "other": serve("other", false)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeAll(t, m) })
		for _, step := range []struct {
			name string
			era  messages.Era
		}{{"old", messages.EraLegacy}, {"new", messages.EraModern}, {"other", messages.EraLegacy}, {"new", messages.EraModern}} {
			if err := m.Connect(t.Context(), "a", supervisor.Spec{Type: messages.SDK, Name: step.name}); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			st, err := m.ServerStatus("a")
			if err != nil || st.Era != step.era || first[step.name] != "server/discover" {
				t.Errorf("%s is asked %s first, and has the era %q: %v", step.name, first[step.name], st.Era, err)
			}
		}
	})
}
