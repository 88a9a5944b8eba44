package peer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// driver plays the performer of a machine, and its client, in a time of its own: what is to be done later is done when run
// gets there.
type driver struct {
	t      *testing.T
	server scenario.Server
	m      peer.Machine
	now    time.Duration
	agenda []due
	order  int
	// done is everything that was done, with its time.
	done   []due
	header map[string]string
	ids    int
	// accepted and ended are by connection.
	accepted, ended map[int]bool
	sessions        map[int]string
	// subscribed are the requests that something else than an answer was said to.
	subscribed map[string]bool
}

// due is one action at its time.
type due struct {
	at     time.Duration
	order  int
	action peer.Action
}

func newDriver(t *testing.T, c peer.Config) *driver {
	t.Helper()
	if c.Server.Kind == "" {
		c.Server.Kind = messages.Stdio
	}
	if c.Server.Era == "" {
		c.Server.Era = messages.EraLegacy
	}
	return &driver{
		t: t, server: c.Server, m: peer.New(c), accepted: make(map[int]bool), ended: make(map[int]bool), sessions: make(map[int]string),
		subscribed: make(map[string]bool),
	}
}

// performActions takes actions, and does those that are due.
func (d *driver) performActions(actions []peer.Action) {
	d.enqueue(actions)
	d.runUntil(d.now)
}

func (d *driver) enqueue(actions []peer.Action) {
	for _, a := range actions {
		d.order++
		d.agenda = append(d.agenda, due{d.now + peer.After(a), d.order, a})
	}
}

// runUntil does everything that is due until a time.
func (d *driver) runUntil(until time.Duration) {
	for len(d.agenda) > 0 {
		slices.SortFunc(d.agenda, func(a, b due) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return a.order - b.order
		})
		next := d.agenda[0]
		if next.at > until {
			return
		}
		d.agenda = d.agenda[1:]
		d.now = max(d.now, next.at)
		switch a := next.action.(type) {
		case peer.Wait:
			d.enqueue(d.m.Wake(d.now, a.Token))
			continue
		case peer.Accept:
			d.accepted[a.Conn], d.sessions[a.Conn] = true, a.Session
		case peer.Exit:
			d.ended[a.Conn] = !a.HalfOpen
		}
		d.done = append(d.done, next)
	}
}

// advanceTime lets time pass.
func (d *driver) advanceTime(span time.Duration) {
	until := d.now + span
	d.runUntil(until)
	d.now = until
}

func (d *driver) open(conn int) { d.performActions(d.m.Open(d.now, conn)) }

func (d *driver) send(conn int, body string) {
	header := d.header
	if d.server.Kind == messages.HTTP {
		header = repeatedHeaders(body)
		for k, v := range d.header {
			header[k] = v
		}
		if s := d.sessions[conn]; s != "" && !strings.Contains(body, `"initialize"`) {
			header["Mcp-Session-Id"] = s
		}
	}
	d.performActions(d.m.Receive(d.now, conn, []byte(body), header))
}

// repeatedHeaders are the headers that repeat what a message says.
func repeatedHeaders(body string) map[string]string {
	var q struct {
		Method string
		Params struct {
			Name string
			Meta struct {
				Version string `json:"io.modelcontextprotocol/protocolVersion"`
			} `json:"_meta"`
		}
	}
	header := map[string]string{}
	if json.Unmarshal([]byte(body), &q) == nil && q.Params.Meta.Version != "" {
		header["Mcp-Protocol-Version"], header["Mcp-Method"] = q.Params.Meta.Version, q.Method
		if q.Params.Name != "" {
			header["Mcp-Name"] = q.Params.Name
		}
	}
	return header
}

func (d *driver) begin(f scenario.PlannedFault) { d.performActions(d.m.Begin(d.now, f)) }
func (d *driver) end(f scenario.PlannedFault)   { d.performActions(d.m.End(d.now, f)) }

// request sends a request in the era of the server, or in the one that is asked for, and returns its id.
func (d *driver) request(conn int, era messages.Era, method, params string) string {
	d.ids++
	id := fmt.Sprint(d.ids)
	if era == messages.EraModern {
		meta := `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
		if i := strings.Index(params, `"_meta":{`); i >= 0 {
			params = params[:i] + `"_meta":{` + meta + "," + params[i+len(`"_meta":{`):]
		} else {
			params = strings.TrimSuffix(`"_meta":{`+meta+`},`+params, ",")
		}
	}
	d.send(conn, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{`+params+`}}`)
	return id
}

// shakeHands shakes hands on a connection, and listens if that is a matter of its own.
func (d *driver) shakeHands(conn int) {
	d.t.Helper()
	if d.server.Era == messages.EraModern {
		d.request(conn, messages.EraModern, "server/discover", "")
		d.advanceTime(30 * time.Second)
		d.request(conn, messages.EraModern, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
		d.advanceTime(time.Second)
		return
	}
	if d.server.Kind != messages.SSE {
		d.request(conn, messages.EraModern, "server/discover", "")
		d.advanceTime(time.Second)
	}
	d.request(conn, messages.EraLegacy, "initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`)
	d.advanceTime(30 * time.Second)
	d.send(conn, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// list asks for all pages, and gives what was in them.
func (d *driver) list(conn int) (tools []messages.Tool) {
	params := ""
	for range 8 {
		id := d.request(conn, d.server.Era, "tools/list", params)
		d.advanceTime(5 * time.Second)
		var r struct {
			Tools []json.RawMessage
			Next  *string `json:"nextCursor"`
		}
		answers := d.answers(conn, id)
		if len(answers) == 0 || json.Unmarshal(answers[0].Result, &r) != nil {
			return tools
		}
		for _, raw := range r.Tools {
			var t struct{ Name string }
			if json.Unmarshal(raw, &t) == nil {
				tools = append(tools, messages.Tool{Name: t.Name, Raw: raw})
			}
		}
		if r.Next == nil {
			return tools
		}
		params = `"cursor":` + quoteJSON(*r.Next)
	}
	return tools
}

// call calls a tool and asks for progress and log messages.
func (d *driver) call(conn int, tool, call string) (id string) {
	return d.request(conn, d.server.Era, "tools/call",
		fmt.Sprintf(`"name":%q,"arguments":{"call":%q},"_meta":{"progressToken":%d,"io.modelcontextprotocol/logLevel":"info"}`,
			tool, call, d.ids+1))
}

// reply is one answer.
type reply struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

// answers are those to one request of a connection, whole ones only.
func (d *driver) answers(conn int, id string) (found []reply) {
	for _, e := range d.done {
		s, ok := e.action.(peer.Send)
		var r reply
		if ok && s.Conn == conn && s.Cut == 0 && bytes.HasPrefix(s.Body, []byte(`{"jsonrpc":"2.0","id":`+id+`,`)) && json.Unmarshal(s.Body, &r) == nil && string(r.ID) == id &&
			(r.Result != nil || r.Error != nil) {
			found = append(found, r)
		}
	}
	return found
}

// sent are the bodies that were sent, as texts.
func (d *driver) sent() (bodies []string) {
	for _, e := range d.done {
		if s, ok := e.action.(peer.Send); ok {
			bodies = append(bodies, string(s.Body))
		}
	}
	return bodies
}

// notes are the facts of one kind.
func (d *driver) notes(kind history.Kind) (found []history.Event) {
	for _, e := range d.done {
		if n, ok := e.action.(peer.Note); ok && n.Event.Kind == kind {
			found = append(found, n.Event)
		}
	}
	return found
}

func quoteJSON(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
