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

// usualServer is a server with the times of a plan.
func usualServer(kind messages.TransportKind, era messages.Era) scenario.Server {
	return scenario.Server{
		Name: "s", Kind: kind, Era: era, Tools: 5, Pages: 2, Start: 20 * time.Millisecond, Latency: 2 * time.Millisecond,
	}
}

func TestALegacyServerInItsOrder(t *testing.T) {
	d := newDriver(t, peer.Config{Server: usualServer(messages.Stdio, messages.EraLegacy), Seed: 1})
	d.open(1)
	d.shakeHands(1)
	if tools := d.list(1); len(tools) != 5 || tools[4].Name != "tool-4" {
		t.Errorf("listed %v", tools)
	}
	d.send(1, `{"jsonrpc":"2.0","id":"four","method":"tools/call","params":{"name":"write","arguments":{"call":"c1","size":3}}}`)
	d.advanceTime(time.Second)
	all := strings.Join(d.sent(), "\n")
	for _, want := range []string{
		`"protocolVersion":"2025-11-25"`, `"nextCursor":"1-3-`, `"id":"four"`, `\"value\":1,\"pad\":\"xxx\"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
	if n := len(d.notes(history.Executed)); n != 1 {
		t.Errorf("%d executions of one call", n)
	}
	if l := d.notes(history.Listed); len(l) != 1 || l[0].Rev != 1 {
		t.Errorf("listed: %+v", l)
	}
	for _, body := range d.sent() {
		if !json.Valid([]byte(body)) {
			t.Errorf("no JSON: %s", body)
		}
	}
}

func TestAChangeIsToldAndACrashEndsTheConnection(t *testing.T) {
	for _, era := range []messages.Era{messages.EraLegacy, messages.EraModern} {
		d := newDriver(t, peer.Config{Server: usualServer(messages.Stdio, era), Seed: 1})
		d.open(1)
		d.shakeHands(1)
		received := len(d.notes(history.Notified))
		d.begin(scenario.PlannedFault{ID: 1, Fault: "list-changed"})
		if c := d.notes(history.Changed); len(c) != 2 || c[1].Rev != 2 || c[0].Hash == c[1].Hash {
			t.Errorf("changed: %+v", c)
		}
		if n := d.notes(history.Notified)[received:]; len(n) != 1 || n[0].Method != "notifications/tools/list_changed" {
			t.Errorf("notified: %+v", n)
		}
		d.begin(scenario.PlannedFault{ID: 2, Fault: "crash"})
		if e, ok := d.done[len(d.done)-1].action.(peer.Exit); !ok || e.Conn != 1 || e.Code != 1 {
			t.Errorf("the last action is %+v", d.done[len(d.done)-1])
		}
		if f := d.notes(history.Fired); len(f) != 2 {
			t.Errorf("fired: %+v", f)
		}
	}
}

func TestSameSeedSameActions(t *testing.T) {
	play := func(seed uint64) []due {
		d := newDriver(t, peer.Config{Server: usualServer(messages.HTTP, messages.EraLegacy), Seed: seed})
		d.begin(scenario.PlannedFault{ID: 1, Fault: "latency"})
		d.open(1)
		d.shakeHands(1)
		d.list(1)
		return d.done
	}
	same := func(a, b []due) bool {
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			x, xErr := json.Marshal(a[i].action)
			y, yErr := json.Marshal(b[i].action)
			if xErr != nil || yErr != nil || a[i].at != b[i].at || string(x) != string(y) {
				return false
			}
		}
		return true
	}
	if !same(play(7), play(7)) {
		t.Error("two machines of one seed did different things")
	}
	if same(play(7), play(8)) {
		t.Error("two seeds did the same at the same times")
	}
}

// A server that wants arguments in headers refuses a call without them, and says so in the record if its client knows the list
// for long and nothing broke since.
func TestACallWithoutTheHeadersOfItsArguments(t *testing.T) {
	server := usualServer(messages.HTTP, messages.EraModern)
	server.Headers = true
	for _, test := range []struct {
		name     string
		header   map[string]string
		waited   time.Duration
		changes  bool
		executed int
		why      string
	}{
		{name: "with them", header: map[string]string{"Mcp-Param-Call-1": "c1", "Mcp-Param-Size-1": "3"}, waited: time.Minute, executed: 1},
		{name: "without them", waited: time.Minute, why: "Mcp-Param-Call-1 is missing"},
		{name: "with another value", header: map[string]string{"Mcp-Param-Call-1": "c2", "Mcp-Param-Size-1": "3"}, waited: time.Minute, why: "its argument"},
		{name: "one too many", header: map[string]string{"Mcp-Param-Call-1": "c1", "Mcp-Param-Size-1": "3", "Mcp-Param-Note-1": "x"}, waited: time.Minute,
			why: "its argument has none"},
		{name: "without them, soon"},
		{name: "by an older list", header: map[string]string{"Mcp-Param-Call-1": "c1", "Mcp-Param-Size-1": "3"}, waited: time.Minute, changes: true},
	} {
		d := newDriver(t, peer.Config{Server: server, Seed: 1})
		d.open(1)
		d.shakeHands(1)
		if tools := d.list(1); len(tools) != 6 || tools[5].Name != "unusable" {
			t.Fatalf("%s: listed %v", test.name, tools)
		}
		d.advanceTime(test.waited)
		if test.changes {
			d.begin(scenario.PlannedFault{ID: 1, Fault: "list-changed"})
		}
		d.header = test.header
		d.request(1, messages.EraModern, "tools/call", `"name":"write","arguments":{"call":"c1","size":3}`)
		d.advanceTime(time.Second)
		if n := len(d.notes(history.Executed)); n != test.executed {
			t.Errorf("%s: %d executions", test.name, n)
		}
		violations := d.notes(history.Violation)
		if (test.why != "") != (len(violations) == 1) || len(violations) == 1 && !strings.Contains(violations[0].Text, test.why) {
			t.Errorf("%s: %+v", test.name, violations)
		}
	}
}

// TestWhatServersMustRefuse: a legacy server over HTTP answers nobody who leaves out his session, and a modern one names what is
// missing before it looks at headers, and knows no initialize that speaks its own version.
func TestWhatServersMustRefuse(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, c := range []struct {
		era          messages.Era
		method, with string
		header       map[string]string
		status       int
		want         string
	}{
		{messages.EraLegacy, "tools/list", "", map[string]string{}, 400, "Bad Request: no session"},
		{messages.EraModern, "tools/list", "", map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}, 400, "-32602"},
		{messages.EraModern, "initialize", meta, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "initialize"}, 404, "-32601"},
		{messages.EraModern, "initialize", `"protocolVersion":"2025-11-25"`, map[string]string{}, 400, `"supported":["2026-07-28"]`},
	} {
		d := newDriver(t, peer.Config{Server: usualServer(messages.HTTP, c.era), Seed: 1})
		d.open(1)
		d.shakeHands(1)
		d.performActions(d.m.Receive(d.now, 1, []byte(`{"jsonrpc":"2.0","id":99,"method":"`+c.method+`","params":{`+c.with+`}}`), c.header))
		d.advanceTime(time.Second)
		var got peer.Status
		for _, e := range d.done {
			if s, ok := e.action.(peer.Status); ok && s.Reply == "99" {
				got = s
			}
		}
		if got.Code != c.status || !strings.Contains(string(got.Body), c.want) {
			t.Errorf("%s %s: %d %s", c.era, c.method, got.Code, got.Body)
		}
	}
}

// Seed 9000395: a message whose length is a multiple of the chunks arrives with the last of them, and not one pause later.
func TestDripTime(t *testing.T) {
	for _, c := range []struct {
		size, chunk int
		every, want time.Duration
	}{{100, 0, time.Second, 0}, {100, 100, time.Second, 0}, {101, 100, time.Second, time.Second}, {64, 8, time.Second, 7 * time.Second}} {
		if got := (peer.Send{Body: make([]byte, c.size), Chunk: c.chunk, Every: c.every}).DripTime(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
