package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

const (
	// mostPages bounds the pages of one list: session.Config.MaxPages.
	mostPages = 1000
	// listTimeout bounds a list after the first one: actors.Timing.ListTimeout.
	listTimeout = 30 * time.Second
	// spare is how many requests a connection may see beside those that have a reason: the handshake in two eras, the level
	// of the log, subscriptions and their repetition.
	spare = 24
)

// I9: what one event can cause is bounded. Memory and lines are measured by the harness while it runs (Violation events);
// here it is the work that a server is given.
//
//   - After list_changed the list is asked for when the server has been quiet for Quiet, or MaxWait after the first: at most twice
//     per burst, whatever is announced.
//   - A list has at most 1,000 pages, so that a cursor that leads back ends.
//   - A connection sees no more requests than calls, lists, looks for life and the handshake account for: nothing feeds on itself.
var bounded = check("I9", "work per event",
	"Memory, line length, pages and notification work are bounded per event.",
	"No server was asked for anything.",
	func(c *court) {
		for _, server := range c.x.Servers() {
			for _, conn := range c.x.Conns(server) {
				if len(conn.Events) < 3 {
					continue
				}
				c.looked++
				c.traffic(server, conn)
			}
		}
	})

// list is one tools/list with its pages, as its server saw it.
type list struct {
	at, last int // the first and the last request
	from, to time.Duration
	pages    int
	failed   bool // refused, or not answered
	done     bool
	code     int // with which it was refused last
}

// taskPoll is how often the servers of a scenario want to be asked after a task.
const taskPoll = 400 * time.Millisecond

// asks is how often a call may be asked after that has become a task: until it ends as its server wishes, then for its result, and
// to cancel it. A hint of the server hastens one question.
func (c *court) asks(sent *history.Event) int {
	call := c.x.Call(sent.Call)
	if call == nil || c.server(sent.Server).Tasks == "" {
		return 0
	}
	end := c.end()
	if len(call.Ends) > 0 {
		end = c.x.Event(call.Ends[0]).T
	}
	return int((end-sent.T)/taskPoll) + 5
}

// reads says which requests are reads, which callers make for themselves and nobody counts.
func reads(method string) bool {
	return strings.HasPrefix(method, "resources/") || strings.HasPrefix(method, "prompts/") || method == "completion/complete" ||
		method == "tasks/list"
}

// traffic judges one connection.
func (c *court) traffic(server string, conn *history.ConnRecord) {
	lists, told, further := c.listsOf(conn)
	requests, calls, pages, polls, asks := 0, 0, 0, 0, 0
	open := c.x.Event(conn.Events[0]).T
	for _, i := range conn.Events {
		e := c.x.Event(i)
		if e.Kind == history.Received && e.Method == "tasks/list" {
			asks++ // who reads which tasks there are asks after the last of them
		}
		if e.Kind == history.Received && e.ID != "" && !reads(e.Method) {
			requests++
			switch e.Method {
			case "tools/call":
				calls++
				asks += c.asks(e)
			case "tasks/get", "tasks/result", "tasks/cancel":
				polls++
			}
		}
	}
	for _, l := range lists {
		pages += l.pages
		if l.pages > mostPages+1 {
			c.violated(server, l.last, []int{l.at}, "The server was asked for page %d of one list of its tools at %s: a cursor that leads "+
				"back is to end it, or the %d. page.", l.pages, clock(c.x.Event(l.last).T), mostPages)
		}
	}
	if requests -= polls; polls > asks {
		c.violated(server, conn.Events[len(conn.Events)-1], []int{conn.Open}, "Connection %d was asked %d times until %s after the tasks of "+
			"%d calls, and %d times at most are due, once in %s.", conn.Conn, polls, clock(c.x.Event(conn.Events[len(conn.Events)-1]).T), calls, asks,
			clock(taskPoll))
	}
	c.coalesced(server, lists, told, further)
	c.patient(server, lists)
	end := c.end()
	if t, ok := c.x.Time(conn.Released); ok {
		end = t
	}
	looks := 0
	if poolOf(c.server(server).Kind) == network {
		looks = 4 * int((end-open)/max(c.plan.ProbeEvery, time.Second)+1)
	}
	for _, l := range c.plan.Load {
		if l.Server == server && l.Read == "ping" {
			looks += 10 + 2*int(l.Rate*(l.End-l.Begin).Seconds())
		}
	}
	if most := spare + 3*calls + pages + looks + c.commanded(server, open, end) + len(told); requests > most {
		c.violated(server, conn.Events[len(conn.Events)-1], []int{conn.Open}, "Connection %d saw %d requests from %s to %s, and %d calls, %d pages "+
			"of lists and the looks for life account for %d at most: something feeds on itself.", conn.Conn, requests, clock(open), clock(end),
			calls, pages, most)
	}
}

