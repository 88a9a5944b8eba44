package messages_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestEventsAndStatusesAreReadable: what a program prints with fmt is one line for a person, with nothing in it that acts on a terminal. It once
// was a list of fields with the address of the status.
func TestEventsAndStatusesAreReadable(t *testing.T) {
	failed := messages.Status{Name: "files", Status: messages.Failed, Reason: "exited, parked, probe at 08:32:05", Error: "the process ended\x1b[2J\nwith 3"}
	for want, v := range map[string]any{
		"files connected": messages.Status{Name: "files", Status: messages.Connected},
		"files failed (exited, parked, probe at 08:32:05): the process ended�[2J with 3":       &failed,
		"phase files failed (exited, parked, probe at 08:32:05): the process ended�[2J with 3": messages.Event{Seq: 7, Time: time.Now(), Kind: messages.EventPhase, Server: "files", Status: &failed},
		"tools files generation 5": messages.Event{Kind: messages.EventTools, Server: "files", Generation: 5},
		"call-ended files read call 12 result after 3ms": &messages.Event{Kind: messages.EventCallEnded, Server: "files", Tool: "read", CallID: 12,
			Outcome: messages.OutcomeResult, Took: messages.Duration(3 * time.Millisecond)},
		"gap missed 3":                     messages.Event{Kind: messages.EventGap, Missed: 3},
		`log files warning "hot"`:          messages.Event{Kind: messages.EventLog, Server: "files", Log: &messages.LogEntry{Level: "warning", Data: json.RawMessage(`"hot"`)}},
		"pins files read write":            messages.Event{Kind: messages.EventPins, Server: "files", Changed: []messages.ChangedTool{{Name: "read"}, {Name: "write"}}},
		"resource-updated files file:///x": messages.Event{Kind: messages.EventResourceUpdated, Server: "files", URI: "file:///x"},
	} {
		if got := fmt.Sprint(v); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
