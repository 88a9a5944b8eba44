package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// auditReader reads the audit log that the manager writes, and compares it in the end with the calls that were made: each is recorded once,
// with the caller, the tool and the outcome that its caller got, and with as many attempts as the servers saw. So is each command of the
// owner, and each phase that was published.
type auditReader struct {
	mu sync.Mutex
	// rest is the beginning of a line whose end was not written yet.
	rest []byte
	// calls are the records of calls, by the id that stands in the arguments.
	calls map[string][]audit.Record
	// changes counts the records of the owner's commands that were not refused, and phases has each phase that was recorded.
	changes map[recordedChange]int
	phases  map[recordedPhase]bool
	// problem is what could not be read, and lost is true once records were left out: then nothing is compared.
	problem string
	lost    bool
}

// recordedChange is what the owner did to a server.
type recordedChange struct{ change, server string }

// recordedPhase is a phase of a server in an epoch.
type recordedPhase struct {
	server string
	phase  messages.Phase
	epoch  uint64
}

// configureAudit gives the manager an audit log, if the scenario says so.
func (w *simulation) configureAudit(cfg *supervisor.Config) {
	if w.plan.Scenario.Manager.Audit {
		w.audit = &auditReader{calls: map[string][]audit.Record{}, changes: map[recordedChange]int{}, phases: map[recordedPhase]bool{}}
		cfg.Audit, cfg.AuditOptions.Arguments = w.audit, audit.Full
	}
}

// Write implements io.Writer for the manager's audit log.
func (r *auditReader) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = append(r.rest, b...)
	for {
		line, rest, whole := bytes.Cut(r.rest, []byte{'\n'})
		if !whole {
			return len(b), nil
		}
		r.readLine(line)
		r.rest = append([]byte(nil), rest...)
	}
}

// readLine reads one line. The caller holds mu.
func (r *auditReader) readLine(line []byte) {
	var record audit.Record
	if err := json.Unmarshal(line, &record); err != nil {
		r.problem = fmt.Sprintf("a line of the audit log cannot be read: %v", err)
		return
	}
	r.lost = r.lost || record.Lost != nil
	switch {
	case record.Kind == audit.KindCall:
		if call := callOf(record.Args); call != "" {
			r.calls[call] = append(r.calls[call], record)
		}
	case record.Kind == audit.KindChange && record.Error == "":
		r.changes[recordedChange{record.Change, record.Server}]++
	case record.Kind == audit.KindPhase:
		r.phases[recordedPhase{record.Server, record.Phase, record.Epoch}] = true
	}
}

// checkAudit compares the log with the calls of the run. It is called when the manager is closed. Calls of agents are left out, which
// several calls of the manager may serve, and those that ended after the begin of Close: the log may have ended before.
func (w *simulation) checkAudit() {
	if w.audit == nil {
		return
	}
	r := w.audit
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.problem != "" {
		w.reportBrokenPromise("", r.problem)
	}
	if r.lost {
		return
	}
	h := w.rec.History()
	// reached are the connections over which each call came to its server.
	reached := map[string]map[int]bool{}
	callers := map[string]string{}
	given := map[recordedChange]int{}
	for i := range h.Events {
		switch e := &h.Events[i]; {
		case e.Kind == history.Closing:
			w.checkRecordedChanges(given)
			return
		case e.Kind == history.Done && e.Class == messages.ClassNone:
			if change := w.changeOf(e); change != "" {
				given[recordedChange{change, e.Server}]++
			}
		case e.Kind == history.Phase && e.Phase != messages.Pending && !r.phases[recordedPhase{e.Server, e.Phase, e.Epoch}]:
			w.reportBrokenPromise(e.Server, fmt.Sprintf("the audit log does not say that it was %s in the epoch %d", e.Phase, e.Epoch))
		case e.Kind == history.Received && e.Method == "tools/call" && e.Call != "":
			if reached[e.Call] == nil {
				reached[e.Call] = map[int]bool{}
			}
			reached[e.Call][e.Conn] = true
		case e.Kind == history.Call && e.Agent == "":
			callers[e.Call] = e.By
		case e.Kind == history.End && e.Agent == "":
			if problem := auditProblem(e, r.calls[e.Call], callers[e.Call], len(reached[e.Call])); problem != "" {
				w.reportBrokenPromise(e.Server, "the audit log "+problem)
			}
		}
	}
}

// changeOf returns the word with which the audit log must tell of a command that was carried out, empty for one of which it tells otherwise.
func (w *simulation) changeOf(done *history.Event) string {
	i := slices.IndexFunc(w.plan.Commands, func(o scenario.PlannedCommand) bool { return o.ID == done.Command })
	if i < 0 {
		return ""
	}
	o := w.plan.Commands[i]
	if w.plan.Scenario.Manager.Configured && o.ChangesSet() {
		return "" // it tells of the whole set
	}
	switch o.Do {
	case "enable", "disable", "reconnect", "remove":
		return o.Do
	case "add", "respec":
		return "add"
	}
	return ""
}

// checkRecordedChanges judges that each of the owner's commands stands in the log. The program may have given more of them.
func (w *simulation) checkRecordedChanges(given map[recordedChange]int) {
	for c, n := range given {
		if recorded := w.audit.changes[c]; recorded < n {
			w.reportBrokenPromise(c.server, fmt.Sprintf("the audit log tells %d times of the change %s, and the owner made it %d times", recorded, c.change, n))
		}
	}
}

// auditProblem returns what the records of a call say that is not so, empty if they are right.
func auditProblem(end *history.Event, records []audit.Record, caller string, connections int) string {
	call := "of call " + end.Call + " of tool " + end.Tool
	if len(records) != 1 {
		return fmt.Sprintf("has %d records %s, and the call was made once", len(records), call)
	}
	switch r := records[0]; {
	case r.Server != end.Server || r.Tool != end.Tool:
		return fmt.Sprintf("says %s that it was one of %s at %q", call, r.Tool, r.Server)
	case r.Who != caller:
		return fmt.Sprintf("says %s that it was made for %q, and it was for %q", call, r.Who, caller)
	case r.Outcome != end.Outcome:
		return fmt.Sprintf("says %s that it ended with %s, and its caller got %s", call, r.Outcome, end.Outcome)
	case r.Class != end.Class && end.Outcome != messages.OutcomeToolError:
		return fmt.Sprintf("says %s that it was of the class %q, and its caller got %q", call, r.Class, end.Class)
	case r.Attempts < connections:
		return fmt.Sprintf("says %s that it was sent %d times, and its server got it over %d connections", call, r.Attempts, connections)
	}
	return ""
}
