package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// eventText is an event in words. The part that many events share is kept apart from the rest, so that a page with a
// hundred thousand events holds each sentence once.
type eventText struct {
	// what is the shared sentence: "failed: timeout, tried again".
	what string
	// ref is the call's id, or the fault's name and number.
	ref string
	// conn is the number of the connection at the server, 0 if the event concerns none.
	conn int
	// text is the text of a server or of mcpvisor: an error.
	text string
}

// String returns the event as one sentence, for the terminal and the documents.
func (t eventText) String() string {
	out := t.what
	if t.ref != "" {
		out += " " + t.ref
	}
	if t.conn != 0 {
		out += " (connection " + strconv.Itoa(t.conn) + ")"
	}
	if t.text != "" {
		out += ": " + t.text
	}
	return out
}

// describeEvent returns an event in words. A kind that is unknown here is described by its own word.
func describeEvent(e *history.Event) eventText {
	// Every text that a server chose goes through oneLine: the words end up in terminals, pages and logs.
	t := eventText{conn: e.Conn, text: oneLine(e.Text), ref: oneLine(e.Call)}
	switch e.Kind {
	case history.Phase, history.Status:
		t.what = phaseWords(e)
		if e.Kind == history.Status {
			t.what = "status: " + t.what
		}
		if e.Epoch != 0 {
			t.ref = "epoch " + strconv.FormatUint(e.Epoch, 10)
		}
	case history.Snapshot:
		t.what, t.ref = "published a snapshot, generation", strconv.FormatUint(e.Generation, 10)
	case history.CallReported:
		t.what = "a watcher is told of " + oneLine(e.Method)
		if e.Outcome != "" {
			t.what += ": " + string(e.Outcome)
		}
	case history.Updated:
		t.what = "a watcher is told that a resource has changed"
	case history.ListTold:
		t.what = "a watcher is told that the list of " + oneLine(e.Method) + " has changed"
	case history.Inquiry:
		t.what, t.ref = "asks its client "+oneLine(e.Method), "("+oneLine(e.Call)+")"
	case history.Inquired:
		t.what, t.ref = "is answered "+oneLine(e.Method), "("+oneLine(e.Call)+")"
	case history.Offered:
		t.what, t.ref = "has other resources and prompts, revision", strconv.Itoa(e.Rev)
	case history.Reading:
		t.what = "reads " + oneLine(e.Method)
	case history.ReadEnd:
		t.what = "has read " + oneLine(e.Method) + classText(e)
	case history.Joined, history.Parted, history.Asked, history.Replied, history.Noticed, history.Ended, history.Questioned, history.Consulted, history.Advised, history.Tasked, history.Retimed, history.StreamCut, history.StreamBack:
		t.what, t.ref = agentWords(e), "("+oneLine(strings.TrimSpace(e.Agent+" "+e.About))+")"
	case history.Removed:
		t.what = "removed"
	case history.Auth:
		t.what = "credentials changed"
	case history.Log:
		t.what = "logged"
	case history.Open:
		t.what = "a dial arrives"
	case history.Opened:
		t.what = "opened"
	case history.Refused:
		t.what = "refused" + classText(e) + retryAfterText(e)
	case history.Received:
		t.what = "received " + oneLine(e.Method)
	case history.Answered:
		t.what = "answered " + oneLine(e.Method)
		if e.Code != 0 {
			t.what += " with " + strconv.Itoa(e.Code)
		}
		t.what += retryAfterText(e)
	case history.Executed:
		t.what = "executed " + oneLine(e.Tool)
	case history.Listed:
		t.what, t.ref = "sent its list, revision", strconv.Itoa(e.Rev)
	case history.Changed:
		t.what, t.ref = "has another list, revision", strconv.Itoa(e.Rev)
	case history.Notified:
		t.what = "notified " + oneLine(e.Method)
	case history.Down:
		t.what = "ended" + classText(e) + retryAfterText(e)
	case history.Released:
		t.what = "nothing is left"
	case history.Measured:
		t.what = fmt.Sprintf("ran for %s, waited for a processor for %s", roundDuration(e.Ran), roundDuration(e.Waited))
	case history.Call:
		t.what = "call " + oneLine(e.Tool)
	case history.GivenUp:
		t.what = "call given up " + oneLine(e.Tool)
	case history.End:
		t.what = "call ended: " + string(e.Outcome) + classText(e)
		if e.Took != 0 {
			t.ref += " after " + roundDuration(e.Took)
		}
	case history.Command:
		t.what = "asked: " + oneLine(e.Method)
	case history.Done:
		t.what = "done: " + oneLine(e.Method) + classText(e)
	case history.FaultOn, history.FaultOff, history.Fired:
		verb := map[history.Kind]string{
			history.FaultOn: "fault begins: ", history.FaultOff: "fault ends: ", history.Fired: "fault takes effect: ",
		}[e.Kind]
		t.what, t.ref = verb+oneLine(e.Name), "no. "+strconv.Itoa(e.Fault)
	case history.Heal:
		t.what = "every fault has ended"
	case history.Closing:
		t.what = "the manager is closed"
	case history.Closed:
		t.what = "the manager has closed"
	case history.Resources:
		t.what = "house"
		if n := e.House; n != nil && e.Text == history.Hung {
			t.what, t.ref = "who waits for what", oneLine(strings.Join(n.Left, " "))
		} else if n != nil {
			t.ref = fmt.Sprintf("%d processes, %d descriptors, %d goroutines, %d bytes", n.Processes, n.Descriptors,
				n.Goroutines, n.Heap)
			if len(n.Left) > 0 {
				t.ref += ", left: " + oneLine(strings.Join(n.Left, ", "))
			}
		}
	case history.Violation:
		t.what = "the harness saw a violation of " + oneLine(e.Name)
		if e.Name == history.Hung {
			t.what = "the run hangs"
		}
	case history.Canary:
		t.what = "a secret or a control character came out"
	default:
		t.what = oneLine(string(e.Kind))
	}
	return t
}

