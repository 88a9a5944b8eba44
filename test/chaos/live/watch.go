package live

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// watchBuffer is how many of the manager's events may wait for us. A thousand servers that die together make ten
// thousand in a moment.
const watchBuffer = 1 << 18

// watchEvents records what the manager says until it is closed. It is a goroutine of its own.
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

// runTime is a time of the manager's on the clock of the run.
func (r *run) runTime(t time.Time) time.Duration { return max(t.Sub(r.began), 1) }

// recordPhase records what a status says.
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

// recordStatuses records what every server's status says now.
func (r *run) recordStatuses(when string) {
	for _, st := range r.manager.Status() {
		r.recordPhase(history.Status, &st, r.elapsedTime(), when)
	}
}

// recordStatus records what the status says of one server, if it stands there.
func (r *run) recordStatus(server, when string) {
	if st, err := r.manager.ServerStatus(server); err == nil {
		e := history.Event{Side: history.Harness, Kind: history.Status, Server: server, T: r.elapsedTime(), Phase: st.Status, Step: st.Step,
			Epoch: st.Epoch, Text: when}
		r.recordEvent(e)
	}
}

// sampleEvery is the time between two looks at the catalog. A look is one atomic load as long as nothing has changed.
const sampleEvery = time.Millisecond

// sampleSnapshots records each snapshot that is there when it looks, until ended is closed. It does not wait for the manager to tell
// of it: what was told of would have been replaced by the time it is read, and its time would be wrong.
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

// shownEntries are what the last recorded snapshot had of each server.
type shownEntries map[string]history.Entries

// recordSnapshot records the snapshot that is published now, if it is another one than the last: those in between were
// replaced before anybody could look.
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

// toolsOf are the tools of some entries.
func toolsOf(entries []*supervisor.Entry) []messages.Tool {
	out := make([]messages.Tool, len(entries))
	for i, e := range entries {
		out[i] = *e.Tool
	}
	return out
}

// noteUnreachable lets a server that cannot be reached know that it was tried.
func (r *run) noteUnreachable(st *messages.Status) {
	if s := r.servers[st.Name]; s != nil && st.Class != "" && st.Status != messages.Connected {
		s.noteDialFailure(st.Class)
	}
}
