package peer_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestRetriesWithState: of the requests that a server wants to have back with a state after a pause, three in a row that do not come back tell of the client,
// and so does one that comes back without a pause.
func TestRetriesWithState(t *testing.T) {
	// A client brings back the state of each round (b), or at once (i), asks anew without it (n), gives up several that were asked
	// in one moment (g), or one that it has brought back (t), or goes on with something else while a fault acts (f).
	for rounds, why := range map[string]string{"bb": "", "nb": "", "nn": "", "nnbnn": "", "ggg": "", "ttt": "", "gggnn": "has not happened; nor have the two before it", "nnn": "has not happened; nor have the two before it", "nnf": "", "i": "a client pauses for 50ms", "bi": "a client pauses for 50ms", "bnnn": "has not happened; nor have the two before it"} {
		t.Run(rounds, func(t *testing.T) {
			server := usualServer(messages.Stdio, messages.EraModern)
			server.Offers = true
			d := newDriver(t, peer.Config{Server: server, Seed: 1})
			d.open(1)
			d.shakeHands(1)
			uri := `"uri":` + quoteJSON(scenario.OfferURI(server.Name, "one"))
			fault := scenario.PlannedFault{ID: 1, Fault: "late-response", Begin: 0, End: time.Hour}
			for left := rounds; left != ""; {
				id := d.request(1, messages.EraModern, "resources/read", uri)
				d.advanceTime(map[bool]time.Duration{true: 10 * time.Millisecond, false: time.Second}[left[0] == 'i' || left[0] == 'g'])
				state := stateIn(d, id)
				if state == "" {
					continue
				}
				switch left[0] {
				case 'b', 'i':
					d.request(1, messages.EraModern, "resources/read", uri+`,"requestState":`+quoteJSON(state))
				case 't':
					second := d.request(1, messages.EraModern, "resources/read", uri+`,"requestState":`+quoteJSON(state))
					d.send(1, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+second+`}}`)
				case 'f':
					d.begin(fault)
				}
				if left = left[1:]; !strings.HasPrefix(left, "g") {
					d.advanceTime(5 * time.Second)
				}
			}
			violations := d.notes(history.Violation)
			if (why != "") != (len(violations) == 1) || len(violations) == 1 && !strings.Contains(violations[0].Text, why) {
				t.Errorf("%+v", violations)
			}
		})
	}
}

// stateIn is the state in the answer to a request, empty for an answer without one.
func stateIn(d *driver, id string) string {
	var r struct {
		State string `json:"requestState"`
	}
	for _, a := range d.answers(1, id) {
		if err := json.Unmarshal(a.Result, &r); err != nil {
			d.t.Fatal(err)
		}
	}
	return r.State
}
