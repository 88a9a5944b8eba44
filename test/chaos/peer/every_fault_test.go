package peer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// faultVariants are parameters with which a fault is tried beside its defaults: each word of those that choose what it does, and
// values with which it comes to its effect within the test's conversation.
var faultVariants = map[string][]map[string]string{
	"crash":              {{"midcall": "true"}, {"signal": "KILL"}, {"down": "5s"}},
	"crash-loop":         {{"after": "100ms"}},
	"exit-after-list":    {{"after": "10ms"}},
	"half-line":          {{"then": "next"}, {"then": "exit"}},
	"noise":              {{"when": "before"}, {"when": "during"}, {"rate": "1000"}},
	"cursor-loop":        {{"what": "endless"}},
	"empty-cursor":       {{"what": "first"}},
	"list-changed":       {{"what": "add"}, {"what": "remove"}, {"what": "describe"}, {"what": "meta"}, {"times": "3"}},
	"list-storm":         {{"change": "true", "rate": "5"}},
	"long-names":         {{"length": "200"}},
	"bad-schema":         wordVariants("bad-schema", "what"),
	"tool-error":         {{"rpc": "true"}},
	"modern-breach":      wordVariants("modern-breach", "what"),
	"throttle":           {{"when": "call"}, {"when": "all", "status": "503"}},
	"forbidden":          {{"when": "handshake"}},
	"missing-binary":     {{"what": "config"}},
	"refuse":             {{"standing": "false"}},
	"sleep":              {{"cut": "false"}},
	"leak-canary":        {{"descriptions": "true", "results": "true", "errors": "1"}, {"handshakes": "true"}},
	"wrong-content-type": {{"when": "call"}},
	"hang-call":          {{"tool": "write"}},
	"rug-pull":           {{"tool": "read"}},
}

// wordVariants are a variant for each word of a parameter.
func wordVariants(fault, param string) (all []map[string]string) {
	k, _ := faults.Lookup(fault)
	for _, p := range k.ParamsAt(faults.Sim) {
		for _, w := range p.Words {
			if p.Name == param {
				all = append(all, map[string]string{param: w})
			}
		}
	}
	return all
}

// TestEveryFault begins each fault of the catalogue on a server in the middle of a conversation, goes on with it and
// begins another one, ends the fault, and demands that it had its effect, and that the server is good afterwards.
func TestEveryFault(t *testing.T) {
	for _, k := range faults.Kinds() {
		for _, kind := range k.Servers {
			for _, era := range k.Eras {
				if kind == messages.SSE && era == messages.EraModern {
					continue // there is no such server
				}
				for _, with := range append([]map[string]string{nil}, faultVariants[k.Name]...) {
					t.Run(fmt.Sprint(k.Name, " ", kind, " ", era, " ", with), func(t *testing.T) {
						if err := k.CheckParams(faults.Sim, with); err != nil || !k.Applies(kind, era) {
							t.Fatal(err)
						}
						tryFault(t, k, usualServer(kind, era), with)
					})
				}
			}
		}
	}
}

func tryFault(t *testing.T, k faults.Kind, server scenario.Server, with map[string]string) {
	d := newDriver(t, peer.Config{Server: server, Seed: 1, Canaries: []string{"canary-1", "canary-2"}})
	if k.Name == "rotate-token" {
		d.header = map[string]string{"Authorization": "Bearer old"}
	}
	if size, ok := map[string]string{"huge-line": "100KiB", "big-result": "10KiB"}[k.Name]; ok {
		with = map[string]string{"size": size}
	}
	f := scenario.PlannedFault{ID: 7, Fault: k.Name, With: with}
	d.open(1)
	d.shakeHands(1)
	d.list(1)
	d.call(1, "write", "before") // under way when it begins
	d.begin(f)
	d.advanceTime(time.Millisecond)
	d.holdConversation(1)
	d.open(2)
	d.advanceTime(time.Second)
	d.shakeHands(2)
	d.holdConversation(2)
	d.closeConn(2)
	d.advanceTime(12 * time.Second)
	if k.Name == "cut-stream" {
		d.advanceTime(time.Minute)
	}
	fired := d.notes(history.Fired)
	d.end(f)
	if k.Instant.Has(faults.Sim) && k.Name == "rotate-token" {
		d.header = map[string]string{"Authorization": "Bearer new"}
	}
	d.advanceTime(time.Second)

	for _, e := range d.notes(history.Fired) {
		if e.Fault != f.ID || e.Name != k.Name || e.Side != history.Harness {
			t.Fatalf("it is noted wrongly: %+v", e)
		}
	}
	reason, misses := whyNoEffect(server.Kind, with)
	if len(fired) == 0 && !misses {
		t.Error("it never had an effect")
	}
	if len(fired) > 0 && misses {
		t.Errorf("it had an effect although %s", reason)
	}
	d.checkHealthy(t, k)
}

