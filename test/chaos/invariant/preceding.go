package invariant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// precedingText describes what happened to a server before a violation, in order: the last two commands, the last two changes
// of faults, the end of its last connection and its last phase. A reader of the verdict looks for the cause there. at is the
// event that shows the violation and is left out; for an empty server it describes commands and faults of all servers.
func (c *checker) precedingText(server string, until time.Duration, at int) string {
	// The bounds keep the text to six causes.
	most := map[string]int{"command": 2, "fault": 2, "end": 1, "phase": 1}
	order := c.x.Order()
	from := len(order)
	// Events of the same time that come after the violation in the order cannot have caused it.
	for from > 0 && c.x.Event(order[from-1]).T > until {
		from--
	}
	if i := slices.Index(order[:from], at); i >= 0 && c.x.Event(at).T == until {
		from = i
	}
	closing := c.closeTime()
	// The time of faults may end in the instant in which a fault that has no duration breaks something: that is no end before it.
	brokenAt := time.Duration(-1)
	var causes []string
	for _, i := range slices.Backward(order[:from]) {
		e := c.x.Event(i)
		if e.Server != server && e.Server != "" && server != "" {
			continue
		}
		if e.Kind == history.FaultOn {
			brokenAt = e.T
		}
		if e.Kind == history.Heal && e.T == brokenAt {
			continue
		}
		kind, text := c.causeText(e, e.Server != server)
		// Close itself disables the servers, which is no cause of what was found there.
		if kind == "" || most[kind] == 0 || (server == "" || e.T >= closing) && (kind == "phase" || kind == "end") {
			continue
		}
		most[kind]--
		causes = append(causes, "at "+timeText(e.T)+" "+text)
	}
	if len(causes) == 0 {
		return ""
	}
	slices.Reverse(causes)
	onServer := ""
	if server != "" {
		onServer = ", on " + server
	}
	return fmt.Sprintf("What came before it%s: %s.", onServer, strings.Join(causes, "; "))
}

// causeText returns the kind and the description of an event that may be a cause; both are empty for every other event. named
// adds the server's name.
func (c *checker) causeText(e *history.Event, named bool) (kind, text string) {
	ofServer := ""
	if named && e.Server != "" {
		ofServer = " of " + e.Server
	}
	switch e.Kind {
	case history.Command:
		return "command", "the owner's command " + e.Method + ofServer
	case history.FaultOn:
		return "fault", "the fault " + e.Name + ofServer + " began"
	case history.FaultOff:
		return "fault", "the fault " + e.Name + ofServer + " ended"
	case history.Heal:
		return "fault", "every fault had ended"
	case history.Down:
		return "end", fmt.Sprintf("connection %d ended (%s)", e.Conn, endReason(e))
	case history.Refused:
		return "end", fmt.Sprintf("connection %d was refused (%s)", e.Conn, endReason(e))
	case history.Phase:
		return "phase", "the manager said that it is " + describePhase(e)
	default:
		return "", ""
	}
}

// endReason returns why a connection ended: the server's words, cut to 80 characters, or else the class.
func endReason(e *history.Event) string {
	if e.Text != "" {
		return messages.Line(e.Text, 80)
	}
	return string(e.Class)
}
