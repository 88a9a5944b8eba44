package live

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// watchBuffer is the number of the manager's events that may wait for the recorder; one more becomes a gap, which the run
// reports. A thousand servers that end together make ten thousand events at once.
const watchBuffer = 1 << 18

// watchEvents records the manager's events until the manager closes, and checks that their sequence misleads no watcher. It
// runs in its own goroutine, and starts another that samples the catalog.
func (r *run) watchEvents(w *supervisor.Watcher) {
	defer close(r.watchDone)
	ended := make(chan struct{})
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		r.sampleSnapshots(ended)
	}()
	defer func() { close(ended); <-sampled }()
	var sequence history.Sequence
	for e := range w.Events(context.Background()) {
		if problem := sequence.Next(e); problem != "" {
			r.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I19", Text: "a watcher was misled: " + problem})
		}
		switch e.Kind {
		case messages.EventPhase, messages.EventAuthRequired:
			if e.Kind == messages.EventPhase {
				r.recordPhase(history.Phase, e.Status, r.runTime(e.Time), "")
				r.noteUnreachable(e.Status)
			}
			r.secrets.checkStatus(e.Status)
		case messages.EventRemoved:
			r.recordEvent(history.Event{Side: history.Manager, Kind: history.Removed, Server: e.Server, T: r.runTime(e.Time)})
			r.progress.setPhase(e.Server, "")
			r.recordStatus(e.Server, "after its end")
		case messages.EventCallStarted, messages.EventCallEnded:
			r.recordEvent(history.Event{Side: history.Manager, Kind: history.CallReported, Server: e.Server, T: r.runTime(e.Time), Method: string(e.Kind),
				Tool: e.Tool, Outcome: e.Outcome, Took: time.Duration(e.Took)})
		case messages.EventAuth:
			r.recordEvent(history.Event{Side: history.Manager, Kind: history.Auth, Server: e.Server, T: r.runTime(e.Time)})
		case messages.EventGap:
			r.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "harness",
				Text: "the record has a gap: the manager's events came faster than they could be written down"})
		default:
		}
	}
}

// runTime converts a time of the manager to the clock of the run.
func (r *run) runTime(t time.Time) time.Duration { return max(t.Sub(r.began), 1) }

// recordPhase records a status, either as the change of a phase (from an event) or as the status at a moment that name
// describes.
func (r *run) recordPhase(kind history.Kind, st *messages.Status, at time.Duration, name string) {
	if st == nil {
		return
	}
	e := history.Event{
		Side: history.Manager, Kind: kind, Server: st.Name, T: at, Phase: st.Status, Step: st.Step, Retry: st.Retry,
		Class: st.Class, Attempts: st.Attempts, Epoch: st.Epoch, Warm: st.Warm, Text: st.Error, Name: name,
	}
	if kind == history.Status {
		e.Side = history.Harness
	}
	if st.NextAttempt != nil {
		e.Next = r.runTime(*st.NextAttempt)
	}
	r.recordEvent(e)
	r.progress.setPhase(st.Name, st.Status)
}

// recordStatuses records the current status of every server.
func (r *run) recordStatuses(when string) {
	for _, st := range r.manager.Status() {
		r.recordPhase(history.Status, &st, r.elapsedTime(), when)
	}
}

// recordStatus records the current status of one server, if the manager still lists it. After a removal it must not.
func (r *run) recordStatus(server, when string) {
	if st, err := r.manager.ServerStatus(server); err == nil {
		e := history.Event{Side: history.Harness, Kind: history.Status, Server: server, T: r.elapsedTime(), Phase: st.Status, Step: st.Step,
			Epoch: st.Epoch, Text: when}
		r.recordEvent(e)
	}
}

// sampleEvery is the time between two samples of the catalog. A sample costs one atomic load as long as the catalog has not
// changed.
const sampleEvery = time.Millisecond

// sampleSnapshots records each new snapshot of the catalog until ended is closed. It polls instead of waiting for the manager's
// events, because by the time an event is read its snapshot may have been replaced, and its time would be wrong.
func (r *run) sampleSnapshots(ended <-chan struct{}) {
	seen, sums := shownEntries{}, toolHashes{}
	t := time.NewTicker(sampleEvery)
	defer t.Stop()
	for {
		r.recordSnapshot(seen, sums)
		select {
		case <-t.C:
		case <-ended:
			r.recordSnapshot(seen, sums)
			return
		}
	}
}

// shownEntries maps each server to its part of the last recorded snapshot; the key "" holds the generation of that snapshot.
type shownEntries map[string]history.Entries

// recordSnapshot records the published snapshot if its generation differs from the last recorded one. Snapshots in between were
// never seen. The event holds only the servers that changed.
func (r *run) recordSnapshot(seen shownEntries, sums toolHashes) {
	at := r.elapsedTime()
	snap := r.manager.Tools()
	if g := seen[""]; g.Epoch == snap.Generation() {
		return
	}
	seen[""] = history.Entries{Epoch: snap.Generation()}
	e := history.Event{Side: history.Manager, Kind: history.Snapshot, Generation: snap.Generation(), T: at}
	for _, srv := range r.plan.Servers {
		name := srv.Name
		now := history.Entries{Server: name}
		tools := snap.Server(name)
		if now.Count = len(tools); now.Count > 0 {
			now.State, now.Epoch, now.Hash = tools[0].State.String(), tools[0].Epoch, sums.hashOf(name, tools)
			now.Parts = history.PartsOf(r.plan.PartsOf(name), toolsOf(tools))
			if r.plan.Denies(name) {
				now.Tools = history.NamesOf(toolsOf(tools))
			}
		}
		if was, known := seen[name]; known && was == now || !known && now.Count == 0 {
			continue
		}
		seen[name] = now
		e.Entries = append(e.Entries, now)
	}
	r.recordEvent(e)
}

// toolsOf returns the tools of catalog entries.
func toolsOf(entries []*supervisor.Entry) []messages.Tool {
	out := make([]messages.Tool, len(entries))
	for i, e := range entries {
		out[i] = *e.Tool
	}
	return out
}

// noteUnreachable reports a failure to connect to the server's obstacles: one of them may have caused it.
func (r *run) noteUnreachable(st *messages.Status) {
	if s := r.servers.Server(st.Name); s != nil && st.Class != "" && st.Status != messages.Connected {
		s.NoteDialFailure(st.Class)
	}
}