// agentWords returns what an agent sent, or got.
func agentWords(e *history.Event) string {
	method := oneLine(e.Method)
	switch e.Kind {
	case history.Joined:
		return "session begins (" + oneLine(e.Name) + ")"
	case history.Parted:
		return "session ends"
	case history.Noticed:
		return "notified " + method
	case history.Ended:
		return "takes back " + method
	case history.Questioned:
		return "is asked " + method
	case history.Consulted:
		return "has a question before it, " + method
	case history.Advised:
		return "answers " + method
	case history.Tasked:
		return "has its call as a task"
	case history.Retimed:
		return "has its task for another time"
	case history.StreamCut:
		if method != "" {
			return "has lost the connection of " + method
		}
		return "has lost its stream"
	case history.StreamBack:
		if method != "" {
			return "has another connection for " + method
		}
		return "has another stream"
	case history.Replied:
		switch {
		case e.Name == history.NoAnswer:
			return "no answer to " + method
		case e.Code != 0:
			return "answer to " + method + ": " + strconv.Itoa(e.Code)
		}
		return "answer to " + method + ": a result"
	default:
		if e.Name != "" {
			return "asks " + method + ", wrong on purpose: " + oneLine(e.Name)
		}
		return "asks " + method
	}
}

// phaseWords returns a phase with its reason.
func phaseWords(e *history.Event) string {
	out := string(e.Phase)
	switch e.Phase {
	case messages.Pending:
		if e.Step != "" {
			out += ", " + string(e.Step)
		}
	case messages.Failed:
		out += classText(e)
		switch e.Retry {
		case messages.RetryParked:
			out += ", parked"
		case messages.RetryNever:
			out += ", not tried again"
		case messages.RetryAt:
		}
	case messages.Disabled:
		if e.Warm {
			out += ", warm"
		}
	case messages.Connected, messages.NeedsAuth:
	}
	return oneLine(out)
}

// classText returns the class of an error in parentheses; empty without one.
func classText(e *history.Event) string {
	if e.Class == "" {
		return ""
	}
	return " (" + oneLine(string(e.Class)) + ")"
}

// retryAfterText returns the time that a server asked to wait; empty if it asked for none.
func retryAfterText(e *history.Event) string {
	if e.RetryAfter <= 0 {
		return ""
	}
	return ", not before " + e.RetryAfter.Round(time.Millisecond).String()
}
