package invariant

import (
	"net/http"
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
	// extraRequests is the number of requests that a connection may see without another reason: the handshake in two eras, the
	// log level, subscriptions and their renewal.
	extraRequests = 24
)

// I9: the work that one event can cause is bounded. The harness measures memory and lines while it runs (Violation events);
// this check judges the requests that a server gets.
//
//   - After list_changed the manager lists when the server has been quiet for Quiet, or MaxWait after the first announcement:
//     at most twice per burst, however much is announced. Each list in a row that brought nothing new doubles the quiet that it waits
//     for, up to MaxWait (vain_lists.go).
//   - A list has at most 1,000 pages, so that a cursor that leads back ends.
//   - A connection sees no more requests than calls, lists, probes and the handshake explain: nothing feeds on itself.
var boundedWorkCheck = newCheck("I9", "work per event",
	"Memory, line length, pages and notification work are bounded per event.",
	"No server was asked for anything.",
	func(c *checker) {
		for _, server := range c.x.Servers() {
			for _, conn := range c.x.Conns(server) {
				if len(conn.Events) < 3 {
					continue
				}
				c.judged++
				c.checkTraffic(server, conn)
			}
		}
	})

// listRequest is one tools/list with its pages, as its server saw it.
// firstEvent and lastEvent are the first and the last request.
type listRequest struct {
	firstEvent, lastEvent int // the first and the last request
	from, to              time.Duration
	pages                 int
	// failed is set if the list was refused or not answered.
	failed bool
	done   bool
	// code is that of the last refusal, rev the state of the server that was sent in whole; 0 for none.
	code, rev int
}

// taskPollInterval is the poll interval that the servers of a scenario ask for.
const taskPollInterval = 400 * time.Millisecond

// allowedPolls returns how often the manager may ask for the task of a call: until its end as often as its server wishes, then
// for the result, and to cancel it. A notification of the server may cause one more.
func (c *checker) allowedPolls(sent *history.Event) int {
	call := c.x.Call(sent.Call)
	if call == nil || c.serverSpec(sent.Server).Tasks == "" {
		return 0
	}
	end := c.endTime()
	if len(call.Ends) > 0 {
		end = c.endOfWork(call)
	}
	return int((end-sent.T)/taskPollInterval) + 5
}

// lostTaskTime is how long the gateway looks for the task of a connection that is gone: ten times, each three seconds after the last.
const lostTaskTime = 30 * time.Second

// allowedFurtherPolls returns how often the manager may ask on a connection for a task that began on another one, counted from the first time
// that it does: a server that keeps its tasks is asked on, as long as the call has not ended for its caller. For an agent that may come back to its
// task the gateway asks for a while after the call has ended with its connection.
func (c *checker) allowedFurtherPolls(first *history.Event) int {
	tasks := c.statusesOf(first.Server).tasks
	for _, call := range c.x.Calls() {
		for _, i := range call.Received {
			if r := c.x.Event(i); r.Server != first.Server || r.Conn == first.Conn || tasks[taskRequest{r.Conn, r.ID}] != first.Task {
				continue
			}
			end := c.endTime()
			if len(call.Ends) > 0 {
				end = max(c.endOfWork(call), c.x.Event(call.Ends[0]).T)
				if c.x.Event(call.Ends[0]).Name == history.Unseen {
					end += lostTaskTime
				}
			}
			if first.T <= end+c.instantBound() {
				return int((end-first.T)/taskPollInterval) + 5
			}
		}
	}
	return 0
}

// isReadMethod reports whether a method is a read, which callers cause and the history does not count.
func isReadMethod(method string) bool {
	return strings.HasPrefix(method, "resources/") || strings.HasPrefix(method, "prompts/") || method == "completion/complete" ||
		method == "tasks/list"
}

