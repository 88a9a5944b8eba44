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
