package history

import (
	"slices"
	"time"
)

// Index gives access to a history by server, by call and by connection, in the canonical order. All checks share it, so that
// each looks only at the events that it needs. Every slice holds indices into History.Events and belongs to the index: callers
// only read it.
type Index struct {
	events   []Event
	order    []int
	servers  []string
	byServer map[string][]int
	calls    []*CallRecord
	byCall   map[string]*CallRecord
	conns    map[string][]*ConnRecord
}

// CallRecord holds the events of one call, as indices; -1 stands for an event that did not happen.
type CallRecord struct {
	ID, Server string
	// Begin, GivenUp and Ends are what the caller saw. More than one end is a violation, so all are kept. Cut is the loss of the
	// connection on which an agent waits for the end, and Back the next one.
	Begin, GivenUp, Cut, Back int
	// Tasked is when its agent took it over as a task: the agent has the end when it asks for the task.
	Tasked int
	Ends   []int
	// Untaken is set if the call never came to the manager: its end says nothing of what the manager did.
	Untaken bool
	// Received, Executed and Answered are what the server saw.
	Received, Executed, Answered []int
}

// ConnRecord holds the events of one connection of a server, as indices; -1 stands for an event that did not happen. Down is
// the first Down.
type ConnRecord struct {
	Server                                string
	Conn                                  int
	Open, Opened, Refused, Down, Released int
	// Events are all events of the connection.
	Events []int
}

// Index returns the index. It makes it at the first call, and again if events were added since. It is safe for concurrent use
// as long as no goroutine changes Events.
func (h *History) Index() *Index {
	if x := h.index.Load(); x != nil && len(x.events) == len(h.Events) {
		return x
	}
	x := newIndex(h.Events)
	h.index.Store(x)
	return x
}

// newIndex builds the index in one pass over the events in canonical order.
func newIndex(events []Event) *Index {
	x := &Index{
		events: events, order: canonicalOrder(events), byServer: map[string][]int{}, byCall: map[string]*CallRecord{},
		conns: map[string][]*ConnRecord{},
	}
	last := map[string]map[int]*ConnRecord{}
	for _, i := range x.order {
		e := &events[i]
		x.byServer[e.Server] = append(x.byServer[e.Server], i)
		switch {
		case e.Call != "":
			x.addCall(e, i)
		case e.Kind == StreamCut && x.byCall[e.About] != nil:
			x.byCall[e.About].Cut = i
		case e.Kind == StreamBack && x.byCall[e.About] != nil:
			x.byCall[e.About].Back = i
		}
		if e.Side == World && e.Conn != 0 {
			if last[e.Server] == nil {
				last[e.Server] = map[int]*ConnRecord{}
			}
			x.addConn(last[e.Server], e, i)
		}
	}
	// The agent's event may stand before that of the call, of the same instant.
	for _, i := range x.byServer[""] {
		if e := &events[i]; e.Kind == Tasked && x.byCall[e.About] != nil {
			x.byCall[e.About].Tasked = i
		}
	}
	for server := range x.byServer {
		if server != "" {
			x.servers = append(x.servers, server)
		}
	}
	slices.Sort(x.servers)
	x.calls = slices.DeleteFunc(x.calls, func(c *CallRecord) bool { return c.Untaken && len(c.Received) == 0 })
	return x
}

// addCall adds an event to the record of its call.
func (x *Index) addCall(e *Event, i int) {
	c := x.byCall[e.Call]
	if c == nil {
		c = &CallRecord{ID: e.Call, Server: e.Server, Begin: -1, GivenUp: -1, Cut: -1, Back: -1, Tasked: -1}
		x.byCall[e.Call] = c
		x.calls = append(x.calls, c)
	}
	switch e.Kind {
	case Call:
		if c.Begin < 0 {
			c.Begin = i
		}
	case GivenUp:
		if c.GivenUp < 0 {
			c.GivenUp = i
		}
	case End:
		c.Ends = append(c.Ends, i)
		c.Untaken = c.Untaken || e.Name == Untaken
	case Received:
		c.Received = append(c.Received, i)
	case Executed:
		c.Executed = append(c.Executed, i)
	case Answered:
		c.Answered = append(c.Answered, i)
	default:
	}
}

// addConn adds an event to the record of its connection. records are those of the server.
func (x *Index) addConn(records map[int]*ConnRecord, e *Event, i int) {
	c := records[e.Conn]
	if c == nil {
		c = &ConnRecord{Server: e.Server, Conn: e.Conn, Open: -1, Opened: -1, Refused: -1, Down: -1, Released: -1}
		records[e.Conn] = c
		x.conns[e.Server] = append(x.conns[e.Server], c)
	}
	c.Events = append(c.Events, i)
	first := func(at *int) {
		if *at < 0 {
			*at = i
		}
	}
	switch e.Kind {
	case Open:
		first(&c.Open)
	case Opened:
		first(&c.Opened)
	case Refused:
		first(&c.Refused)
	case Down:
		first(&c.Down)
	case Released:
		first(&c.Released)
	default:
	}
}

// Order returns all events in the canonical order.
func (x *Index) Order() []int { return x.order }

// Servers returns the names of all servers with events, sorted.
func (x *Index) Servers() []string { return x.servers }

// ServerEvents returns the events of one server; for "" those of the manager, the machine and the harness.
func (x *Index) ServerEvents(server string) []int { return x.byServer[server] }

// Calls returns every call that came to the manager, in the order in which they began. One that a server received has come to the manager,
// whatever the harness says of its end.
func (x *Index) Calls() []*CallRecord { return x.calls }

// Call returns one call, nil if no event names it.
func (x *Index) Call(id string) *CallRecord { return x.byCall[id] }

// Conns returns the connections of a server in their order.
func (x *Index) Conns(server string) []*ConnRecord { return x.conns[server] }

// Event returns an event by its index in History.Events.
func (x *Index) Event(i int) *Event { return &x.events[i] }

// Time returns the time of an event; ok is false for -1, an event that did not happen.
func (x *Index) Time(i int) (t time.Duration, ok bool) {
	if i < 0 {
		return 0, false
	}
	return x.events[i].T, true
}
