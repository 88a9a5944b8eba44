package peer_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// driver plays the performer of a machine in a time of its own: what is to be done later is done when run gets there.
type driver struct {
	t       *testing.T
	m       peer.Machine
	now     time.Duration
	agenda  []due
	order   int
	actions []peer.Action // what was done, in order
}

// due is one action at its time.
type due struct {
	at     time.Duration
	order  int
	action peer.Action
}

func drive(t *testing.T, c peer.Config) *driver {
	t.Helper()
	return &driver{t: t, m: peer.New(c)}
}

// plan takes actions.
func (d *driver) plan(actions []peer.Action) {
	for _, a := range actions {
		d.order++
		d.agenda = append(d.agenda, due{d.now + afterOf(a), d.order, a})
	}
	d.settle(d.now)
}

// settle does everything that is due until a time.
func (d *driver) settle(until time.Duration) {
	for {
		slices.SortFunc(d.agenda, func(a, b due) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return a.order - b.order
		})
		if len(d.agenda) == 0 || d.agenda[0].at > until {
			return
		}
		next := d.agenda[0]
		d.agenda = d.agenda[1:]
		d.now = max(d.now, next.at)
		if w, ok := next.action.(peer.Wait); ok {
			for _, a := range d.m.Wake(d.now, w.Token) {
				d.order++
				d.agenda = append(d.agenda, due{d.now + afterOf(a), d.order, a})
			}
			continue
		}
		d.actions = append(d.actions, next.action)
	}
}

// run lets time pass.
func (d *driver) run(for_ time.Duration) {
	until := d.now + for_
	d.settle(until)
	d.now = until
}

func (d *driver) open(conn int)              { d.plan(d.m.Open(d.now, conn)) }
func (d *driver) send(conn int, body string) { d.plan(d.m.Receive(d.now, conn, []byte(body), nil)) }
func (d *driver) begin(f scenario.Planned)   { d.plan(d.m.Begin(d.now, f)) }
func (d *driver) end(f scenario.Planned)     { d.plan(d.m.End(d.now, f)) }

// greet opens a connection and shakes hands.
func (d *driver) greet(conn int) {
	d.t.Helper()
	d.open(conn)
	d.send(conn, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	d.run(time.Second)
	d.send(conn, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// sent are the bodies that were sent since the last time, as texts.
func (d *driver) sent() (bodies []string) {
	for _, a := range d.actions {
		if s, ok := a.(peer.Send); ok {
			bodies = append(bodies, string(s.Body))
		}
	}
	return bodies
}

// notes are the facts of one kind.
func (d *driver) notes(kind history.Kind) (found []history.Event) {
	for _, a := range d.actions {
		if n, ok := a.(peer.Note); ok && n.Event.Kind == kind {
			found = append(found, n.Event)
		}
	}
	return found
}

func afterOf(a peer.Action) time.Duration {
	switch a := a.(type) {
	case peer.Send:
		return a.After
	case peer.Raw:
		return a.After
	case peer.Status:
		return a.After
	case peer.Cut:
		return a.After
	case peer.Accept:
		return a.After
	case peer.Reject:
		return a.After
	case peer.Exit:
		return a.After
	case peer.Stop:
		return a.After
	case peer.Deafen:
		return a.After
	case peer.Spawn:
		return a.After
	case peer.Hide:
		return a.After
	case peer.Wait:
		return a.After
	}
	return 0
}

func TestALegacyServerInItsOrder(t *testing.T) {
	d := drive(t, peer.Config{Server: scenario.Server{
		Name: "s", Tools: 5, Pages: 2, Start: 20 * time.Millisecond, Latency: 2 * time.Millisecond,
	}, Seed: 1})
	d.greet(1)
	d.send(1, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	d.run(time.Second)
	d.send(1, `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"1-3"}}`)
	d.send(1, `{"jsonrpc":"2.0","id":"four","method":"tools/call","params":{"name":"write","arguments":{"call":"c1","size":3}}}`)
	d.run(time.Second)
	all := strings.Join(d.sent(), "\n")
	for _, want := range []string{
		`"protocolVersion":"2025-11-25"`, `"nextCursor":"1-3"`, `"name":"tool-4"`, `"id":"four"`, `\"value\":1,\"pad\":\"xxx\"`,
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
	d := drive(t, peer.Config{Server: scenario.Server{Name: "s"}, Seed: 1})
	d.greet(1)
	d.begin(scenario.Planned{ID: 1, Fault: "list-changed"})
	if c := d.notes(history.Changed); len(c) != 2 || c[1].Rev != 2 || c[0].Hash == c[1].Hash {
		t.Errorf("changed: %+v", c)
	}
	if n := d.notes(history.Notified); len(n) != 1 {
		t.Errorf("notified: %+v", n)
	}
	d.begin(scenario.Planned{ID: 2, Fault: "crash"})
	if e, ok := d.actions[len(d.actions)-1].(peer.Exit); !ok || e.Conn != 1 || e.Code != 1 {
		t.Errorf("the last action is %+v", d.actions[len(d.actions)-1])
	}
	if f := d.notes(history.Fired); len(f) != 2 {
		t.Errorf("fired: %+v", f)
	}
}