// whyNoEffect says why a fault with these parameters has no effect over a transport.
func whyNoEffect(kind messages.TransportKind, with map[string]string) (reason string, none bool) {
	if kind == messages.WebSocket && with["when"] == "call" {
		return "after the upgrade there are no statuses", true
	}
	return "", false
}

// holdConversation lists, calls everything, cancels what is not answered, and lists again.
func (d *driver) holdConversation(conn int) {
	d.list(conn)
	for i, tool := range []string{"read", "put", "write", "write"} {
		id := d.call(conn, tool, fmt.Sprintf("c%d-%d", conn, i))
		d.advanceTime(1500 * time.Millisecond)
		if len(d.answers(conn, id)) > 0 || i == 2 {
			continue
		}
		if d.server.Kind == messages.HTTP && d.server.Era == messages.EraModern {
			d.performActions(d.m.Abandoned(d.now, conn, id))
		} else {
			d.send(conn, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
		}
		d.advanceTime(time.Second)
	}
	// One that is cancelled before it can have been answered.
	id := d.call(conn, "write", "unwanted")
	if d.server.Kind == messages.HTTP && d.server.Era == messages.EraModern {
		d.performActions(d.m.Abandoned(d.now, conn, id))
	} else {
		d.send(conn, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
	}
	d.advanceTime(time.Second)
	d.list(conn)
}

// closeConn closes a connection, first politely.
func (d *driver) closeConn(conn int) {
	if !d.accepted[conn] {
		d.performActions(d.m.Abandoned(d.now, conn, ""))
		return
	}
	d.performActions(d.m.Closed(d.now, conn, false))
	d.advanceTime(2 * time.Second)
	if d.server.Kind == messages.Stdio && !d.ended[conn] {
		d.performActions(d.m.Closed(d.now, conn, true))
		d.advanceTime(2 * time.Second)
	}
	if !d.ended[conn] {
		d.m.Killed(d.now, conn)
		d.ended[conn] = true
	}
}

// checkHealthy holds a healthy conversation on what is left of the first connection, and on a new one.
func (d *driver) checkHealthy(t *testing.T, k faults.Kind) {
	t.Helper()
	before := len(d.notes(history.Fired))
	if !d.ended[1] && d.accepted[1] && !slices.Contains([]string{"lose-session", "stale-session-400", "wrong-version"}, k.Name) {
		d.checkAnswers(t, 1)
	}
	d.open(3)
	d.shakeHands(3)
	d.checkAnswers(t, 3)
	d.begin(scenario.PlannedFault{ID: 8, Fault: "list-changed"})
	d.advanceTime(time.Second)
	fired := d.notes(history.Fired)
	if len(fired) != before+1 {
		t.Errorf("it has an effect after its end: %+v", fired[before:])
	}
	d.performActions(d.m.Closed(d.now, 3, false))
	d.advanceTime(time.Second)
	if !d.ended[3] {
		t.Error("a closed connection has not ended")
	}
}

func (d *driver) checkAnswers(t *testing.T, conn int) {
	t.Helper()
	changes := d.notes(history.Changed)
	want := changes[len(changes)-1]
	tools := d.list(conn)
	if got := history.HashTools(tools); got != want.Hash {
		t.Errorf("on connection %d the list is not the true one, %v: %v", conn, want.Names, tools)
	}
	if l := d.notes(history.Listed); len(l) == 0 || l[len(l)-1].Rev != want.Rev || l[len(l)-1].Conn != conn {
		t.Errorf("the listing on connection %d was not noted: %+v", conn, l)
	}
	ran := len(d.notes(history.Executed))
	id := d.call(conn, "read", "well")
	d.advanceTime(time.Second)
	if a := d.answers(conn, id); len(a) != 1 || a[0].Error != nil {
		t.Errorf("a call on connection %d was answered with %+v", conn, a)
	}
	if e := d.notes(history.Executed)[ran:]; len(e) != 1 || e[0].Call != "well" || e[0].Conn != conn || e[0].Tool != "read" {
		t.Errorf("the call ran so: %+v", e)
	}
}
