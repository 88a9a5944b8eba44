package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// offering is a server that offers one resource and the resources of one template, and answers no request of the method quiet.
func offering(uri, template, quiet string) func(context.Context, inprocess.Peer) error {
	return func(ctx context.Context, peer inprocess.Peer) error {
		for {
			msg, err := peer.Read(ctx)
			if err != nil {
				return nil //nolint:nilerr // the peer has left
			}
			var req struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
				Params struct {
					URI string `json:"uri"`
				} `json:"params"`
			}
			if json.Unmarshal(msg, &req) != nil || req.ID == nil || req.Method == quiet || quiet != "" && req.Method == "resources/templates/list" {
				continue
			}
			answer := named(req.Method)
			switch req.Method {
			case "resources/list":
				answer = `"result":{"resources":[{"uri":"` + uri + `","name":"one"}]}`
			case "resources/templates/list":
				answer = `"result":{"resourceTemplates":[{"uriTemplate":"` + template + `","name":"all"}]}`
			case "resources/read":
				answer = `"result":{"contents":[{"uri":"` + req.Params.URI + `","text":"it is here"}]}`
			}
			if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, req.ID, answer)); err != nil {
				return nil //nolint:nilerr // as above
			}
		}
	}
}

// A read that names no server searches the lists of all servers. Beside a connected server that leaves its lists unanswered, a read of a listed
// URI takes five seconds, and a read of a URI that only a template fits takes ten. A URI that no server offers is refused when the list of the
// silent server has timed out. Before, the first two took one call timeout, and the third took two.
func TestASilentServerDelaysAReadByFiveSeconds(t *testing.T) {
	const patience = time.Minute // the call timeout
	for uri, want := range map[string]time.Duration{"good:one": 5 * time.Second, "good:all/3": 10 * time.Second, "good:two": patience + 6*time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m, err := supervisor.Start(t.Context(), supervisor.Config{
				Servers: map[string]supervisor.Spec{"good": {Type: messages.SDK}, "silent": {Type: messages.SDK}},
				InProcess: map[string]func(context.Context, inprocess.Peer) error{
					"good": offering("good:one", "good:all/{n}", ""), "silent": offering("silent:one", "silent:all/{n}", "resources/list"),
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAll(t, m)
			if err := m.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			got, err := m.ReadResource(t.Context(), uri)
			if took := time.Since(began); took > want {
				t.Errorf("%s took %v", uri, took)
			}
			switch {
			case uri == "good:two":
				if !errors.Is(err, messages.ErrUnknownResource) {
					t.Errorf("%s: %v", uri, err)
				}
			case err != nil || got.Server != "good" || got.Text() != "it is here":
				t.Errorf("%s: %v, %v", uri, got, err)
			}
		})
	}
}
