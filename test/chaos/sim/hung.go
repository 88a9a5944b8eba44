package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// endHistory ends the history of a run that hangs: a Violation with the cause and with what the manager has not answered, and
// the goroutines that wait.
func (e *HungError) endHistory(rec *history.Recorder) *history.History {
	h := rec.History()
	var last time.Duration
	// open are the owner's commands without an answer; -1 stands for Close.
	open := map[int]history.Event{}
	calls := map[string]bool{}
	server := ""
	for _, ev := range h.Events {
		last = max(last, ev.T)
		switch ev.Kind {
		case history.Command:
			open[ev.Command] = ev
		case history.Done:
			delete(open, ev.Command)
		case history.Call:
			calls[ev.Call] = true
		case history.End:
			delete(calls, ev.Call)
		case history.Closing:
			open[-1] = history.Event{T: ev.T, Method: "close"}
		case history.Closed:
			delete(open, -1)
		default:
		}
	}
	var waiting []string
	for _, id := range slices.Sorted(maps.Keys(open)) {
		ev := open[id]
		subject := ""
		if ev.Server != "" {
			subject, server = " "+ev.Server, ev.Server
		}
		waiting = append(waiting, fmt.Sprintf("the owner's command %s%s of %s", ev.Method, subject, ev.T.Round(time.Millisecond)))
	}
	switch n := len(calls); n {
	case 0:
	case 1:
		waiting = append(waiting, "one call")
	default:
		waiting = append(waiting, fmt.Sprintf("%d calls", n))
	}
	text := strings.TrimSuffix(e.Cause, ".") + "."
	if len(waiting) > 0 {
		text += " Not answered: " + messages.Line(strings.Join(waiting, ", "), 200) + "."
	}
	rec.Add(history.Event{T: last, Side: history.Harness, Kind: history.Violation, Name: history.Hung, Server: server, Text: text})
	rec.Add(history.Event{T: last, Side: history.Harness, Kind: history.Resources, Text: history.Hung,
		House: &history.ResourceUsage{Goroutines: len(e.Waits), Left: e.Waits}})
	return rec.History()
}