func near(a, b, within time.Duration) bool { return a-b <= within && b-a <= within }

func (c *court) commanded(server string, from, to time.Duration) (count int) {
	for _, a := range c.commands(server) {
		if a.begin >= from-c.late && a.begin <= to {
			count += 2
		}
	}
	return count
}

// coalesced judges each list after the first: it has a reason, and what announced it had been waited for.
func (c *court) coalesced(server string, lists []list, told, further []time.Duration) {
	commands := c.commands(server)
	for n := 1; n < len(lists); n++ {
		l, before := lists[n], lists[n-1]
		if _, found := c.askedOrRefreshed(commands, before.from, l.from); found {
			continue
		}
		// A server that offers more than tools is connected although the time for the list has run out.
		if before.failed || !before.done && c.server(server).Offers || c.hindered(server, before.from, l.from) || c.reopened(server, before.from, l.from) {
			continue // it is tried again by itself; or the stream was opened anew, and whatever was said meanwhile is missing
		}
		first, last := time.Duration(-1), time.Duration(-1)
		// On real wires what a server says and what it is asked cross each other: it may have said it before it was asked, to
		// somebody who had asked before it was said.
		for k, _ := slices.BinarySearch(told, before.from-c.slower()); k < len(told) && told[k] <= l.from; k++ {
			if first < 0 {
				first = told[k]
			}
			if told[k] < l.from || last < 0 { // of what is said in the instant of the request, none can tell whether it came before
				last = told[k]
			}
		}
		evidence := []int{before.at}
		if first < 0 && slices.ContainsFunc(further, func(t time.Duration) bool { return t >= before.from-c.slower() && t <= l.from }) {
			continue
		}
		if first < 0 {
			c.violated(server, l.at, evidence, "The list was asked for at %s, and the server had announced no change since it was asked for at "+
				"%s.", clock(l.from), clock(before.from))
			continue
		}
		// What is announced while a list is under way is waited for when that list is in.
		waited := min(l.from-max(last, before.to), l.from-last)
		if since := l.from - max(first, min(before.to, l.from)); waited < c.plan.Quiet-c.exact()-c.moment/5 && since < c.plan.MaxWait-c.exact()-c.moment/5 &&
			l.from-first < c.plan.MaxWait-c.exact() {
			c.violated(server, l.at, evidence, "The list was asked for at %s, %s after its last and %s after its first announcement: a burst is "+
				"waited for until %s of silence, or %s.", clock(l.from), l.from-last, l.from-first, c.plan.Quiet, c.plan.MaxWait)
		}
	}
}

// reopening is how long it takes at most until a stream that was cut is open again, the server being well, and the list that is
// asked for then: its pause, and what a burst is waited for.
const reopening = time.Second

// reopened reports whether a stream that was cut can have been opened again between two lists: what was said while there was none
// is missing, so that the second has a reason. The cut itself may lie before the first, and the fault may be over.
func (c *court) reopened(server string, from, to time.Duration) bool {
	for _, i := range c.x.Of(server) {
		e := c.x.Event(i)
		if e.Kind == history.Fired && e.Name == "cut-stream" && e.T <= to && e.T+reopening+c.late >= from {
			return true
		}
	}
	return false
}

// askedOrRefreshed is askedIn with those who ask for the list alone.
func (c *court) askedOrRefreshed(all []asked, from, to time.Duration) (asked, bool) {
	for _, a := range all {
		if a.begin > to+c.moment {
			break
		}
		if !a.answered || a.end+c.late >= from || a.begin >= from-c.moment {
			return a, true
		}
	}
	return asked{}, false
}
