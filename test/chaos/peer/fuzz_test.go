package peer_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// kinds are those of servers that the fuzz targets choose from.
var kinds = []struct {
	kind messages.TransportKind
	era  messages.Era
}{
	{messages.Stdio, messages.EraLegacy}, {messages.Stdio, messages.EraModern}, {messages.HTTP, messages.EraLegacy},
	{messages.HTTP, messages.EraModern}, {messages.WebSocket, messages.EraLegacy}, {messages.SSE, messages.EraLegacy},
}

// FuzzReceive sends a healthy server three bodies before, in and after the handshake. Whatever they are, it does not panic,
// writes only JSON, and answers each request once: no less, and no more.
func FuzzReceive(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`,
		`[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"tools/list"}]`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{"cursor":"1-2"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"write","arguments":{"call":"c","size":3}}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"write","_meta":{"progressToken":1,` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":6,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"id":{},"method":"ping"}`, `null`, `[]`, `[[1]]`, `{`, ``, "\xff",
	} {
		f.Add(uint8(0), []byte(body), []byte(body), []byte(body))
		f.Add(uint8(3), []byte(body), []byte(body), []byte(body))
	}
	f.Fuzz(func(t *testing.T, which uint8, before, within, after []byte) {
		k := kinds[int(which)%len(kinds)]
		d := newDriver(t, peer.Config{Server: usualServer(k.kind, k.era), Seed: uint64(which)})
		d.open(1)
		expected := map[string]int{}
		count := func(body []byte, batches bool) {
			for _, id := range requestsIn(body, batches) {
				expected[id]++
			}
			d.performActions(d.m.Receive(d.now, 1, body, nil))
			d.advanceTime(time.Minute)
		}
		batches := false
		count(before, false)
		for _, e := range d.sent() { // a fuzzed initialize may have chosen the version that has batches
			batches = batches || bytes.Contains([]byte(e), []byte(`"protocolVersion":"2025-03-26"`))
		}
		hello := []byte(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
		count(hello, batches)
		count(within, batches)
		d.performActions(d.m.Receive(d.now, 1, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), nil))
		count(after, batches)
		for id, n := range expected {
			if got := d.answersOf(id); got != n && !(d.subscribed[id] && got < n) {
				t.Errorf("%d requests with the id %s were answered %d times", n, id, got)
			}
		}
	})
}

// requestsIn are the ids of the requests in a body.
func requestsIn(body []byte, batches bool) (ids []string) {
	var all []json.RawMessage
	if body = bytes.TrimSpace(body); !batches || json.Unmarshal(body, &all) != nil {
		all = []json.RawMessage{body}
	}
	for _, one := range all {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if !json.Valid(one) || json.Unmarshal(one, &q) != nil || q.Method == "" || len(q.ID) == 0 {
			continue
		}
		if c := q.ID[0]; c == '"' || c == '-' || c >= '0' && c <= '9' {
			ids = append(ids, string(q.ID))
		}
	}
	return ids
}

// answersOf counts the answers to an id, however they were given, and checks that everything that was sent is JSON.
func (d *driver) answersOf(id string) (count int) {
	for _, e := range d.done {
		var body []byte
		switch a := e.action.(type) {
		case peer.Send:
			if a.More {
				d.subscribed[a.Reply] = true
				continue
			}
			body = a.Body
		case peer.Status:
			body = a.Body
		default:
			continue
		}
		var r reply
		if err := json.Unmarshal(body, &r); err != nil {
			d.t.Errorf("no JSON: %s", body)
		}
		if string(r.ID) == id && (r.Result != nil || r.Error != nil) {
			count++
		}
	}
	return count
}

// FuzzFaults begins and ends faults of all sorts while a client talks, in an order that no test was written for. Nothing
// panics, and when all have ended a new connection is good.
func FuzzFaults(f *testing.F) {
	f.Add(uint8(0), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
	f.Add(uint8(2), []byte{200, 44, 133, 44, 9, 200, 3, 77, 12, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100})
	f.Add(uint8(4), []byte("partition, sleep and stop, one in the other"))
	f.Fuzz(func(t *testing.T, which uint8, steps []byte) {
		k := kinds[int(which)%len(kinds)]
		var able []faults.Kind
		for _, fault := range faults.Kinds() {
			if fault.Applies(k.kind, k.era) && fault.Name != "rotate-token" && fault.Name != "huge-line" && fault.Name != "big-result" {
				able = append(able, fault)
			}
		}
		d := newDriver(t, peer.Config{Server: usualServer(k.kind, k.era), Seed: uint64(which), Canaries: []string{"canary"}})
		last := map[string]scenario.PlannedFault{}
		conn := 1
		d.open(conn)
		for i, step := range steps[:min(len(steps), 40)] {
			switch fault := able[int(step)%len(able)]; {
			case step%7 == 0:
				conn++
				d.open(conn)
				d.shakeHands(conn)
			case step%11 == 0:
				d.closeConn(conn)
			case step%5 == 0:
				d.list(conn)
				d.call(conn, "write", "c")
				d.advanceTime(100 * time.Millisecond)
			case last[fault.Name].ID != 0:
				d.end(last[fault.Name])
				delete(last, fault.Name)
			default:
				p := scenario.PlannedFault{ID: i + 1, Fault: fault.Name}
				if fault.Name == "list-storm" {
					p.With = map[string]string{"rate": "1", "change": "true"} // the test's time is long
				}
				if !fault.Instant.Has(faults.Sim) {
					last[fault.Name] = p
				}
				d.begin(p)
				d.advanceTime(50 * time.Millisecond)
			}
		}
		for _, k := range faults.Kinds() {
			if p, on := last[k.Name]; on {
				d.end(p)
			}
		}
		d.advanceTime(time.Minute)
		d.open(conn + 1)
		d.shakeHands(conn + 1)
		d.checkAnswers(t, conn+1)
	})
}