// checkTraffic judges the requests of one connection.
func (c *checker) checkTraffic(server string, conn *history.ConnRecord) {
	lists, announced, further := c.listsOf(conn)
	requests, calls, listens, pages, polls, maxPolls := 0, 0, 0, 0, 0, 0
	open := c.x.Event(conn.Events[0]).T
	known := map[string]bool{} // the tasks that were asked for
	maxPolls += 2 * c.takeoversBefore(server, conn.Conn, open)
	for _, i := range conn.Events {
		e := c.x.Event(i)
		if e.Kind == history.Received && e.Method == "tasks/list" {
			// A caller of tasks/list takes over a task: it asks for its status, and for the result of one that has ended.
			maxPolls += 2
		}
		if e.Kind == history.Received && e.ID != "" && !isReadMethod(e.Method) {
			requests++
			switch e.Method {
			case "tools/call":
				calls++
				maxPolls += c.allowedPolls(e)
			case "tasks/get", "tasks/result", "tasks/cancel":
				if polls++; e.Task != "" && !known[e.Task] {
					known[e.Task] = true
					maxPolls += c.allowedFurtherPolls(e)
				}
			case "subscriptions/listen":
				listens++
			}
		}
	}
	for _, l := range lists {
		pages += l.pages
		if l.pages > mostPages+1 {
			c.reportViolation(server, l.lastEvent, []int{l.firstEvent}, "The server was asked for page %d of one list of its tools at %s: a cursor that leads "+
				"back is to end it, or the %d. page.", l.pages, timeText(c.x.Event(l.lastEvent).T), mostPages)
		}
	}
	if requests -= polls; polls > maxPolls {
		c.reportViolation(server, conn.Events[len(conn.Events)-1], []int{conn.Open}, "Connection %d was asked %d times until %s after the tasks of "+
			"%d calls, and %d times at most are due, once in %s.", conn.Conn, polls, timeText(c.x.Event(conn.Events[len(conn.Events)-1]).T), calls, maxPolls,
			timeText(taskPollInterval))
	}
	c.checkCoalescing(server, lists, announced, further)
	c.checkRelistPause(server, lists)
	end := c.endTime()
	if t, ok := c.x.Time(conn.Released); ok {
		end = t
	}
	probes := 0
	if poolOf(c.serverSpec(server).Kind) == network {
		probes = 4 * int((end-open)/max(c.plan.ProbeEvery, time.Second)+1)
	}
	for _, l := range c.plan.Load {
		if l.Server == server && l.Read == "ping" {
			probes += 10 + 2*int(l.Rate*(l.End-l.Begin).Seconds())
		}
	}
	// Each read that was lost with its connection asks once whether that serves others all the same.
	if t, ok := c.x.Time(conn.Down); ok {
		probes += c.readsUnderWay(server, t)
	}
	watches := 0
	if listens > 0 {
		watches = min(listens, c.countWatchRequests(server, open, end))
	}
	if most := extraRequests + 3*calls + pages + probes + watches + c.commandRequests(server, open, end) + len(announced); requests > most {
		c.reportViolation(server, conn.Events[len(conn.Events)-1], []int{conn.Open}, "Connection %d saw %d requests from %s to %s, and %d calls, %d pages "+
			"of lists, %d changes of what is watched and the looks for life account for %d at most: something feeds on itself.", conn.Conn, requests,
			timeText(open), timeText(end), calls, pages, watches, most)
	}
}

// takeoversBefore counts the lists of tasks that a server got on other connections shortly before this one: what their callers ask about a task
// is a read, and is sent again where it was lost.
func (c *checker) takeoversBefore(server string, conn int, open time.Duration) (n int) {
	const readsWait = 30 * time.Second
	for _, i := range c.x.ServerEvents(server) {
		if e := c.x.Event(i); e.Kind == history.Received && e.Method == "tasks/list" && e.Conn != conn && e.T <= open && e.T > open-readsWait {
			n++
		}
	}
	return n
}

// readsUnderWay counts the reads of a server that had begun before a time and had not ended by then.
func (c *checker) readsUnderWay(server string, t time.Duration) int {
	open := map[string]bool{}
	for _, i := range c.x.ServerEvents(server) {
		switch e := c.x.Event(i); {
		case e.Kind == history.Reading && e.T <= t:
			open[e.Call] = true
		case e.Kind == history.ReadEnd && e.T < t:
			delete(open, e.Call)
		}
	}
	return len(open)
}

// isWithin reports whether two times are at most within apart.
func isWithin(a, b, within time.Duration) bool { return a-b <= within && b-a <= within }

// commandRequests returns how many requests the owner's commands between two times may cause.
func (c *checker) commandRequests(server string, from, to time.Duration) (count int) {
	for _, a := range c.ownerCommands(server) {
		if a.begin >= from-c.slack && a.begin <= to {
			count += 2
		}
	}
	return count
}

// countWatchRequests returns how often callers and agents asked between two times to watch the server's resource, or to watch it no longer:
// a server of the modern era is asked for another subscription each time.
func (c *checker) countWatchRequests(server string, from, to time.Duration) (count int) {
	if c.watchCache == nil {
		c.watchCache = map[string][]time.Duration{}
		for _, i := range c.x.Order() {
			if e := c.x.Event(i); e.Kind == history.Reading && (e.Method == "subscribe" || e.Method == "unsubscribe") {
				c.watchCache[e.Server] = append(c.watchCache[e.Server], e.T)
			} else if watched, ok := strings.CutPrefix(e.About, "chaos://"); ok && e.Kind == history.Asked && e.Method != "resources/read" {
				if name, ok := strings.CutSuffix(watched, "/one"); ok {
					c.watchCache[name] = append(c.watchCache[name], e.T)
				}
			}
		}
	}
	for _, t := range c.watchCache[server] {
		if t >= from-c.slack && t <= to {
			count++
		}
	}
	return count
}

