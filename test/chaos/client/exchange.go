package client

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// advice says of each check what a client does that keeps it.
var advice = map[string]string{
	"C1":  "End each call when its context ends, whatever the transport is doing: wait for the answer in a select with ctx.Done(), and bound what you send at the end.",
	"C2":  "Give each request an id of its own and hand an answer to the waiter of its id alone; drop answers that nobody waits for.",
	"C3":  "After an error repeat a call only if it has certainly not left this process, or if its tool is marked read-only or idempotent. Everything else is the caller's to decide.",
	"C4":  "Notice the end of a connection or session (end of the stream, 404, a failed ping), connect anew with a bounded wait between attempts, and never stop trying.",
	"C5":  "Let Close end every goroutine, connection and process that the client has started, and every call under way; give each goroutine a channel or context that Close ends.",
	"C6":  "List again after notifications/tools/list_changed and after each new connection, follow nextCursor to its end, and keep no list of an earlier connection.",
	"C7":  "Wait before each new attempt, longer after each that failed (with some chance in it), and let callers share one attempt.",
	"C8":  "Keep what belongs to one server apart: its connection, its queue, its locks and its waits. A server that hangs must not hold up another.",
	"C9":  "When the caller's context ends, send notifications/cancelled with the id of the request, in the form in which it was sent.",
	"C10": "See the sentence above; the protocol's pages on lifecycle and transports have the rule.",
	"C11": "Make a progress token for each call, hand progress to the call of its token alone, and drop tokens that are not, or no longer, yours.",
}

// Advice says what a client does that keeps a check; empty for what is none.
func Advice(check string) string { return advice[check] }

const (
	// before and after are how many lines of the exchange are shown around what shows a violation.
	before, after = 10, 3
	// mostLines bounds an exchange.
	mostLines = 30
)

// Exchange shows the part of a day that led to a violation: what the callers asked, what went over the wire and which faults there
// were, on the violation's server, a line for each. A line with > is part of the evidence.
func Exchange(h *history.History, v invariant.Verdict) string {
	x := h.Index()
	var shown []int
	add := func(i int) {
		if !slices.Contains(shown, i) {
			shown = append(shown, i)
		}
	}
	for n, at := range v.Evidence {
		add(at)
		if n == len(v.Evidence)-1 {
			for _, i := range linesAround(h, x, at, v.Server) {
				add(i)
			}
		}
	}
	slices.Sort(shown)
	// What was at the beginning goes, if there is too much; the evidence stays.
	for i := 0; len(shown) > mostLines && i < len(shown); {
		if slices.Contains(v.Evidence, shown[i]) {
			i++
			continue
		}
		shown = slices.Delete(shown, i, i+1)
	}
	var b strings.Builder
	last := -1
	for _, i := range shown {
		if last >= 0 && i > last+1 && skipsLines(h, x, last, i, v.Server) {
			b.WriteString("    ...\n")
		}
		last = i
		mark := "  "
		if slices.Contains(v.Evidence, i) {
			mark = "> "
		}
		e := x.Event(i)
		fmt.Fprintf(&b, "%s%10s  %s\n", mark, e.T.Round(100*time.Microsecond), describeEvent(h, e))
	}
	return b.String()
}

// skipsLines reports whether something between two events is not shown.
func skipsLines(h *history.History, x *history.Index, from, to int, server string) bool {
	for i := from + 1; i < to; i++ {
		if e := x.Event(i); isOfServer(e, server) && describeEvent(h, e) != "" {
			return true
		}
	}
	return false
}

func isOfServer(e *history.Event, server string) bool { return e.Server == server || e.Server == "" }

// linesAround returns the events around one that are worth a line.
func linesAround(h *history.History, x *history.Index, at int, server string) (all []int) {
	for step, most := range map[int]int{-1: before, 1: after} {
		for i, n := at+step, 0; i >= 0 && i < len(h.Events) && n < most; i += step {
			if e := x.Event(i); isOfServer(e, server) && describeEvent(h, e) != "" {
				all = append(all, i)
				n++
			}
		}
	}
	return all
}

// describeEvent writes an event as a line of the exchange, empty for one that says nothing of it.
func describeEvent(h *history.History, e *history.Event) string {
	conn := ""
	if len(h.Plan.Servers) > 1 && e.Server != "" {
		conn = " [" + e.Server + "]"
	}
	if e.Conn > 0 {
		conn += fmt.Sprintf(" (connection %d)", e.Conn)
	}
	what := strings.TrimSpace(e.Method + " " + e.Call)
	if e.ID != "" && e.Kind != history.End {
		what += ", id " + messages.Line(e.ID, 40)
	}
	switch e.Kind {
	case history.Open:
		return "client opens the server" + conn
	case history.Opened:
		return "server accepts" + conn
	case history.Refused:
		return "server refuses the connection" + conn
	case history.Received:
		if e.Method == "" {
			what = "an answer" + what
		}
		return "client -> server  " + what + conn
	case history.Answered:
		if e.Code != 0 {
			what += fmt.Sprintf(": error %d", e.Code)
		}
		return "client <- server  answer to " + what + conn
	case history.Executed:
		return "server runs " + e.Tool + " for " + e.Call + conn
	case history.Notified:
		return "client <- server  " + e.Method + conn
	case history.Changed:
		return "server's tools are now " + messages.Line(strings.Join(e.Names, ", "), 120) + conn
	case history.Down:
		return strings.TrimSpace("server ends the connection "+e.Text) + conn
	case history.Released:
		return "the connection is gone" + conn
	case history.Call:
		return fmt.Sprintf("caller asks for %s of tool %s, until %s%s", e.Call, e.Tool, e.Deadline.Round(time.Millisecond), conn)
	case history.GivenUp:
		return "caller gives up " + e.Call + conn
	case history.End:
		if e.Outcome == messages.OutcomeResult {
			return "caller gets a result of " + e.ID + " for " + e.Call + conn
		}
		return fmt.Sprintf("caller gets no result for %s: %s%s", e.Call, messages.Line(e.Text, 140), conn)
	case history.ReadEnd:
		if e.Class != "" {
			return "client lists no tools: " + messages.Line(e.Text, 140) + conn
		}
		return "client lists " + messages.Line(strings.Join(e.Names, ", "), 120) + conn
	case history.FaultOn:
		return "fault " + e.Name + " begins" + conn
	case history.FaultOff:
		return "fault " + e.Name + " ends" + conn
	case history.Heal:
		return "every fault has ended"
	case history.Closing:
		return "the clients are closed"
	case history.Closed:
		return "closed " + e.Text
	case history.Command:
		return "owner: " + e.Method + conn
	case history.Violation:
		return messages.Line(e.Text, 160) + conn
	case history.Resources:
		if e.House != nil && e.House.Goroutines > 0 {
			return fmt.Sprintf("%d goroutines are left", e.House.Goroutines)
		}
	default:
	}
	return ""
}