// checkCoalescing judges each list after the first: it has a reason, and the manager waited for the end of the burst that
// announced it.
func (c *checker) checkCoalescing(server string, lists []listRequest, announced, further []time.Duration) {
	commands := c.ownerCommands(server)
	vain := 0
	for n := 1; n < len(lists); n++ {
		l, before := lists[n], lists[n-1]
		vain = c.countVain(server, lists[:n], vain, commands)
		if _, found := c.anyCommandIn(commands, before.from, l.from); found {
			continue
		}
		// A server that offers more than tools is connected even if the time for the list has run out.
		if before.failed || !before.done && c.serverSpec(server).Offers || c.isHindered(server, before.from, l.from) || c.mayHaveReopened(server, before.from, l.from) ||
			c.calledForHeaders(server, before.from, l.from) {
			// A failed list is repeated by itself; a reopened stream may have missed announcements.
			continue
		}
		first, last := time.Duration(-1), time.Duration(-1)
		// On real wires an announcement and a request cross: the server may have announced before the request reached it.
		for k, _ := slices.BinarySearch(announced, before.from-c.serverDelay()); k < len(announced) && announced[k] <= l.from; k++ {
			if first < 0 {
				first = announced[k]
			}
			// For an announcement in the instant of the request the order is unknown.
			if announced[k] < l.from || last < 0 {
				last = announced[k]
			}
		}
		evidence := []int{before.firstEvent}
		if first < 0 && slices.ContainsFunc(further, func(t time.Duration) bool { return t >= before.from-c.serverDelay() && t <= l.from }) {
			continue
		}
		if first < 0 {
			c.reportViolation(server, l.firstEvent, evidence, "The tools were listed at %s, and the server had announced no change since they were listed at "+
				"%s.", timeText(l.from), timeText(before.from))
			continue
		}
		// A further agreement may have begun the burst: what changed before it was not announced. Whether it is about the tools is not recorded.
		for _, t := range further {
			if t >= before.from-c.serverDelay() && t <= l.from {
				first = min(first, t)
			}
		}
		// An announcement during a list counts from the end of that list.
		waited := min(l.from-max(last, before.to), l.from-last)
		quiet := c.quietAfter(vain)
		if first > before.to+c.plan.MaxWait/2 || c.wasOfferedAnew(before.to, l.from) {
			quiet = c.plan.Quiet // after such a pause, or with other rules (seed 30320344), the product counts anew
		}
		if since := l.from - max(first, min(before.to, l.from)); waited < quiet-c.timePrecision()-c.skew/5 && since < c.plan.MaxWait-c.timePrecision()-c.skew/5 &&
			l.from-first < c.plan.MaxWait-c.timePrecision() {
			c.reportViolation(server, l.firstEvent, evidence, "The tools of the server were listed at %s, %s after it had last announced a change and %s after "+
				"the first announcement: a burst of them is waited for until %s of silence, or %s, after %d lists in a row that brought nothing new.", timeText(l.from),
				(l.from - last).Round(time.Microsecond), (l.from - first).Round(time.Microsecond), quiet, c.plan.MaxWait, vain)
		}
	}
}

// reopenTime bounds the time until a cut stream of a healthy server is open again and the list that is then due was asked for:
// the pause, and the wait for the end of a burst.
const reopenTime = time.Second

// mayHaveReopened reports whether a cut stream can have been reopened between two lists: announcements in the meantime are
// lost, which is a reason for the second list. The cut may lie before the first list, and the fault may have ended.
func (c *checker) mayHaveReopened(server string, from, to time.Duration) bool {
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.Kind == history.Fired && e.Name == "cut-stream" && e.T <= to && c.reachableFrom(server, e.T)+reopenTime+c.slack >= from {
			return true
		}
	}
	return false
}

// reachableFrom returns from when on the network lets the server be reached, at this time or after it: within a partition no stream opens again.
func (c *checker) reachableFrom(server string, at time.Duration) time.Duration {
	for _, w := range c.faultWindows(server) {
		if w.fault == "partition" && w.from <= at {
			at = max(at, w.to)
		}
	}
	return at
}

// calledForHeaders reports whether a call whose headers were refused explains the second of two lists: the manager lists then, because "the client
// SHOULD call tools/list to check for changes". The refusal came between the two, or the call ended shortly before the first. Of several such calls
// one lists at a time: the next one does when that list has come, or when the call that waited for it has ended.
func (c *checker) calledForHeaders(server string, from, to time.Duration) bool {
	spec := c.serverSpec(server)
	return spec != nil && spec.Headers && slices.ContainsFunc(c.x.ServerEvents(server), func(i int) bool {
		e := c.x.Event(i)
		if e.Kind != history.Answered || e.Method != "tools/call" || e.Code != http.StatusBadRequest || e.T > to {
			return false
		}
		until := e.T
		if call := c.x.Call(e.Call); call != nil && len(call.Ends) > 0 {
			until = max(until, c.endKnown(call))
		}
		return until+listTimeout >= from
	})
}

// anyCommandIn is commandIn including commands that only ask for the list.
func (c *checker) anyCommandIn(all []ownerCommand, from, to time.Duration) (ownerCommand, bool) {
	for _, a := range all {
		if a.begin > to+c.skew {
			break
		}
		if !a.answered || a.end+c.slack >= from || a.begin >= from-c.skew {
			return a, true
		}
	}
	return ownerCommand{}, false
}
